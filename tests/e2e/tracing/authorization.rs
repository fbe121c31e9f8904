//! Tests the headers that a collector of spans requires.

use super::collector::SpanCollector;
use super::{find_spans, sampled, trace_id};
use crate::prometheus::scraper::wait_until;
use crate::support::{HeadwaterServer, TempFolder};

#[test]
fn a_rotated_key_of_the_collector_needs_no_restart() {
    let Some(collector) = SpanCollector::start() else {
        return;
    };
    collector.require_header("x-api-key: second");
    let folder = TempFolder::new();
    let file = folder.write_file("headers", b"X-Api-Key: first\n");
    let file = file.to_str().unwrap();
    let flags = [
        "--otlp-endpoint",
        &collector.url(),
        "--otlp-headers-file",
        file,
    ];
    let origin = HeadwaterServer::serve(&flags);
    let request = |n: u32| origin.request("GET", "/healthz", &[("traceparent", &sampled(n))]);
    request(1);
    let is_refused = || {
        let metrics = origin.get_text("/metrics");
        metrics
            .lines()
            .any(|line| line == "headwater_trace_spans_dropped_total 1")
    };
    assert!(wait_until(|| (), is_refused), "the first key was accepted");
    folder.write_file("headers", b"# Rotated\nX-Api-Key: second\n");
    request(2);
    collector.wait_for(&trace_id(2), |spans| {
        !find_spans(spans, "request").is_empty()
    });
}
