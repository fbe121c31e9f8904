#![no_main]

// Includes only this file, because building the whole server with sanitizers would take too long.
#[path = "../../crates/origin/src/title/references.rs"]
mod references;

#[path = "../bodies/ism.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
