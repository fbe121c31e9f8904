//! How it goes, for programs and for the page.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use net::{TcpInfo, Watch};
use serde_json::{Value, json};

use super::Admin;
use crate::Edge;
use crate::entry::Entry;

/// Objects shown on the status page.
const TOP: usize = 20;
/// Connections that are looked at.
const LOOKED_AT_MAX: usize = 2000;

pub fn of(admin: &Admin, edge: &Edge) -> Value {
    let mut objects: Vec<_> = edge
        .memory
        .all()
        .into_iter()
        .filter_map(|(key, entry)| match entry {
            Entry::Object(object) => Some((object.uses.load(Relaxed), key, object)),
            _ => None,
        })
        .collect();
    objects.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let top = objects.iter().take(TOP).map(|(uses, key, object)| {
        json!({
            "key": key.as_str(), "uses": uses, "bytes": object.content.len(),
            "age_s": object.age_s(), "ttl_s": object.ttl_s(), "status": object.status.as_u16(),
        })
    });
    json!({
        "objects": objects.len(),
        "memory_bytes": edge.memory.bytes(),
        "memory_bytes_max": edge.settings.memory_bytes,
        "disk": edge.disk.state(),
        "up_s": admin.since.elapsed().as_secs(),
        "fetches": edge.flights.len(),
        "results": edge.results(),
        "origins": edge.origins.states(),
        "connections": connections(admin),
        "draining": edge.shutdown.is_draining(),
        "top": top.collect::<Vec<_>>(),
    })
}

/// Connections by the algorithm that sends on them: how many, and the middle of their figures.
fn connections(admin: &Admin) -> Value {
    let (open, some) = admin.connections.look(LOOKED_AT_MAX);
    let mut by: BTreeMap<String, Vec<TcpInfo>> = BTreeMap::new();
    for info in some.iter().filter_map(Watch::tcp) {
        by.entry(info.algorithm.clone()).or_default().push(info);
    }
    let looked_at: usize = by.values().map(Vec::len).sum();
    let rows = by.iter().map(|(algorithm, all)| {
        let sum = |of: fn(&TcpInfo) -> Option<u64>| all.iter().filter_map(of).sum::<u64>();
        let (sent, again) = (sum(|i| i.bytes_sent), sum(|i| i.bytes_retrans));
        json!({
            "algorithm": algorithm, "connections": all.len(),
            "rtt_us": middle(all, |info| info.rtt_us.map(u64::from)),
            "delivery_bytes_per_s": middle(all, |info| info.delivery_rate_bytes_per_s),
            "paced": all.iter().filter(|i| i.max_pacing_rate_bytes_per_s.is_some_and(|r| r < u64::MAX)).count(),
            "retransmitted": again as f64 / sent.max(1) as f64,
        })
    });
    json!({ "open": open, "looked_at": looked_at, "by_algorithm": rows.collect::<Vec<_>>() })
}

/// The median of a figure, of those that have it.
fn middle(all: &[TcpInfo], of: impl Fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    let mut values: Vec<u64> = all
        .iter()
        .filter_map(of)
        .filter(|value| *value > 0)
        .collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
