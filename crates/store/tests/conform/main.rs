//! Every kind of storage through one door: right bytes or a clean error, nothing partial kept,
//! nothing hangs. Real servers where they can be had, and one of ours that does everything wrong.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// One range of bytes is what is meant.
#![allow(clippy::single_range_in_vec_init)]

mod clouds;
mod connections;
mod endpoints;
mod faults;
mod identity;
#[path = "../../../../tests/support/nginx.rs"]
mod nginx;
mod promised;
mod real;
mod servers;
mod straight;
mod suite;
mod tls;
mod whole;
mod wild;
