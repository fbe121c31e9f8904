//! Options of a server.

use std::time::Duration;

use super::{Limits, TlsIdentity};
use crate::metrics::Metrics;
use crate::{OverloadManager, TrustedNetworks};

/// Addresses, limits and other options of a server.
#[derive(Debug, Clone, Default)]
pub struct ListenOptions {
    /// Addresses as `HOST:PORT`. Port 0 selects a free port; an empty host means all addresses of
    /// the machine.
    pub addresses: Vec<String>,
    /// Whether to share the port with another process, which must set this too.
    ///
    /// Off by default: a second server on the same port is usually a mistake.
    pub share: bool,
    /// Enables TLS on all addresses.
    pub tls: Option<TlsIdentity>,
    /// Limits per client.
    pub limits: Limits,
    /// Proxies that are trusted to report the client's address.
    pub trust: TrustedNetworks,
    /// The server does not pace responses to clients with a shorter first round trip; zero paces
    /// all clients.
    pub near_rtt: Duration,
    /// Worker threads, each with a runtime and listeners of its own; 0 starts
    /// [`crate::resources::default_workers`].
    pub workers: usize,
    /// Limit on the copied response bytes that wait to be sent. `None` means 25 % of the memory
    /// limit, at most 1 GiB.
    pub send_memory_bytes: Option<u64>,
    /// Refuses requests while the process is short of memory.
    pub overload: OverloadManager,
    /// Paths that are served even while the process is short of memory: probes and metrics.
    pub essential_paths: &'static [&'static str],
    /// The registry of the server's metrics.
    pub metrics: Metrics,
}
