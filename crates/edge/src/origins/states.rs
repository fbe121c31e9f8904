//! Health probes, and the state of the origins for the status page.

use super::{OriginClient, PoolMember, PoolState};
use futures_util::future::join_all;
use http::{Request, header};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of an origin for the status page.
#[derive(Debug, serde::Serialize)]
pub struct OriginStatus {
    pub pool: String,
    pub url: String,
    /// Current share of requests, from 0 (suspended) to 1.
    pub share: f64,
    pub answers: u64,
    pub failures: u64,
}

impl OriginClient {
    /// Probes all origins of pools with a health path.
    pub async fn probe_origins(&self, worker: usize) {
        let probed = self.pools.values().filter_map(|pool| {
            let path = pool.probe.as_deref()?;
            Some(pool.members.iter().map(move |member| (path, member)))
        });
        let probes = probed.flatten().map(|(path, member)| async move {
            let good = member.send_probe(worker, path).await;
            let care = &self.treatment.care;
            let change = member
                .lock_health()
                .record_probe(good, care, Instant::now());
            self.log_change(member, change);
        });
        join_all(probes).await;
    }

    /// Returns the state of all origins.
    pub fn origin_statuses(&self) -> Vec<OriginStatus> {
        let now = Instant::now();
        let each = |(name, pool): (&Arc<str>, &PoolState)| {
            let state = |member: &Arc<PoolMember>| {
                let count = |result| {
                    self.counts
                        .requests
                        .with_labels(&[&member.url, result])
                        .get()
                };
                OriginStatus {
                    pool: name.to_string(),
                    url: member.url.clone(),
                    share: self.current_share(pool, member, now),
                    answers: count("answer"),
                    failures: count("error") + count("late") + count("failed"),
                }
            };
            pool.members.iter().map(state).collect::<Vec<_>>()
        };
        self.pools.iter().flat_map(each).collect()
    }
}

impl PoolMember {
    async fn send_probe(&self, worker: usize, path: &str) -> bool {
        let request = Request::get(path).header(header::HOST, &self.host).body(());
        let Ok(request) = request else {
            return false;
        };
        let asked = tokio::time::timeout(PROBE_TIMEOUT, self.upstream.send(worker, &request)).await;
        let Ok(Ok(mut answer)) = asked else {
            return false;
        };
        let good = answer.status.is_success() || answer.status.is_redirection();
        // A drained response lets the connection be reused. Draining a long body is not worth it.
        if answer.len().is_some_and(|len| len < 4096) {
            while let Ok(Some(_)) = answer.next_data().await {}
        }
        good
    }
}
