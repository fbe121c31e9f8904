//! The origin: URLs to manifests and segments.

pub mod route;
