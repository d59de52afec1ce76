//! See the body.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| constrain_fuzz::no_invalid_json(data));
