//! The list of a pool's members, and the refresh of this list from DNS.
//!
//! A refresh replaces the whole list. A request in flight keeps its member until the request
//! finishes.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Uri;
use tokio::sync::Notify;

use super::dns_origin::DnsOrigin;
use super::member::{PoolConnectionSettings, WeightedMember};
use super::resolver::{OriginDnsResolver, ResolutionError, ResolvedServer};
use super::{OriginClient, OriginPoolSettings, PoolState};

/// The members of one pool.
#[derive(Debug)]
pub(super) struct PoolMembers {
    sources: Vec<MemberSource>,
    /// The members of all configured URLs, in the configured order.
    listed: ArcSwap<Vec<WeightedMember>>,
    /// Set when all configured URLs have members, or when the first DNS resolution of all URLs has
    /// finished, with or without success.
    is_resolved: AtomicBool,
    resolved: Notify,
}

/// A configured URL with its members. A URL with `dns+` has the members that DNS lists. Any other
/// URL has one member.
#[derive(Debug)]
struct MemberSource {
    url: String,
    dns: Option<DnsOrigin>,
    members: Mutex<Vec<WeightedMember>>,
}

impl PoolMembers {
    /// Creates the members of a pool. Members that `old` already contains are reused.
    ///
    /// # Errors
    /// When a URL is not a valid server URL.
    pub fn new(
        pool: &OriginPoolSettings,
        settings: &PoolConnectionSettings<'_>,
        old: Option<&PoolMembers>,
    ) -> io::Result<PoolMembers> {
        let sources = pool.origins.iter();
        let sources = sources.map(|url| MemberSource::new(url, settings, old));
        let members = PoolMembers {
            sources: sources.collect::<io::Result<_>>()?,
            listed: ArcSwap::default(),
            is_resolved: AtomicBool::new(false),
            resolved: Notify::new(),
        };
        members.update_member_list();
        let is_filled = |source: &MemberSource| !source.lock_members().is_empty();
        let is_resolved = members.sources.iter().all(is_filled);
        members.is_resolved.store(is_resolved, Relaxed);
        Ok(members)
    }

    /// Returns the current members without waiting.
    pub fn list_members(&self) -> Arc<Vec<WeightedMember>> {
        self.listed.load_full()
    }

    /// Returns the members. If the pool has no members yet, waits up to `timeout` for the first
    /// resolution.
    pub async fn list_members_when_resolved(&self, timeout: Duration) -> Arc<Vec<WeightedMember>> {
        let resolved = self.resolved.notified();
        let members = self.list_members();
        if members.is_empty() && !self.is_resolved.load(Relaxed) {
            let _ = tokio::time::timeout(timeout, resolved).await;
            return self.list_members();
        }
        members
    }

    fn update_member_list(&self) {
        let members = self.sources.iter();
        let members = members.flat_map(|source| source.lock_members().clone());
        self.listed.store(Arc::new(members.collect()));
    }
}

impl MemberSource {
    fn new(
        url: &Uri,
        settings: &PoolConnectionSettings<'_>,
        old: Option<&PoolMembers>,
    ) -> io::Result<MemberSource> {
        let text = url.to_string();
        let old = old.and_then(|old| old.sources.iter().find(|source| source.url == text));
        let dns = DnsOrigin::from_uri(url).transpose();
        let dns = dns.map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let members = match (old, &dns) {
            (Some(old), _) => old.lock_members().clone(),
            (None, Some(_)) => Vec::new(),
            (None, None) => vec![WeightedMember {
                member: settings.build_member(text.clone(), url, None)?,
                weight: 1.0,
            }],
        };
        Ok(MemberSource {
            url: text,
            dns,
            members: Mutex::new(members),
        })
    }

    fn lock_members(&self) -> std::sync::MutexGuard<'_, Vec<WeightedMember>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the members by the servers in `found`. Servers that are already members keep their
    /// connections and health.
    fn replace_members(
        &self,
        server: &Uri,
        found: Vec<ResolvedServer>,
        settings: &PoolConnectionSettings<'_>,
    ) -> io::Result<()> {
        let old = self.lock_members().clone();
        let weight_max = found.iter().map(|server| server.weight).max();
        let weight_max = f64::from(weight_max.unwrap_or_default().max(1));
        let member = |resolved: ResolvedServer| {
            // A weight of 0 means a very small share of the requests (RFC 2782).
            let weight = f64::from(resolved.weight.max(1)) / weight_max;
            let mut known = old.iter().map(|listed| &listed.member);
            let known = known.find(|member| member.matches_server(&self.url, Some(&resolved)));
            let member = match known {
                Some(known) => known.clone(),
                None => settings.build_member(self.url.clone(), server, Some(resolved))?,
            };
            Ok(WeightedMember { member, weight })
        };
        let members: Vec<_> = found.into_iter().map(member).collect::<io::Result<_>>()?;
        log_member_changes(&self.url, &old, &members);
        *self.lock_members() = members;
        Ok(())
    }
}

fn log_member_changes(origin: &str, old: &[WeightedMember], new: &[WeightedMember]) {
    let missing = |from: &[WeightedMember], of: &[WeightedMember]| -> Vec<String> {
        let is_listed =
            |one: &WeightedMember| from.iter().any(|o| Arc::ptr_eq(&o.member, &one.member));
        let missing = of.iter().filter(|one| !is_listed(one));
        let address = |one: &WeightedMember| one.member.address().map(|at| at.to_string());
        missing.filter_map(address).collect()
    };
    let (added, removed) = (missing(old, new), missing(new, old));
    if !added.is_empty() || !removed.is_empty() {
        tracing::info!(origin, ?added, ?removed, "members of the pool changed");
    }
}

impl OriginClient {
    /// Resolves all origins whose servers are listed in DNS. If a resolution fails, the origin
    /// keeps its members.
    pub async fn refresh_members(&self, dns_servers: &[SocketAddr]) {
        let resolver = OriginDnsResolver::new(dns_servers);
        for pool in self.pools.values() {
            let settings = PoolConnectionSettings {
                limits: &self.treatment.limits,
                authorities: &pool.authorities,
                certificate: self.credentials.certificate.as_ref(),
                counts: &self.counts,
            };
            for source in &pool.members.sources {
                let Some(dns) = &source.dns else {
                    continue;
                };
                let found = match &resolver {
                    Ok(resolver) => resolver.resolve_origin_servers(dns).await,
                    Err(error) => Err(ResolutionError::Failed(error.to_string())),
                };
                let found = found.and_then(|found| {
                    let replaced = source.replace_members(&dns.server, found, &settings);
                    replaced.map_err(|error| ResolutionError::Failed(error.to_string()))
                });
                self.counts.record_resolution(&source.url, found);
            }
            pool.members.update_member_list();
            pool.members.is_resolved.store(true, Relaxed);
            pool.members.resolved.notify_waiters();
        }
        self.update_member_count_metric();
    }

    /// Updates the number of members in the metrics.
    pub(super) fn update_member_count_metric(&self) {
        let members = |pool: &PoolState| pool.members.list_members().len();
        let count = self.pools.values().map(members).sum::<usize>();
        self.counts
            .members
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}
