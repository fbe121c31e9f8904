//! How origins are: asked by probes, and told to people.

use super::{Member, Members, Origins};
use futures_util::future::join_all;
use http::{Request, header};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait for a probe's answer.
const PROBE_MAX: Duration = Duration::from_secs(5);

/// How an origin is, for people.
#[derive(Debug, serde::Serialize)]
pub struct State {
    pub pool: String,
    pub url: String,
    /// Its share of requests now, of 1; 0: it is not asked.
    pub share: f64,
    pub answers: u64,
    pub failures: u64,
}

impl Origins {
    /// Asks every origin that is to be probed how it is.
    pub async fn probe(&self, worker: usize) {
        let probed = self.pools.values().filter_map(|pool| {
            let path = pool.probe.as_deref()?;
            Some(pool.members.iter().map(move |member| (path, member)))
        });
        let probes = probed.flatten().map(|(path, member)| async move {
            let good = member.probe(worker, path).await;
            let care = &self.treatment.care;
            let change = member.health().probed(good, care, Instant::now());
            self.say(member, change);
        });
        join_all(probes).await;
    }

    /// How all are.
    pub fn states(&self) -> Vec<State> {
        let now = Instant::now();
        let each = |(name, pool): (&Arc<str>, &Members)| {
            let state = |member: &Arc<Member>| {
                let count = |result| self.counts.requests.of(&[&member.url, result]).get();
                State {
                    pool: name.to_string(),
                    url: member.url.clone(),
                    share: self.share(pool, member, now),
                    answers: count("answer"),
                    failures: count("error") + count("late") + count("failed"),
                }
            };
            pool.members.iter().map(state).collect::<Vec<_>>()
        };
        self.pools.iter().flat_map(each).collect()
    }
}

impl Member {
    async fn probe(&self, worker: usize, path: &str) -> bool {
        let request = Request::get(path).header(header::HOST, &self.host).body(());
        let Ok(request) = request else {
            return false;
        };
        let asked = tokio::time::timeout(PROBE_MAX, self.upstream.send(worker, &request)).await;
        let Ok(Ok(mut answer)) = asked else {
            return false;
        };
        let good = answer.status.is_success() || answer.status.is_redirection();
        // So that the connection can be used again; a long body is not worth it.
        if answer.len().is_some_and(|len| len < 4096) {
            while let Ok(Some(_)) = answer.piece().await {}
        }
        good
    }
}
