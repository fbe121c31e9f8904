#![no_main]

// The module itself: the crate around it would bring sockets and namespaces to be built with
// sanitizers.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/lab/src/nbmp/mod.rs"]
mod nbmp;

#[path = "../bodies/wdd.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
