#![no_main]

// Includes only this module, because building the sockets and namespaces of its crate with
// sanitizers would take too long.
#[allow(dead_code)]
#[path = "../../crates/lab/src/closest_name.rs"]
mod closest_name;
#[allow(dead_code, unused_imports)]
#[path = "../../crates/lab/src/nbmp/mod.rs"]
mod nbmp;
// The parser needs only this file of the module `experiment`.
#[allow(dead_code)]
#[path = "../../crates/lab/src/experiment/built_in_servers_and_clients.rs"]
mod experiment;

#[path = "../bodies/wdd.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
