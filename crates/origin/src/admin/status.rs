//! The state of the origin as JSON, for programs and for the status page.

use super::AdminState;
use serde_json::{Value, json};
use store::RequestReason;

/// Maximum number of connections to list. The status contains only the number of connections, so no
/// connection is listed.
const SAMPLED_MAX: usize = 0;

pub(super) fn build_status(admin: &AdminState) -> Value {
    let origin = &admin.origin;
    let (catalog, store) = (&origin.catalog, origin.catalog.library());
    let (open, _) = admin.connections.list_connections(SAMPLED_MAX);
    let meter = store.meter();
    let requests: u64 = RequestReason::ALL
        .into_iter()
        .map(|reason| meter.request_count(reason))
        .sum();
    json!({
        "up_s": admin.started_at.elapsed().as_secs(),
        "draining": origin.shutdown.is_draining(),
        "connections": open,
        "titles": catalog.cached_count(),
        "index_builds": catalog.build_count(),
        "index_memory_bytes": catalog.memory_bytes(),
        "segment_memory_bytes": origin.segment_cache.memory_bytes(),
        "library": {
            "remote": store.is_remote(),
            "failure": origin.library_status.unavailable_reason(),
            "requests": requests,
        },
        "viewers": origin.collector.as_ref().map(|collector| collector.session_count()),
    })
}
