//! Health probes, and the state of the origins for the status page.

use super::member::{OriginPoolMember, WeightedMember};
use super::{OriginClient, PoolState};
use futures_util::future::join_all;
use http::{HeaderMap, Request, header};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Timeout of a probe, including the body of its response.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of an origin for the status page.
#[derive(Debug, serde::Serialize)]
pub struct OriginStatus {
    pub pool: String,
    pub url: String,
    /// Address of a server that was found in DNS. Absent if the URL itself names the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Share of requests that the origin gets now, as a fraction of its normal share. The value is
    /// from 0 (suspended) to 1.
    pub share: f64,
    pub answers: u64,
    pub failures: u64,
}

impl OriginClient {
    /// Sends a health probe to all origins of the pools that have a health path.
    pub async fn probe_origins(&self, worker: usize) {
        let probed = self.pools.values().filter_map(|pool| {
            let path = pool.probe.as_deref()?;
            let members = pool.members.list_members().to_vec();
            let members = members.into_iter();
            Some(members.map(move |listed| (pool, path, listed.member)))
        });
        let probes = probed.flatten().map(|(pool, path, member)| async move {
            let mut headers = HeaderMap::new();
            self.add_edge_secret(pool, &mut headers);
            let Some(good) = member.send_probe(worker, path, headers).await else {
                return;
            };
            let care = &self.treatment.care;
            let change = member
                .lock_health()
                .record_probe(good, care, Instant::now());
            self.log_health_change(&member, change);
        });
        join_all(probes).await;
    }

    /// Closes the idle connections that have been idle for too long or that an origin has closed.
    pub fn sweep_idle_connections(&self) {
        for pool in self.pools.values() {
            for listed in pool.members.list_members().iter() {
                listed.member.upstream.sweep_idle_connections();
            }
        }
    }

    /// Returns the state of all origins.
    pub fn origin_statuses(&self) -> Vec<OriginStatus> {
        let now = Instant::now();
        let each = |(name, pool): (&Arc<str>, &PoolState)| {
            let state = |listed: &WeightedMember| {
                let member = &listed.member;
                OriginStatus {
                    pool: name.to_string(),
                    url: member.url.clone(),
                    address: member.address().map(|address| address.to_string()),
                    share: self.current_share(pool, member, now),
                    answers: member.answers.load(Relaxed),
                    failures: member.failures.load(Relaxed),
                }
            };
            pool.members
                .list_members()
                .iter()
                .map(state)
                .collect::<Vec<_>>()
        };
        self.pools.iter().flat_map(each).collect()
    }
}

impl OriginPoolMember {
    /// Returns whether the probe succeeded. Returns `None` if the probe was not sent, because the
    /// origin has too many requests in flight.
    async fn send_probe(&self, worker: usize, path: &str, headers: HeaderMap) -> Option<bool> {
        let request = Request::get(path).header(header::HOST, &self.host).body(());
        let Ok(mut request) = request else {
            return Some(false);
        };
        request.headers_mut().extend(headers);
        let exchange = async {
            let mut response = match self.upstream.send_repeatable(worker, &request).await {
                Ok(response) => response,
                Err(failed) if failed.is_request_limit => return None,
                Err(_) => return Some(false),
            };
            let good = response.status.is_success() || response.status.is_redirection();
            // A connection can be reused only after the whole response has been read. For a long
            // body, a new connection is cheaper.
            if response.remaining().is_some_and(|len| len < 4096) {
                while let Ok(Some(_)) = response.next_data().await {}
            }
            Some(good)
        };
        let probed = tokio::time::timeout(PROBE_TIMEOUT, exchange).await;
        probed.unwrap_or(Some(false))
    }
}
