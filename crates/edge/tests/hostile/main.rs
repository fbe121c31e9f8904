//! What is tried against relays: requests and answers with two ends, lines in lines, floods, and
//! answers for one client kept for all.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod cache;
mod frames;
mod requests;
mod strict;
#[path = "../support/mod.rs"]
mod support;
