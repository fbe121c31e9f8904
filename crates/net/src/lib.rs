//! Sockets, requests, and what we write down about them.
//!
//! A connection's journey: [`server`] accepts it, a worker's own runtime speaks HTTP/1.1, HTTP/2 or
//! TLS on it through [`conn`]'s socket wrapper, the program's handler sees each request together
//! with its [`Conn`] and answers with a [`Body`]; while the body leaves, it counts itself, and when
//! it ends, [`record`] writes the line and [`metrics`] the numbers.
//!
//! What is *not* here: no routes, no files, no cache, no media. The parts that only compute
//! ([`range`], [`conditional`], [`encoding`]) know neither sockets nor a clock.

// As the bodies of fuzz targets, some of which other crates try, call it.
#[cfg(any(test, fuzzing))]
extern crate self as net;

pub mod body;
pub mod client;
pub mod conditional;
pub mod config;
pub mod conn;
pub mod encoding;
pub mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
pub mod headers;
pub mod metrics;
pub mod network;
pub mod program;
pub mod range;
pub mod record;
pub mod server;
pub mod token;
pub mod upstream;

pub use body::{Body, Chunk};
pub use conn::{Conn, Mapped, TcpInfo, Transport, Watch};
pub use error::Error;
pub use network::{Cidr, Trust};
pub use program::{Failed, Running};
pub use server::{Limits, Listen, Server, Shutdown};
