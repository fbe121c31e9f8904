//! The members of a pool, with their connections, health and counters.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::Uri;
use http::header::HeaderValue;
use upstream::{
    ClientCertificate, TrustedAuthorities, UpstreamClient, UpstreamError, UpstreamLimits,
};

use super::choice;
use super::health::OriginHealth;
use super::origin_metrics::OriginMetrics;
use super::resolver::ResolvedServer;

/// One origin server.
#[derive(Debug)]
pub(super) struct OriginPoolMember {
    /// The configured URL. This URL is the label in the metrics. Addresses from DNS are not used as
    /// labels, because their number is unlimited.
    pub url: String,
    /// The server's entry in DNS, if the server was found in DNS.
    pub resolved: Option<ResolvedServer>,
    pub seed: u64,
    pub host: HeaderValue,
    pub upstream: UpstreamClient,
    pub health: Mutex<OriginHealth>,
    pub answers: AtomicU64,
    pub failures: AtomicU64,
    /// Time at which a failure was last logged.
    pub logged_at: Mutex<Option<Instant>>,
}

/// Minimum time between two log lines about failures of a member. Without this limit, each request
/// to a failed origin would add a log line.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A member with its current weight in the pool.
#[derive(Debug, Clone)]
pub(super) struct WeightedMember {
    pub member: Arc<OriginPoolMember>,
    /// Share of requests relative to the other members, above 0 and at most 1.
    pub weight: f64,
}

/// The settings that all members of a pool share.
pub(super) struct PoolConnectionSettings<'a> {
    pub limits: &'a UpstreamLimits,
    pub authorities: &'a TrustedAuthorities,
    pub certificate: Option<&'a ClientCertificate>,
    pub counts: &'a OriginMetrics,
}

impl OriginPoolMember {
    pub fn lock_health(&self) -> MutexGuard<'_, OriginHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the result of an attempt for the status page.
    pub fn count_result(&self, result: &str) {
        match result {
            "answer" => self.answers.fetch_add(1, Relaxed),
            "error" | "late" | "failed" => self.failures.fetch_add(1, Relaxed),
            _ => 0,
        };
    }

    /// Logs why a request failed, unless a failure was already logged within [`LOG_INTERVAL`].
    pub fn log_failure(&self, failed: &UpstreamError, now: Instant) {
        let mut logged_at = self
            .logged_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|at| now.saturating_duration_since(at) >= LOG_INTERVAL) {
            *logged_at = Some(now);
            tracing::warn!(origin = self.url, error = %failed, "a request to the origin failed");
        }
    }

    /// Returns the server's address, if the server was found in DNS.
    pub fn address(&self) -> Option<SocketAddr> {
        self.resolved.as_ref().map(|server| server.address)
    }

    /// Returns whether the member has this configured URL, and this name and address in DNS. The
    /// weight may differ.
    pub fn matches_server(&self, url: &str, resolved: Option<&ResolvedServer>) -> bool {
        let identity = |server: &ResolvedServer| (server.name.clone(), server.address);
        self.url == url && self.resolved.as_ref().map(identity) == resolved.map(identity)
    }
}

impl PoolConnectionSettings<'_> {
    /// Creates a member for a configured URL. `server` contains the scheme and the host of the
    /// member's requests. `resolved` is the server's entry in DNS, if the server was found in DNS.
    ///
    /// # Errors
    /// When the URL is not a valid server URL.
    pub fn build_member(
        &self,
        url: String,
        server: &Uri,
        resolved: Option<ResolvedServer>,
    ) -> io::Result<Arc<OriginPoolMember>> {
        let limits = self.limits.clone();
        let upstream = UpstreamClient::new(server, self.counts.workers, limits, self.authorities)?;
        let opened = self.counts.connections_opened.clone();
        let upstream = upstream.with_open_hook(move || {
            opened.inc();
        });
        let upstream = match self.certificate {
            Some(certificate) => upstream.with_certificate(certificate.clone()),
            None => upstream,
        };
        let upstream = match &resolved {
            Some(server) => upstream.with_fixed_address(server.address),
            None => upstream,
        };
        let host = HeaderValue::from_str(upstream.authority());
        let name = resolved.as_ref().map_or(&url, |server| &server.name);
        Ok(Arc::new(OriginPoolMember {
            seed: choice::fnv1a_hash(name.as_bytes()),
            url,
            resolved,
            // A parsed authority consists of visible ASCII, so the conversion succeeds.
            host: host.unwrap_or(HeaderValue::from_static("")),
            upstream,
            health: Mutex::default(),
            answers: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            logged_at: Mutex::default(),
        }))
    }
}
