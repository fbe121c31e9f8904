#![no_main]

// Includes the file by its path, because the module is private to its crate.
#[allow(dead_code)]
#[path = "../../crates/store/src/disk/tier/format.rs"]
mod format;

#[path = "../bodies/shelved.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
