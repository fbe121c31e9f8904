#![no_main]

// The files themselves: the crate around them would bring a whole server to be built with
// sanitizers.
#[allow(dead_code)]
#[path = "../../crates/edge/src/fresh.rs"]
mod fresh;
#[allow(dead_code)]
#[path = "../../crates/edge/src/reason.rs"]
mod reason;

#[path = "../bodies/fresh.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
