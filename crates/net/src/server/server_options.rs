//! Options of a server.

use std::time::Duration;

use super::{Limits, TlsIdentity};
use crate::metrics::Metrics;
use crate::{OverloadManager, TrustedNetworks};

/// Addresses, limits and other options of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Addresses as `HOST:PORT`. Port 0 selects a free port. An empty host means all addresses of
    /// the machine.
    pub addresses: Vec<String>,
    /// Whether to share the port with another process. The other process must also enable this
    /// option.
    ///
    /// Off by default, because a second server on the same port is usually a mistake.
    pub share: bool,
    /// Enables TLS on all addresses.
    pub tls: Option<TlsIdentity>,
    /// Limits on the resources that clients may use.
    pub limits: Limits,
    /// Proxies that are trusted to report the client's address.
    pub trust: TrustedNetworks,
    /// Upper limit on the first round trip of low-RTT clients. Responses to these clients are sent
    /// without pacing. With zero, all connections use the system's default congestion control.
    pub near_rtt: Duration,
    /// Number of worker threads, each with its own runtime and listeners. 0 means
    /// [`crate::resources::default_workers`].
    pub workers: usize,
    /// Limit on the copied response bytes that wait to be sent. `None` means 25 % of the memory
    /// limit, at most 1 GiB.
    pub send_memory_bytes: Option<u64>,
    /// Refuses requests while the process is short of memory.
    pub overload: OverloadManager,
    /// Paths that are served even while the process is short of memory, such as health probes and
    /// metrics.
    pub essential_paths: &'static [&'static str],
    /// The registry of the server's metrics.
    pub metrics: Metrics,
}
