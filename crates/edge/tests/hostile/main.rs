//! Attacks on proxies: request and response smuggling, header injection, floods, and cache
//! poisoning.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cache;
mod frames;
mod requests;
mod responses;
mod strict;
#[path = "../support/mod.rs"]
mod support;
