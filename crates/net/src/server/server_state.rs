//! State that all workers share.

use std::sync::Arc;

use super::connection_limits::ConnectionLimits;
use super::connection_registry::ConnectionRegistry;
use super::low_rtt::LowRttDetector;
use super::request_rates::RequestRateLimiter;
use super::{CurrentCertificates, Limits, ListenerCopies};
use crate::metrics::DurationHistogram;
use crate::send_memory::SendMemory;
use crate::{OverloadManager, TrustedNetworks};

/// State that all workers share.
pub(super) struct ServerState {
    pub(super) limits: Limits,
    pub(super) trust: TrustedNetworks,
    pub(super) tls: Option<CurrentCertificates>,
    pub(super) connection_limits: ConnectionLimits,
    pub(super) request_rates: RequestRateLimiter,
    pub(super) low_rtt: Option<LowRttDetector>,
    pub(super) overload: OverloadManager,
    pub(super) essential_paths: &'static [&'static str],
    pub(super) send_memory: SendMemory,
    /// Copies of all listeners for a successor. The list is empty if this process does not pass its
    /// ports to a successor.
    pub(super) copies: ListenerCopies,
    /// One connection registry per worker.
    pub(super) registries: Vec<ConnectionRegistry>,
    pub(super) worker_delay: Arc<DurationHistogram>,
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerState")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
