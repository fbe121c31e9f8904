//! The HTTP client for the storage. The number of connections is bounded, connections are pooled if
//! configured, and every wait has a timeout.
//!
//! [`StorageHttpClient`] is the HTTP client that `object_store` uses. It transfers requests and
//! responses, and knows nothing about media libraries and their objects. The crate `upstream`
//! implements connections, TLS and HTTP/1.1 (decision 21).

mod error;
mod http2;
mod pool;
mod pooled_connection;
mod request_facts;
mod storage_client;
mod watched_body;

pub(crate) use error::TransportError;
pub(crate) use pool::ConnectionPool;
pub(crate) use request_facts::{CALL, StorageRequestContext};
pub(crate) use storage_client::{StorageHttpClient, StorageHttpConnector};
pub(crate) use watched_body::WatchedBody;

use std::time::Duration;

/// Options of the connections to the storage.
#[derive(Debug, Clone)]
pub struct TransportOptions {
    /// Whether connections and TLS sessions are reused. Otherwise each request opens a new
    /// connection.
    pub pooled: bool,
    /// Whether to use HTTP/2 if the server offers it over TLS. All requests to an address then
    /// share one connection. Requires `pooled`.
    pub http2: bool,
    /// Maximum number of connections to one address, and also the maximum number of concurrent
    /// requests to this address. Further requests wait.
    pub connections_max: usize,
    /// Time after which an unused connection is closed.
    pub idle: Duration,
    /// Timeouts of requests.
    pub timeouts: StorageTimeouts,
    /// Certificate authorities in PEM format that are trusted in addition to the public
    /// authorities.
    pub ca: Option<Vec<u8>>,
}

/// Timeouts of requests to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageTimeouts {
    /// Longest time to open a connection, including the TLS handshake. Also the longest wait for a
    /// free connection when `connections_max` is reached.
    pub connect: Duration,
    /// Longest time to send a request and to receive the head of its response.
    pub first_byte: Duration,
    /// Longest wait for each 16 KiB of the response's body, or for the end of the body.
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
