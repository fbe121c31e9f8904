//! The origin: URLs to manifests and segments.

pub mod config;
pub mod route;
