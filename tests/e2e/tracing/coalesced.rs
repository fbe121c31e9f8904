//! Tests the trace of a request that waits for the fetch of another request.

use super::collector::SpanCollector;
use super::held_origin::HeldOrigin;
use super::{find_spans, sampled, trace_id};
use crate::prometheus::scraper::wait_until;
use crate::support::{HeadwaterServer, send_request};

#[test]
fn the_wait_of_a_coalesced_request_is_linked_to_the_fetch() {
    let Some(collector) = SpanCollector::start() else {
        return;
    };
    let origin = HeldOrigin::start();
    let url = format!("http://{}", origin.address);
    let flags = ["--origin", &url, "--otlp-endpoint", &collector.url()];
    let edge = HeadwaterServer::start_program("edge", &flags);
    let address = edge.addr;
    let request = |n: u32| {
        std::thread::spawn(move || {
            send_request(address, "GET", "/film", &[("traceparent", &*sampled(n))]).status
        })
    };
    let leader = request(1);
    assert!(wait_until(|| (), || origin.received() == 1));
    let follower = request(2);
    let has_follower = || {
        let metrics = edge.get_text("/metrics");
        let mut lines = metrics.lines();
        lines.any(|line| line == "headwater_cache_followers 1")
    };
    assert!(wait_until(|| (), has_follower));
    origin.release();
    assert_eq!(
        (leader.join().unwrap(), follower.join().unwrap()),
        (200, 200)
    );
    let [of_leader, of_follower] = [1, 2].map(|n| {
        collector.wait_for(&trace_id(n), |spans| {
            !find_spans(spans, "request").is_empty()
        })
    });
    let fetch = find_spans(&of_leader, "edge.fetch")[0];
    assert!(find_spans(&of_leader, "wait").is_empty());
    assert!(find_spans(&of_follower, "edge.fetch").is_empty());
    let wait = find_spans(&of_follower, "wait")[0];
    let request = find_spans(&of_follower, "request")[0];
    assert_eq!(wait.parent_id, request.span_id);
    assert_eq!(wait.links, [format!("{}-{}", trace_id(1), fetch.span_id)]);
    assert_eq!(request.attributes["headwater.cache"], "follow");
    // The follower waits until the leader's fetch has a response. The fetch must therefore start
    // before the wait ends.
    assert!(fetch.start_ns < wait.end_ns && wait.end_ns <= request.end_ns);
    assert!(request.links.is_empty() && fetch.links.is_empty());
}
