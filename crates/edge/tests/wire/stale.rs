//! Stale responses: their revalidation, and their use when the origin fails.

use crate::KEEP;
use crate::support::{ScriptedOrigin, TestEdge};

#[test]
fn stale_responses_are_revalidated_and_replaced() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    client.send("GET", "/a", &[]);
    origin.next_request().respond(200, &stale, b"one");
    assert_eq!(client.read_response("GET").text(), "one");
    edge.wait_for_metric("headwater_cache_objects", 1);
    // Two clients share one revalidation and its response.
    let mut other = edge.connect();
    client.send("GET", "/a", &[]);
    let exchange = origin.next_request();
    other.send("GET", "/a", &[]);
    assert_eq!(exchange.header("if-none-match"), Some("\"1\""));
    edge.wait_for_metric("headwater_cache_followers", 1);
    exchange.respond(304, &["Cache-Control: max-age=5", "Age: 5", "X: new"], b"");
    for client in [&mut client, &mut other] {
        let response = client.read_response("GET");
        assert_eq!((response.status, response.text().as_str()), (200, "one"));
        assert_eq!(response.header("x").as_deref(), Some("new"));
    }
    let revalidated = "headwater_cache_requests_total{result=\"revalidated\"}";
    assert!(edge.read_metric(revalidated) >= 1);
    client.send("GET", "/a", &[]);
    let exchange = origin.next_request();
    exchange.respond(200, &[KEEP, "ETag: \"2\""], b"two");
    assert_eq!(client.read_response("GET").text(), "two");
    edge.wait_for_metric("headwater_cache_objects", 1);
    assert_eq!(client.request("GET", "/a", &[]).text(), "two");
    assert_eq!(origin.request_count(), 3);
}

#[test]
fn stale_responses_are_served_during_revalidation() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let lines = [
        "Cache-Control: max-age=5, stale-while-revalidate=99",
        "Age: 9",
    ];
    origin.next_request().respond(200, &lines, b"old");
    client.read_response("GET");
    edge.wait_for_metric("headwater_cache_objects", 1);
    let stale = client.request("GET", "/a", &[]);
    assert_eq!(stale.text(), "old");
    assert_eq!(
        stale.cache_status(),
        "headwater; hit; detail=stale-while-revalidate"
    );
    let exchange = origin.next_request();
    assert_eq!(client.request("GET", "/a", &[]).text(), "old");
    exchange.respond(200, &[KEEP], b"new");
    edge.wait_for_metric("headwater_cache_flights", 0);
    let fresh = client.request("GET", "/a", &[]);
    assert_eq!(
        (fresh.text().as_str(), fresh.cache_status().as_str()),
        ("new", "headwater; hit; detail=fresh")
    );
    assert_eq!(
        origin.request_count(),
        2,
        "one origin request for all clients"
    );
}

#[test]
fn stale_responses_are_served_when_the_origin_fails() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    for (path, rule) in [("/a", "max-age=5, stale-if-error=99"), ("/b", "max-age=5")] {
        client.send("GET", path, &[]);
        let lines = [
            format!("Cache-Control: {rule}"),
            "Age: 9".into(),
            "ETag: \"e\"".into(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        origin.next_request().respond(200, &lines, b"old");
        client.read_response("GET");
    }
    edge.wait_for_metric("headwater_cache_objects", 2);
    client.send("GET", "/a", &[]);
    origin.next_request().respond(503, &[], b"no");
    let stale = client.read_response("GET");
    assert_eq!((stale.status, stale.text().as_str()), (200, "old"));
    assert_eq!(
        stale.cache_status(),
        "headwater; hit; detail=stale-if-error"
    );
    client.send("GET", "/b", &[]);
    origin.next_request().respond(503, &[], b"no");
    assert_eq!(client.read_response("GET").status, 503);
}

#[test]
fn origin_failures_map_to_a_status_for_all_followers() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &["--origin-first-byte-timeout", "3s"]);
    let mut clients = [edge.connect(), edge.connect()];
    for client in &mut clients {
        client.send("GET", "/slow", &[]);
    }
    let kept = origin.next_request();
    for client in &mut clients {
        let response = client.read_response("GET");
        assert_eq!(response.status, 504);
        let why = response.header("headwater-error").unwrap();
        assert_eq!(why, "upstream; the origin does not respond in time");
    }
    assert_eq!(origin.request_count(), 1);
    drop(kept);
    // All waiting clients get the error, and the error is not stored.
    for client in &mut clients {
        client.send("GET", "/sick", &[]);
    }
    let exchange = origin.next_request();
    edge.wait_for_metric("headwater_cache_followers", 1);
    exchange.respond(500, &[], b"sick");
    for client in &mut clients {
        assert_eq!(client.read_response("GET").status, 500);
    }
    assert_eq!(origin.request_count(), 2);
    edge.wait_for_metric("headwater_cache_objects", 0);
}

#[test]
fn a_304_for_another_version_confirms_nothing() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next_request().respond(200, &stale, b"one");
    client.read_response("GET");
    edge.wait_for_metric("headwater_cache_objects", 1);
    client.send("GET", "/a", &[]);
    origin
        .next_request()
        .respond(304, &[KEEP, "ETag: \"2\""], b"");
    let again = origin.next_request();
    assert_eq!(again.header("if-none-match"), None);
    again.respond(200, &[KEEP, "ETag: \"2\""], b"two");
    let response = client.read_response("GET");
    assert_eq!((response.status, response.text().as_str()), (200, "two"));
    assert_eq!(response.header("etag").as_deref(), Some("\"2\""));
}

/// A 304 may add an Access-Control-Allow-Origin that allows only one web origin. The cached
/// response must then no longer be shared by all clients.
#[test]
fn a_304_that_implies_a_variant_is_not_shared() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next_request().respond(200, &stale, b"one");
    client.read_response("GET");
    edge.wait_for_metric("headwater_cache_objects", 1);
    let allowed = "access-control-allow-origin";
    client.send("GET", "/a", &["Origin: https://evil"]);
    let exchange = origin.next_request();
    assert_eq!(exchange.header("if-none-match"), Some("\"1\""));
    exchange.respond(
        304,
        &[KEEP, "Access-Control-Allow-Origin: https://evil"],
        b"",
    );
    let response = client.read_response("GET");
    assert_eq!(response.text(), "one");
    assert_eq!(response.header(allowed).as_deref(), Some("https://evil"));
    edge.wait_for_metric("headwater_cache_flights", 0);
    client.send("GET", "/a", &["Origin: https://player"]);
    let lines = [KEEP, "Access-Control-Allow-Origin: https://player"];
    origin.next_request().respond(200, &lines, b"one");
    let response = client.read_response("GET");
    assert_eq!(response.header(allowed).as_deref(), Some("https://player"));
    edge.wait_for_metric("headwater_cache_flights", 0);
    let response = client.request("GET", "/a", &["Origin: https://evil"]);
    assert_eq!(response.cache_status(), "headwater; hit; detail=fresh");
    assert_eq!(response.header(allowed).as_deref(), Some("https://evil"));
    assert_eq!(origin.request_count(), 3);
}

/// A 304 with Set-Cookie or `private` is for the client whose request led to it (RFC 9111 section
/// 5.2.2.7).
#[test]
fn a_304_that_forbids_storage_is_given_to_its_client_alone() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    for (path, name, value, reason) in [
        ("/a", "Set-Cookie", "session=0", "set-cookie"),
        ("/b", "Cache-Control", "private", "private"),
    ] {
        let (mut leader, mut other) = (edge.connect(), edge.connect());
        leader.send("GET", path, &[]);
        origin.next_request().respond(200, &stale, b"one");
        leader.read_response("GET");
        edge.wait_for_metric("headwater_cache_flights", 0);
        leader.send("GET", path, &[]);
        let exchange = origin.next_request();
        other.send("GET", path, &[]);
        edge.wait_for_metric("headwater_cache_followers", 1);
        exchange.respond(304, &[&format!("{name}: {value}")], b"");
        origin.next_request().respond(200, &[KEEP], b"own");
        let response = leader.read_response("GET");
        assert_eq!(response.text(), "one");
        assert_eq!(response.header(name).as_deref(), Some(value));
        // RFC 9211 section 2.5: the response was not stored.
        let status = format!("headwater; fwd=stale; fwd-status=304; detail={reason}");
        assert_eq!(response.cache_status(), status);
        let response = other.read_response("GET");
        assert_eq!(response.text(), "own");
        assert_ne!(response.header(name).as_deref(), Some(value));
    }
}

/// A confirmed object that is still not fresh must be validated for each request. A fresh object
/// is for all requests.
#[test]
fn a_revalidation_is_shared_by_other_requests_only_if_the_object_is_fresh() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    for (path, line, is_shared) in [("/a", KEEP, true), ("/b", "Cache-Control: no-cache", false)] {
        let (mut leader, mut other) = (edge.connect(), edge.connect());
        leader.send("GET", path, &[]);
        origin.next_request().respond(200, &stale, b"one");
        leader.read_response("GET");
        edge.wait_for_metric("headwater_cache_flights", 0);
        leader.send("GET", path, &["Cookie: who=0"]);
        let exchange = origin.next_request();
        other.send("GET", path, &["Cookie: who=1"]);
        edge.wait_for_metric("headwater_cache_followers", 1);
        exchange.respond(304, &[line], b"");
        assert_eq!(leader.read_response("GET").text(), "one");
        if is_shared {
            assert_eq!(other.read_response("GET").text(), "one");
        } else {
            let exchange = origin.next_request();
            assert_eq!(exchange.header("cookie"), Some("who=1"));
            exchange.respond(200, &[line, "ETag: \"2\""], b"two");
            assert_eq!(other.read_response("GET").text(), "two");
        }
        edge.wait_for_metric("headwater_cache_flights", 0);
    }
    assert_eq!(origin.request_count(), 5);
}

#[test]
fn each_request_decides_whether_it_accepts_a_stale_response() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let (accepts, refuses) = ("Cache-Control: stale-if-error=99", "X-Other: 1");
    let stale = ["Cache-Control: max-age=5", "Age: 9", "ETag: \"1\""];
    for (path, lines, statuses) in [
        ("/a", [accepts, refuses], [200, 503]),
        ("/b", [refuses, accepts], [503, 200]),
    ] {
        let (mut leader, mut follower) = (edge.connect(), edge.connect());
        leader.send("GET", path, &[]);
        origin.next_request().respond(200, &stale, b"old");
        leader.read_response("GET");
        edge.wait_for_metric("headwater_cache_flights", 0);
        leader.send("GET", path, &[lines[0]]);
        let exchange = origin.next_request();
        follower.send("GET", path, &[lines[1]]);
        edge.wait_for_metric("headwater_cache_followers", 1);
        exchange.respond(503, &[], b"sick");
        if statuses[1] == 503 {
            origin.next_request().respond(503, &[], b"sick");
        }
        let seen = [&mut leader, &mut follower].map(|client| client.read_response("GET").status);
        assert_eq!(seen, statuses, "{path}");
        edge.wait_for_metric("headwater_cache_flights", 0);
    }
}
