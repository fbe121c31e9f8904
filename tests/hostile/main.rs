//! Hostile requests as tables: input, expected result and reason.
//!
//! Each input is sent to `headwater serve` and `headwater edge`, with and without TLS. Behind the
//! edge, an origin with a strict parser records what arrives there. Afterwards, every server must
//! still run and serve.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http1;
mod http2;
mod rates;
mod targets;

#[path = "../../crates/edge/tests/hostile/strict.rs"]
#[allow(dead_code)] // The edge's own tests use the rest.
mod strict;
#[path = "../e2e/support.rs"]
#[allow(dead_code)] // The end-to-end tests use the rest.
mod support;
