#![no_main]

// Includes the file by its path, because the module is private to its crate.
#[allow(dead_code)]
#[path = "../../crates/store/src/disk/record.rs"]
mod record;

#[path = "../bodies/kept.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
