//! Limits on everything that a client controls.

use std::time::Duration;

use crate::MinRate;

/// Limits per client. The comment of a limit gives the reason for its default, for example the cost
/// of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Limit on open connections in total; one more gets 503 and is closed. Each costs a descriptor
    /// and memory (`docs/edge.md`: idle clients).
    pub connections_max: usize,
    /// Limit on the open connections of one address. The default is high because a relay or a load
    /// generator has one address.
    pub connections_per_address_max: usize,
    /// Limit on the requests per second of one address (IPv6: of a /64); one more gets 429. 0: no
    /// limit. Off by default: many viewers may share an address.
    pub requests_per_address_max: u32,
    /// The same for one network: an IPv4 /24 or an IPv6 /48.
    pub requests_per_network_max: u32,
    /// A client that was idle may send as many requests in one burst as its rate allows in this
    /// time.
    pub request_burst: Duration,
    /// Longest time from the first byte of a connection or request to the end of its header.
    pub header_timeout: Duration,
    /// Longest time between requests.
    pub idle_timeout: Duration,
    /// Longest time in which a client takes no byte of a waiting response.
    pub stall_timeout: Duration,
    /// Limit on the length of a request's header, target included; a longer one gets 431.
    pub header_bytes_max: usize,
    /// Limit on the length of a request's target; a longer one gets 414.
    pub target_bytes_max: usize,
    /// Limit on the concurrent requests of one HTTP/2 connection.
    pub streams_max: u32,
    /// Request bytes that a client may send on one HTTP/2 stream before we read them.
    pub stream_window_bytes: u32,
    /// The same for all streams of one HTTP/2 connection.
    pub connection_window_bytes: u32,
    /// Copied response bytes that one connection holds before its streams continue in frames of 4 KiB.
    pub connection_send_buffer_bytes: u64,
    /// The minimum rate at which clients must read responses while `send-memory` is short.
    pub min_rate: MinRate,
    /// After the shutdown signal, time for a load balancer to notice (`/readyz` fails, responses
    /// contain `Connection: close`) before the port closes.
    pub announce: Duration,
    /// After that, time for requests in flight to finish.
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

/// Raises the soft limit of open descriptors to the hard limit, and returns it. Call this once, at
/// the start.
pub fn raise_descriptor_limit() -> std::io::Result<Option<u64>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current)
}
