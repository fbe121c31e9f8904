//! The origin: HLS and DASH from stored films, packaged on request.
//!
//! Modules in the order of a request (ARCHITECTURE.md names each step):
//!
//! - `startup` starts the server, which passes each request to `request_handler`.
//! - `response::response_cache` responds if the same URL was served recently.
//! - `route` parses the URL.
//! - `title` opens and indexes the title, or takes it from the catalog.
//! - `segment` locates, plans and materialises a segment. `response` produces everything else:
//!   manifests, files, JSON, the page.
//! - `response::responder` applies conditions and ranges, and `send` builds the body.
//! - `telemetry` attaches the access record, which is written when the body has been sent.
//!
//! The crate contains no MP4 box, no socket option and no system call.

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
mod startup;
mod telemetry;
mod title;

pub use startup::{serve, start};
pub use title::references;
