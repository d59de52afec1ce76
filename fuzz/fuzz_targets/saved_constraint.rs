//! See the body.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| constrain_fuzz::saved_constraint(data));
