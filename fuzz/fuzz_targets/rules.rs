#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| edge::fuzzed::rules::run_case(data));
