//! The cache as clients and origins see it. The tests write every byte of both sides, and check
//! counters.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod apart;
mod disk;
mod follow;
mod growing;
mod hits;
mod interim;
mod large;
mod long_bodies;
mod slow;
mod stale;

const KEEP: &str = "Cache-Control: max-age=60";
