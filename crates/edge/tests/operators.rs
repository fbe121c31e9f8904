//! Metrics and access logs: the operators' view of the edge.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{ScriptedOrigin, TestEdge};

/// Returns the number of timed requests with this cache result and this kind of content.
fn timed_requests(edge: &TestEdge, result: &str, kind: &str) -> u64 {
    count_timings(edge, "http_request_duration", result, kind)
}

/// Returns the number of values in a duration histogram with this cache result and kind of content.
fn count_timings(edge: &TestEdge, histogram: &str, result: &str, kind: &str) -> u64 {
    let labels = format!("{{result=\"{result}\",kind=\"{kind}\"}}");
    edge.read_metric(&format!("headwater_{histogram}_seconds_count{labels}"))
}

#[test]
fn requests_are_timed_by_cache_result_and_kind_of_content() {
    let fresh = || vec!["Cache-Control: max-age=60".to_owned()];
    let (address, _) = ScriptedOrigin::start_with(move |exchange| match exchange.target() {
        "/private" => (
            200,
            vec!["Cache-Control: private".to_owned()],
            b"p".to_vec(),
        ),
        _ => (200, fresh(), b"body".to_vec()),
    });
    let edge = TestEdge::new(address, &[]);
    for path in ["/a.m4s", "/a.m4s", "/a.m4s?b", "/a.m4s?b", "/a.m3u8"] {
        assert_eq!(edge.get_path(path).status, 200, "{path}");
    }
    for path in ["/a", "/a", "/a", "/private", "/healthz"] {
        assert_eq!(edge.get_path(path).status, 200, "{path}");
    }
    assert_eq!(edge.request("POST", "/a", &[]).status, 200);
    // The response to HEAD has no body, so the time of its first byte is not recorded.
    assert_eq!(edge.request("HEAD", "/a.m4s", &[]).status, 200);
    for (result, kind, count, with_body) in [
        ("miss", "segment", 2, 2),
        ("hit", "segment", 3, 2),
        ("miss", "playlist", 1, 1),
        ("hit", "playlist", 0, 0),
        ("miss", "other", 2, 2),
        ("hit", "other", 2, 2),
        ("pass", "other", 1, 1),
        ("stale", "other", 0, 0),
    ] {
        let requests = timed_requests(&edge, result, kind);
        assert_eq!(requests, count, "{result} {kind}");
        let first_bytes = count_timings(&edge, "http_first_byte", result, kind);
        assert_eq!(first_bytes, with_body, "{result} {kind}");
    }
    // All misses and the POST needed the origin.
    let from_origin = "headwater_upstream_response_seconds_count";
    assert_eq!(edge.read_metric(from_origin), 6);
    // The requests for the metrics are counted with the result `own`.
    assert!(timed_requests(&edge, "own", "other") >= 1);
}

#[test]
fn a_request_is_in_flight_until_its_response_is_sent() {
    let name = "headwater_http_requests_in_flight";
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/slow", &[]);
    let exchange = origin.next_request();
    // The request for the metrics is the second request in flight.
    assert_eq!(edge.read_metric(name), 2);
    exchange.respond(200, &["Cache-Control: max-age=60"], b"late");
    assert_eq!(client.read_response("GET").text(), "late");
    edge.wait_for_metric(name, 1);
    // If the client disconnects, its request is no longer in flight.
    let mut client = edge.connect();
    client.send("GET", "/abandoned", &[]);
    let _exchange = origin.next_request();
    // The count may still include the previous request for the metrics.
    edge.wait_for_metric(name, 2);
    drop(client);
    edge.wait_for_metric(name, 1);
}

#[test]
fn an_extended_log_contains_the_cache_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let (address, _) = ScriptedOrigin::start_with(|_| {
        (
            200,
            vec!["Cache-Control: max-age=60".to_owned()],
            b"body".to_vec(),
        )
    });
    let records = [
        "--records",
        path.to_str().unwrap(),
        "--records-format",
        "w3c",
    ];
    let mut edge = TestEdge::new(address, &records);
    for _ in 0..2 {
        edge.get_path("/a?CMCD=bl%3D1");
    }
    edge.drain();
    let text = std::fs::read_to_string(&path).unwrap();
    // The W3C format has no lines for TCP samples, so each request has exactly one line.
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let ends = lines.iter().filter_map(|line| line.rsplit(' ').next());
    let mut ends: Vec<_> = ends.collect();
    // Two workers may write the records of two connections in either order.
    ends.sort_unstable();
    assert_eq!(ends, ["hit", "miss"], "{text}");
    assert!(
        lines[0].contains(" GET /a CMCD=bl%3D1 HTTP/1.1 200 4 "),
        "{text}"
    );
}
