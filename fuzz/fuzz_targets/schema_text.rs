//! See the body.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| constrain_fuzz::schema_text(data));
