//! Limits on everything that a client controls.

use std::time::Duration;

use crate::MinRate;

/// Limits on the resources that clients may use. The comments give reasons for defaults, for
/// example the cost of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Limit on the total number of open connections. Without TLS, a further connection gets 503
    /// before it is closed. Each connection costs a descriptor and memory (see "Idle clients" in
    /// `docs/edge.md`).
    pub connections_max: usize,
    /// Limit on the open connections of one address. The default is high because all connections of
    /// a relay or a load generator come from one address.
    pub connections_per_address_max: usize,
    /// Limit on the requests per second of one IPv4 address or one IPv6 /64. A further request gets
    /// status 429. The default is 0, which disables the limit, because many viewers may share an
    /// address.
    pub requests_per_address_max: u32,
    /// Limit on the requests per second of one network (an IPv4 /24 or an IPv6 /48). Further
    /// requests get 429. 0 disables the limit.
    pub requests_per_network_max: u32,
    /// Duration that determines the burst. After an idle time, a client may send in one burst as
    /// many requests as its rate limit allows in this duration.
    pub request_burst: Duration,
    /// Longest time until the header of a request is complete. The time starts when the connection
    /// opens, or with the first byte of a later request. A TLS handshake before the first request
    /// has a separate limit of the same length.
    pub header_timeout: Duration,
    /// Longest time between two requests of a connection.
    pub idle_timeout: Duration,
    /// Longest time without progress while response bytes wait for the client to read.
    pub stall_timeout: Duration,
    /// Limit on the length of a request's header, including the target. A longer header gets 431.
    pub header_bytes_max: usize,
    /// Limit on the length of a request's target. A longer target gets 414.
    pub target_bytes_max: usize,
    /// Limit on the concurrent requests of one HTTP/2 connection.
    pub streams_max: u32,
    /// HTTP/2 flow-control window of a stream, which limits the request bytes that a client may
    /// send before the server reads them.
    pub stream_window_bytes: u32,
    /// HTTP/2 flow-control window of a connection, which applies to the request bytes of all its
    /// streams together.
    pub connection_window_bytes: u32,
    /// Limit on the copied response bytes that one connection holds. At this limit, the
    /// connection's streams continue in frames of 4 KiB.
    pub connection_send_buffer_bytes: u64,
    /// The minimum rate at which clients must read responses while `send-memory` is short.
    pub min_rate: MinRate,
    /// Time between the shutdown signal and the close of the port, in which load balancers can
    /// notice the shutdown. In this time, `/readyz` fails and responses contain
    /// `Connection: close`.
    pub announce: Duration,
    /// Time after the close of the port in which requests in flight may finish.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 32_768,
            connections_per_address_max: 16_384,
            requests_per_address_max: 0,
            requests_per_network_max: 0,
            request_burst: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            stall_timeout: Duration::from_secs(30),
            header_bytes_max: 64 << 10,
            target_bytes_max: 8 << 10,
            streams_max: 128,
            stream_window_bytes: 256 << 10,
            connection_window_bytes: 1 << 20,
            connection_send_buffer_bytes: 4 << 20,
            min_rate: MinRate::default(),
            announce: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Returns the interval at which a worker looks for connections that have timed out.
    pub(super) fn sweep_period(&self) -> Duration {
        let shortest = self
            .header_timeout
            .min(self.idle_timeout)
            .min(self.stall_timeout)
            .min(self.min_rate.window);
        (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }
}

/// Raises the soft limit of open descriptors to the hard limit. Returns the new limit. Call this
/// function once, at the start of the process.
pub fn raise_descriptor_limit() -> std::io::Result<Option<u64>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current)
}
