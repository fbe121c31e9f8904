//! This crate serves HTTP. It contains the code for sockets, requests, response bodies, records and
//! metrics.
//!
//! [`server`] accepts connections. Each worker serves its connections on its own runtime. The
//! connections use HTTP/1.1 or HTTP/2, with or without TLS, through the socket wrapper of [`conn`].
//! The program's handler receives each request together with its [`Conn`] and returns a [`Body`].
//! When the body has been sent, [`record`] writes a record of the request and [`metrics`] counts
//! the request.
//!
//! This crate contains no routes, files, cache or media. The modules that only compute ([`range`],
//! [`conditional`], [`content_coding`]) use neither sockets nor a clock.

// Other crates also compile parts of `fuzz/bodies`, where this crate has the name `net`. The alias
// makes this name valid in this crate, too.
#[cfg(any(test, fuzzing))]
extern crate self as net;

pub mod access_token;
pub mod admin_port;
pub mod body;
pub mod cmcd;
pub mod conditional;
pub mod config;
pub mod conn;
pub mod content_coding;
pub mod edge_secret;
pub mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
pub mod headers;
pub mod http_date;
mod io_error;
pub mod lifecycle;
pub mod metrics;
pub mod overload;
pub mod range;
pub mod record;
pub mod resources;
mod send_memory;
pub mod server;
pub mod trusted_networks;
pub mod viewers;

pub use body::{Body, BodyFile, BodyPart, Chunk};
pub use conn::{Conn, TcpInfo, TransportOptions, WeakConnection};
pub use error::Error;
pub use io_error::describe_io_error;
pub use lifecycle::{FatalError, RunningProgram};
pub use overload::{OverloadLevel, OverloadManager};
pub use send_memory::MinRate;
pub use server::{InheritedListener, Limits, Server, ServerOptions, Shutdown};
pub use trusted_networks::{Cidr, TrustedNetworks};
