#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| net::fuzzed::head::run_case(data));
