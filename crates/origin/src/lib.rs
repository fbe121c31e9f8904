//! The origin, which serves stored films as HLS and DASH, and packages them on request.
//!
//! Modules in the order in which a request passes through them (ARCHITECTURE.md names each step):
//!
//! - `startup` starts the server, which passes each request to `request_handler`.
//! - `response::response_cache` responds if a response for the URL is cached.
//! - `route` parses the URL.
//! - `title` opens and indexes the title, or takes the title from the catalog.
//! - `segment` locates and plans a segment, and produces its bytes. `response` produces other
//!   responses, such as manifests, files, JSON and the player page.
//! - `response::responder` evaluates conditional headers and byte ranges, and `send` builds the
//!   body.
//! - `telemetry` attaches the access record to the response. The record is written when the body
//!   has been sent.
//!
//! This crate contains no code for MP4 boxes, socket options or system calls.

mod admin;
pub mod check;
pub mod config;
mod demo_film;
mod drm;
mod error;
pub mod index_command;
mod library_status;
mod request_handler;
mod resource_kind;
mod response;
pub mod route;
mod segment;
mod send;
mod shard_capacity;
mod startup;
mod telemetry;
mod title;

pub use startup::{serve, start};
pub use title::references;
