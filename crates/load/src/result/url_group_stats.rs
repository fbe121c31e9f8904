//! Statistics of the requests for one group of URLs.

use super::{FinishedRequest, LatencyHistogram};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of URL groups in a result. The limit bounds the memory, because each group has a
/// histogram.
pub const URL_GROUPS_MAX: usize = 64;

/// Name of the group that contains all URLs beyond the limit.
pub const URL_GROUP_OTHER: &str = "other URLs";

/// Counters of requests and the distribution of latencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UrlGroupStats {
    /// Requests that completed or failed.
    pub requests: u64,
    /// Failures and responses with a status of 400 or more.
    pub errors: u64,
    /// Received bytes of bodies.
    pub bytes: u64,
    /// Latency from the due time to the end of the response or to the failure. In a closed loop,
    /// the latency starts at sending.
    pub latency: LatencyHistogram,
}

impl UrlGroupStats {
    /// Adds the counts and the distribution in `other`.
    pub fn merge(&mut self, other: &UrlGroupStats) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }

    /// Counts one request.
    pub(crate) fn count_request(&mut self, request: &FinishedRequest, closed_loop: bool) {
        self.requests += 1;
        self.errors += u64::from(request.fault.is_some() || request.status >= 400);
        self.bytes += request.bytes;
        let from = match closed_loop {
            true => request.sent,
            false => Some(request.due),
        };
        if let Some(from) = from {
            let took = request.end.saturating_duration_since(from);
            self.latency.record(took);
        }
    }
}

/// Returns the group called `name`. If the limit is reached, returns the group of all other URLs
/// instead of a new group.
pub(crate) fn url_group_or_other<'a>(
    all: &'a mut BTreeMap<String, UrlGroupStats>,
    name: &str,
) -> &'a mut UrlGroupStats {
    let room = all.contains_key(name) || all.len() + 1 < URL_GROUPS_MAX;
    let name = if room { name } else { URL_GROUP_OTHER };
    all.entry(name.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_a_limited_number_of_groups() {
        let mut all = BTreeMap::new();
        for number in 0..2 * URL_GROUPS_MAX {
            url_group_or_other(&mut all, &number.to_string()).requests += 1;
        }
        assert_eq!(all.len(), URL_GROUPS_MAX);
        let beyond = all[URL_GROUP_OTHER].requests;
        assert_eq!(beyond as usize, URL_GROUPS_MAX + 1);
    }
}
