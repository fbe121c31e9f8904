//! Tests hostile requests, which are listed in tables with input, expected result and reason.
//!
//! Each input is sent to `headwater serve` and `headwater edge`, with and without TLS. Behind the
//! edge, an origin with a strict parser records the requests that arrive. Afterwards, every server
//! must still run and serve. `requests` and `caching` send each row over HTTP/1.1 and HTTP/2.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod caching;
mod floods;
mod frames;
mod http1;
mod http2;
mod peers;
mod rates;
mod requests;
mod targets;

#[path = "../support/peer_process.rs"]
mod peer_process;
#[path = "../support/port.rs"]
mod port;
#[path = "../../crates/edge/tests/hostile/strict.rs"]
#[allow(dead_code)] // The edge's own tests use the rest.
mod strict;
#[path = "../e2e/support.rs"]
#[allow(dead_code)] // The end-to-end tests use the rest.
mod support;
