//! Black-box tests. They run the real binary on a free port, and check it with ffprobe, ffmpeg and
//! plain HTTP.
//!
//! Films come from `fixtures/make.sh`, which fills `target/fixtures` once. If ffmpeg is not
//! installed, the tests that need it report `SKIPPED` and pass.

#![allow(clippy::unwrap_used, clippy::expect_used)]

// `headwater serve`
mod bad_input;
mod http_contract;
mod http_storage;
mod left_out;
mod packet_fidelity;
mod playlist_cache;
mod protected_processes;
mod protected_secrets;
mod range_delivery;
mod s3_storage;
mod slow_readers;
mod text;
mod text_failures;
mod text_sources;
mod tracing;

// The other commands.
mod abandoned_segments;
mod check_command;
mod check_protection;
mod command_line;
mod edge_crash;
mod edge_proxy;
mod edge_secret;
mod fleet_commands;
mod foreign_workflow;
mod index_command;
mod load_players;
mod load_rate;
mod metrics;
mod origin_tls;
mod overload;
mod packaging;
mod pool_members;
mod prometheus;
mod remote_index;
mod restarts;
mod service_manager;

// Support.
mod ffmpeg;
mod hls_playlists;
#[path = "../support/nginx.rs"]
mod nginx;
mod probe_cache;
// Some functions of this module are used only by the tests of `store`.
#[allow(dead_code)]
#[path = "../../crates/store/tests/conform/servers.rs"]
mod servers;
mod support;
