#![no_main]

// The files themselves: the crate around them would bring a whole server to be built with
// sanitizers.
#[allow(dead_code)]
#[path = "../../crates/net/src/conditional.rs"]
mod conditional;
#[allow(dead_code)]
#[path = "../../crates/net/src/range.rs"]
mod range;

#[path = "../bodies/range.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
