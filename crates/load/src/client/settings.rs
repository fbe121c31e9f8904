//! How a client connects, and what bounds it.

use std::net::IpAddr;
use std::time::Duration;

/// The version of HTTP that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN over TLS, with prior knowledge otherwise.
    Http2,
}

/// What all clients of a run share.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The version of HTTP.
    pub version: Version,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Addresses to connect from, in turn; none: the system's choice.
    pub sources: Vec<IpAddr>,
    /// Look names up once, instead of for each connection.
    pub lookup_once: bool,
    /// Certificates of authorities in PEM, instead of the public ones.
    pub authorities: Option<Vec<u8>>,
    /// Trust any certificate.
    pub insecure: bool,
    /// Longest wait for a connection, TLS included.
    pub connect_timeout: Duration,
    /// Longest time from a request's start to its answer's end, connecting and redirects included.
    pub timeout: Duration,
    /// Longest body, in bytes.
    pub body_max: u64,
    /// Redirects that are followed.
    pub redirects_max: u32,
    /// Connections that one client keeps at most.
    pub connections_max: usize,
    /// What `User-Agent` says, unless a request brings its own.
    pub user_agent: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            version: Version::Http1,
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
