#![no_main]

// The file itself: the crate around it would bring a whole server to be built with sanitizers.
#[path = "../../crates/origin/src/reference.rs"]
mod reference;

#[path = "../bodies/ism.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
