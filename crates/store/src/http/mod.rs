//! HTTP to the storage: connections that are counted where they are opened and closed, kept or
//! not as was chosen, with a bound on every wait.
//!
//! [`Client`] is what `object_store` sends its requests through. It knows nothing of objects.

mod body;
mod buffers;
mod call;
mod connect;
mod failed;
mod framing;
mod head;
mod lease;
mod pool;
mod service;
mod shared;
mod socket;
mod wire;

pub(crate) use body::Watched;
pub(crate) use call::{CALL, Call};
pub(crate) use connect::Connector;
pub(crate) use failed::Failed;
pub(crate) use pool::Pool;
pub(crate) use service::{Client, Factory};
pub(crate) use wire::Came;

pub use pool::Connections;

use std::time::Duration;

/// How connections to the storage are made and kept.
#[derive(Debug, Clone)]
pub struct Transport {
    /// Kept alive and used again; else a new one for every request, its TLS session included.
    pub pooled: bool,
    /// HTTP/2 where the server offers it with TLS: all requests to an address then share one
    /// connection. Else, and where it is not offered, HTTP/1.1. Of use only with `pooled`.
    pub http2: bool,
    /// Most connections to one address, and so most requests under way; who comes later waits.
    pub connections_max: usize,
    /// How long a connection without a request is kept.
    pub idle: Duration,
    /// Bounds on waiting.
    pub timeouts: Timeouts,
    /// Certificates in PEM that are trusted beside the public authorities.
    pub ca: Option<Vec<u8>>,
}

/// Longest waits for the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands, TLS included; and, before, until there may be one more.
    pub connect: Duration,
    /// From a request's last byte to the last of the answer's head.
    pub first_byte: Duration,
    /// For each 16 KiB of the answer's body, or its end.
    pub stall: Duration,
}

impl Default for Transport {
    fn default() -> Transport {
        Transport {
            pooled: true,
            http2: false,
            connections_max: 64,
            idle: Duration::from_secs(60),
            timeouts: Timeouts::default(),
            ca: None,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(5),
            stall: Duration::from_secs(5),
        }
    }
}
