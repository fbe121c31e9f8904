//! The origin: HLS and DASH from stored films, packaged on request.
//!
//! The path of a request:
//!
//! 1. `startup` hands the request to the request handler, with its connection;
//! 2. `response::response_cache` responds if the same URL was served recently;
//! 3. `route` parses the URL;
//! 4. `title` opens and indexes the title, or takes it from the catalog;
//! 5. `segment` locates, plans and materialises a segment; `response` produces everything else:
//!    manifests, files, JSON, the page;
//! 6. `response::responder` applies conditions and ranges, and `send` builds the body;
//! 7. `telemetry` writes the record and counts when the body has been sent.
//!
//! The crate contains no MP4 box, no socket option and no system call.

pub mod check;
pub mod config;
mod demo_film;
mod error;
pub mod index_command;
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
