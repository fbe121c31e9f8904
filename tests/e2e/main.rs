//! Black-box tests: the real binary on a free port, judged by ffprobe, ffmpeg and plain HTTP.
//!
//! Media come from `fixtures/make.sh`, made once into `target/fixtures`. Where ffmpeg is not
//! installed, the tests that need it say so and pass.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_input;
mod check;
mod edge;
mod ffmpeg;
mod hls;
mod http;
mod index;
mod kill;
mod lately;
mod mapped;
#[path = "../support/nginx.rs"]
mod nginx;
mod packets;
mod players;
mod remote;
mod remote_index;
mod s3;
// The storage's own tests start them in more ways.
#[allow(dead_code)]
#[path = "../../crates/store/tests/conform/servers.rs"]
mod servers;
mod support;
