//! Connection settings and limits of a client.

use std::net::IpAddr;
use std::time::Duration;

/// The HTTP version of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, negotiated by ALPN over TLS, and used with prior knowledge over plain TCP.
    Http2,
}

/// Settings that all clients of a run share.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The version of HTTP.
    pub version: HttpVersion,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Source addresses, used in turn. If the list is empty, the system chooses the address.
    pub sources: Vec<IpAddr>,
    /// Whether each host name is resolved only once, instead of for each connection.
    pub lookup_once: bool,
    /// Certificate authorities in PEM format, which replace the public authorities.
    pub authorities: Option<Vec<u8>>,
    /// Whether every server certificate is accepted without verification.
    pub insecure: bool,
    /// Time limit for opening a connection, including the TLS handshake.
    pub connect_timeout: Duration,
    /// Time limit for a request, from the call to the last response byte. This includes opening a
    /// connection and following redirects.
    pub timeout: Duration,
    /// Maximum length of a response body, in bytes.
    pub body_max: u64,
    /// Maximum number of redirects per request.
    pub redirects_max: u32,
    /// Maximum number of concurrent requests per client, and maximum number of idle connections in
    /// the client's pool.
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
