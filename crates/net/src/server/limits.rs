//! Bounds on everything that a client controls.

use std::time::Duration;

/// What clients may do. Each default is documented by what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections in all; one more is answered 503 and closed. Each costs a descriptor and
    /// memory (`docs/edge.md`: idle clients).
    pub connections_max: usize,
    /// Open connections of one address. High, since a relay or a load tester is one address.
    pub connections_per_address_max: usize,
    /// From the first byte of a connection or a request to the end of its header.
    pub header_timeout: Duration,
    /// Without a request.
    pub idle_timeout: Duration,
    /// Without the client taking a byte of a response that waits for it.
    pub stall_timeout: Duration,
    /// Bytes of a request's header, target included; more: 431.
    pub header_bytes_max: usize,
    /// Bytes of a request's target; more: 414.
    pub target_bytes_max: usize,
    /// Requests at a time on one HTTP/2 connection.
    pub streams_max: u32,
    /// After the shutdown signal, go on accepting for this long, so that a balancer notices
    /// (`/readyz` fails, answers say `Connection: close`) before the port closes.
    pub announce: Duration,
    /// Then, how long requests in flight may take to finish.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 32_768,
            connections_per_address_max: 16_384,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            stall_timeout: Duration::from_secs(30),
            header_bytes_max: 64 << 10,
            target_bytes_max: 8 << 10,
            streams_max: 128,
            announce: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// How often a worker looks for connections that have waited too long.
    pub(super) fn sweep_period(&self) -> Duration {
        let shortest = self
            .header_timeout
            .min(self.idle_timeout)
            .min(self.stall_timeout);
        (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }
}

/// Raises the soft limit of open descriptors to the hard one, and returns it. Call it once, early.
pub fn raise_descriptor_limit() -> std::io::Result<Option<u64>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current)
}
