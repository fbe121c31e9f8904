//! The choice of an origin, and retries.

use crate::support::{ScriptedOrigin, format_head};
use crate::{
    KEEP, closed_port, count_sent, start_edge, start_edge_with_archive_pool, start_named_origin,
};

#[test]
fn each_file_has_one_origin_and_all_edges_agree() {
    let origins = [
        start_named_origin("a"),
        start_named_origin("b"),
        start_named_origin("c"),
    ];
    let addresses: Vec<_> = origins.iter().map(|(address, _)| *address).collect();
    let (one, other) = (start_edge(&addresses, &[]), start_edge(&addresses, &[]));
    let mut bodies = std::collections::BTreeSet::new();
    for n in 0..30 {
        let path = format!("/film/{n}.m4s");
        let body = one.get_path(&path).text();
        assert_eq!(body, other.get_path(&format!("{path}?x")).text());
        bodies.insert(body);
    }
    assert_eq!(bodies.len(), 3, "every origin gets requests");
}

#[test]
fn a_failing_origin_is_skipped_and_then_suspended() {
    let (dead, (alive, seen)) = (closed_port(), start_named_origin("alive"));
    let flags = [
        "--origin-balance",
        "first",
        "--origin-failures",
        "2",
        "--origin-retry-after",
        "1h",
    ];
    let edge = start_edge(&[dead, alive], &flags);
    for n in 0..10 {
        let response = edge.get_path(&format!("/{n}"));
        assert_eq!((response.status, response.text().as_str()), (200, "alive"));
    }
    assert_eq!(seen.lock().unwrap().len(), 10);
    assert_eq!(count_sent(&edge, dead, "failed"), 2);
    assert_eq!(
        edge.read_metric("headwater_upstream_retries_total{result=\"sent\"}"),
        2
    );
    assert_eq!(edge.read_metric("headwater_upstream_out_now"), 1);
}

#[test]
fn a_503_is_retried_elsewhere_and_a_404_is_not() {
    let (busy, _) = ScriptedOrigin::start_with(|exchange| {
        let status = if exchange.target() == "/no" { 404 } else { 503 };
        (status, vec![], b"busy".to_vec())
    });
    let (well, seen) = start_named_origin("well");
    let edge = start_edge(
        &[busy, well],
        &["--origin-balance", "first", "--origin-failures", "99"],
    );
    assert_eq!(edge.get_path("/a").text(), "well");
    assert_eq!(edge.get_path("/no").status, 404);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn the_retry_budget_protects_a_failing_fleet() {
    let sick = || ScriptedOrigin::start_with(|_| (503, vec![], b"sick".to_vec()));
    let (one, other) = (sick(), sick());
    let flags = ["--origin-retries", "0", "--origin-failures", "1000"];
    let edge = start_edge(&[one.0, other.0], &flags);
    for n in 0..100 {
        let response = edge.get_path(&format!("/{n}"));
        assert_eq!((response.status, response.text().as_str()), (503, "sick"));
    }
    let request_count = one.1.lock().unwrap().len() + other.1.lock().unwrap().len();
    let retried = edge.read_metric("headwater_upstream_retries_total{result=\"sent\"}");
    let spent = edge.read_metric("headwater_upstream_retries_total{result=\"spent\"}");
    assert_eq!(request_count as u64, 100 + retried);
    // The retry budget starts with ten retries and gains one retry per second. The limit of 80
    // retries allows for a slow test run.
    assert!(retried < 80 && retried + spent == 100, "{retried} {spent}");
}

#[test]
fn a_single_origin_gets_requests_after_any_failures() {
    let dead = closed_port();
    let edge = start_edge(
        &[dead],
        &["--origin-failures", "1", "--origin-retry-after", "1h"],
    );
    for _ in 0..3 {
        let response = edge.get_path("/a");
        assert_eq!(response.status, 502);
        let readers = response.header("access-control-allow-origin");
        assert_eq!(readers.as_deref(), Some("*"), "a player may read it");
        assert_eq!(
            response.text(),
            "502 Bad Gateway: the origin is not reachable\n"
        );
    }
    assert_eq!(count_sent(&edge, dead, "failed"), 3);
}

#[test]
fn a_rule_selects_a_pool_with_a_separate_cache() {
    let (usual, archive) = (start_named_origin("usual"), start_named_origin("archive"));
    let edge = start_edge_with_archive_pool(usual.0, archive.0);
    for _ in 0..3 {
        assert_eq!(edge.get_path("/a").text(), "usual");
        assert_eq!(
            edge.request("GET", "/a", &["X-From: archive"]).text(),
            "archive"
        );
        edge.wait_for_metric("headwater_cache_flights", 0);
    }
    assert_eq!(
        (
            usual.1.lock().unwrap().len(),
            archive.1.lock().unwrap().len()
        ),
        (1, 1)
    );
}

#[test]
fn a_slow_follower_of_a_failed_origin_is_cut() {
    let (one, other) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let edge = start_edge(
        &[one.address, other.address],
        &["--origin-balance", "first"],
    );
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let mut exchange = one.next_request();
    exchange.send(format_head(200, &[KEEP], Some(6)));
    exchange.send("abc");
    client.read_head();
    assert_eq!(client.take(3), b"abc");
    drop(exchange);
    // If the origin fails after the body has started, the edge cuts the response. The edge never
    // continues the body with another origin's bytes.
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(other.request_count(), 0);
}
