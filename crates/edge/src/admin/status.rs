//! The state of the edge as JSON, for programs and for the status page.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use net::{TcpInfo, WeakConnection};
use serde_json::{Value, json};

use super::AdminPort;
use crate::Edge;
use crate::cache_entry::CacheEntry;

/// Maximum number of objects on the status page.
const TOP: usize = 20;
/// Maximum number of connections that are sampled for the status page.
const LOOKED_AT_MAX: usize = 2000;

pub fn build_status(admin: &AdminPort, edge: &Edge) -> Value {
    let mut objects: Vec<_> = edge
        .memory
        .all_entries()
        .into_iter()
        .filter_map(|(key, entry)| match entry {
            CacheEntry::Object(object) => Some((object.use_count.load(Relaxed), key, object)),
            _ => None,
        })
        .collect();
    objects.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let top = objects.iter().take(TOP).map(|(uses, key, object)| {
        json!({
            "key": key.as_str(), "uses": uses, "bytes": object.body.len(),
            "age_s": object.age_s(), "ttl_s": object.ttl_s(), "status": object.status.as_u16(),
        })
    });
    json!({
        "objects": objects.len(),
        "memory_bytes": edge.memory.stored_bytes(),
        "memory_bytes_max": edge.settings.memory_bytes,
        "disk": edge.disk.describe_status(),
        "up_s": admin.started_at.elapsed().as_secs(),
        "fetches": edge.flights.len(),
        "results": edge.request_counts_by_result(),
        "origins": edge.origins.origin_statuses(),
        "connections": summarize_connections(admin),
        "draining": edge.shutdown.is_draining(),
        "viewers": edge.collector.as_ref().map(|collector| collector.session_count()),
        "top": top.collect::<Vec<_>>(),
    })
}

/// Summarizes the sampled connections for each congestion control algorithm. Reports the number of
/// connections and of paced connections, the median RTT, the median delivery rate and the
/// retransmission rate.
fn summarize_connections(admin: &AdminPort) -> Value {
    let (open, some) = admin.connections.list_connections(LOOKED_AT_MAX);
    let mut by: BTreeMap<String, Vec<TcpInfo>> = BTreeMap::new();
    for info in some.iter().filter_map(WeakConnection::tcp_info) {
        by.entry(info.algorithm.clone()).or_default().push(info);
    }
    let looked_at: usize = by.values().map(Vec::len).sum();
    let rows = by.iter().map(|(algorithm, all)| {
        let sum = |of: fn(&TcpInfo) -> Option<u64>| all.iter().filter_map(of).sum::<u64>();
        let (sent, retransmitted) = (sum(|i| i.bytes_sent), sum(|i| i.bytes_retrans));
        json!({
            "algorithm": algorithm, "connections": all.len(),
            "rtt_us": median_of(all, |info| info.rtt_us.map(u64::from)),
            "delivery_bytes_per_s": median_of(all, |info| info.delivery_rate_bytes_per_s),
            "paced": all.iter().filter(|i| i.max_pacing_rate_bytes_per_s.is_some_and(|r| r < u64::MAX)).count(),
            "retransmitted": retransmitted as f64 / sent.max(1) as f64,
        })
    });
    json!({ "open": open, "looked_at": looked_at, "by_algorithm": rows.collect::<Vec<_>>() })
}

/// Returns the median of one TCP statistic over the connections that report a value above zero.
fn median_of(all: &[TcpInfo], of: impl Fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    let mut values: Vec<u64> = all
        .iter()
        .filter_map(of)
        .filter(|value| *value > 0)
        .collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
