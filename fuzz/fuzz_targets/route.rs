#![no_main]

// Includes only this file, because building the whole server with sanitizers would take too long.
// Most of the file is unused here.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/origin/src/route.rs"]
mod route;

#[path = "../bodies/route.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
