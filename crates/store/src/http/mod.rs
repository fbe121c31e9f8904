//! HTTP to the storage: a bounded number of connections, a pool if configured, and a timeout for
//! every wait.
//!
//! [`StorageHttpClient`] is the HTTP client that `object_store` uses. It transfers requests and
//! responses, and does not know media libraries or their objects. Connections, TLS and HTTP/1.1 are
//! those of `upstream` (decision 21).

mod call;
mod error;
mod http2;
mod pool;
mod pooled_connection;
mod service;
mod watched_body;

pub(crate) use call::{CALL, StorageCall};
pub(crate) use error::TransportError;
pub(crate) use pool::ConnectionPool;
pub(crate) use service::{StorageHttpClient, StorageHttpConnector};
pub(crate) use watched_body::WatchedBody;

use std::time::Duration;

/// Options of the connections to the storage.
#[derive(Debug, Clone)]
pub struct TransportOptions {
    /// Whether connections and TLS sessions are reused. Otherwise each request opens a new one.
    pub pooled: bool,
    /// Whether to use HTTP/2 where the server offers it over TLS: all requests to an address then
    /// share one connection. Needs `pooled`.
    pub http2: bool,
    /// Maximum number of connections to one address, and thus of requests in flight. Further
    /// requests wait.
    pub connections_max: usize,
    /// Time after which an unused connection is closed.
    pub idle: Duration,
    /// Bounds on waiting.
    pub timeouts: StorageTimeouts,
    /// Certificates in PEM that are trusted in addition to the public authorities.
    pub ca: Option<Vec<u8>>,
}

/// Timeouts of requests to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageTimeouts {
    /// Longest time to open a connection with TLS, and to wait while `connections_max` is reached.
    pub connect: Duration,
    /// Longest time from the request's last byte to the end of the response's head.
    pub first_byte: Duration,
    /// Longest wait for each 16 KiB of the response's body, or for its end.
    pub stall: Duration,
}

impl Default for TransportOptions {
    fn default() -> TransportOptions {
        TransportOptions {
            pooled: true,
            http2: false,
            connections_max: 64,
            idle: Duration::from_secs(60),
            timeouts: StorageTimeouts::default(),
            ca: None,
        }
    }
}

impl Default for StorageTimeouts {
    fn default() -> StorageTimeouts {
        StorageTimeouts {
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(5),
            stall: Duration::from_secs(5),
        }
    }
}
