//! Reads every kind of storage through [`store::Store`]. Each read returns the correct bytes or a
//! clean error, caches no partial result and never hangs. The tests use local files, real servers
//! if they are installed, and our own server that injects faults.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// Some vectors intentionally contain only one range.
#![allow(clippy::single_range_in_vec_init)]

mod aws_identity;
mod breaking_proxy;
mod clouds;
mod connections;
mod declared_version;
mod endless_listing;
mod endpoints;
mod faults;
mod faulty_server;
mod lost_endpoint;
#[path = "../../../../tests/support/nginx.rs"]
mod nginx;
mod real_servers;
mod servers;
mod splice;
mod suite;
mod tls;
mod whole_object;
