#![no_main]

// The file itself: no other crate may see it.
#[allow(dead_code)]
#[path = "../../crates/edge/src/cmcd.rs"]
mod cmcd;

#[path = "../bodies/cmcd.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
