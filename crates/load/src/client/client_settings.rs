//! Connection settings and limits of a client.

use std::net::IpAddr;
use std::time::Duration;

/// The HTTP version of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN over TLS, with prior knowledge otherwise.
    Http2,
}

/// Settings that all clients of a run share.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The version of HTTP.
    pub version: HttpVersion,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Source addresses, used in turn; the system chooses if empty.
    pub sources: Vec<IpAddr>,
    /// Resolve each host name once instead of for each connection.
    pub lookup_once: bool,
    /// Certificate authorities in PEM, instead of the public ones.
    pub authorities: Option<Vec<u8>>,
    /// Trust any certificate.
    pub insecure: bool,
    /// Time limit for opening a connection, including TLS.
    pub connect_timeout: Duration,
    /// Time limit for a request until its last byte, including connecting and redirects.
    pub timeout: Duration,
    /// Limit of a body, in bytes.
    pub body_max: u64,
    /// Limit of redirects per request.
    pub redirects_max: u32,
    /// Limit of open connections per client.
    pub connections_max: usize,
    /// Default value of `User-Agent`.
    pub user_agent: String,
}

impl Default for ClientSettings {
    fn default() -> ClientSettings {
        ClientSettings {
            version: HttpVersion::Http1,
            keep_alive: true,
            sources: Vec::new(),
            lookup_once: true,
            authorities: None,
            insecure: false,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            body_max: 1 << 40,
            redirects_max: 10,
            connections_max: 6,
            user_agent: concat!("headwater-load/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
