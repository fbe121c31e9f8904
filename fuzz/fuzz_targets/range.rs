#![no_main]

// Includes only these files, because building the whole server with sanitizers would take too long.
#[allow(dead_code)]
#[path = "../../crates/net/src/conditional.rs"]
mod conditional;
#[path = "../../crates/net/src/http_date.rs"]
mod http_date;
#[allow(dead_code)]
#[path = "../../crates/net/src/range.rs"]
mod range;

#[path = "../bodies/range.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
