#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| edge::fuzzed::answer::run_case(data));
