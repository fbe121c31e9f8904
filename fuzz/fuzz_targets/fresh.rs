#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| edge::fuzzed::fresh::run(data));
