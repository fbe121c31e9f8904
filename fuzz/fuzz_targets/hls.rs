#![no_main]

#[allow(dead_code)]
#[path = "../bodies/manifest.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run_hls(data));
