//! Requests with unsafe methods and bodies, which may change something at the origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::support::{ScriptedOrigin, TestEdge};
use crate::{
    KEEP, closed_port, count_sent, start_edge, start_edge_with_archive_pool, start_named_origin,
};

#[test]
fn a_request_with_a_body_is_passed_and_invalidates_the_cache() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    for language in ["de", "fr"] {
        let line = format!("Accept-Language: {language}");
        client.send("GET", "/a", &[&line]);
        origin
            .next_request()
            .respond(200, &[KEEP, "Vary: Accept-Language"], b"old");
        client.read_response("GET");
    }
    edge.wait_for_metric("headwater_cache_flights", 0);
    let lines = [
        "Content-Length: 5",
        "X-Forwarded-For: 1.2.3.4",
        "X-Token: t",
    ];
    client.send("POST", "/a", &lines);
    client.write_ignoring_errors(b"hello");
    let mut exchange = origin.next_request();
    assert!(
        exchange.head.starts_with("POST /a HTTP/1.1\r\n"),
        "{}",
        exchange.head
    );
    assert_eq!(exchange.header("content-length"), Some("5"));
    assert_eq!(exchange.header("x-token"), Some("t"));
    assert_eq!(exchange.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(exchange.read_body(5), b"hello");
    exchange.respond(201, &["Location: /b"], b"made");
    let response = client.read_response("POST");
    assert_eq!((response.status, response.text().as_str()), (201, "made"));
    assert_eq!(
        response.cache_status(),
        "headwater; fwd=method; fwd-status=201; detail=method"
    );
    for language in ["de", "fr"] {
        let line = format!("Accept-Language: {language}");
        client.send("GET", "/a", &[&line]);
        origin
            .next_request()
            .respond(200, &[KEEP, "Vary: Accept-Language"], b"new");
        assert_eq!(client.read_response("GET").text(), "new", "{language}");
    }
    // A failed request has changed nothing, so the cached responses stay valid.
    edge.wait_for_metric("headwater_cache_flights", 0);
    client.send("DELETE", "/a", &[]);
    origin.next_request().respond(403, &[], b"no");
    assert_eq!(client.read_response("DELETE").status, 403);
    assert_eq!(
        client.request("GET", "/a", &["Accept-Language: de"]).text(),
        "new"
    );
}

#[test]
fn chunked_request_bodies_are_passed_and_bounded() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &["--body-max", "1000B"]);
    let mut client = edge.connect();
    client.send("PUT", "/a", &["Transfer-Encoding: chunked"]);
    client.write_ignoring_errors(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    let mut exchange = origin.next_request();
    assert_eq!(exchange.header("transfer-encoding"), Some("chunked"));
    let mut body = Vec::new();
    while !body.ends_with(b"0\r\n\r\n") {
        body.extend(exchange.read_body(1));
    }
    exchange.respond(200, &[], b"ok");
    assert_eq!(client.read_response("PUT").text(), "ok");
    let mut client = edge.connect();
    client.send("POST", "/a", &["Content-Length: 1001"]);
    assert_eq!(client.read_head().status, 413);
    let mut client = edge.connect();
    client.send("POST", "/a", &["Transfer-Encoding: chunked"]);
    client.write_ignoring_errors(b"3e8\r\n");
    client.write_ignoring_errors(&[7; 1000]);
    client.write_ignoring_errors(b"\r\n1\r\nx\r\n0\r\n\r\n");
    assert_eq!(client.read_head().status, 413);
}

#[test]
fn a_request_that_may_have_arrived_is_not_repeated() {
    let (origin, other) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let edge = start_edge(
        &[origin.address, other.address],
        &["--origin-balance", "first"],
    );
    let mut client = edge.connect();
    client.send("POST", "/pay", &["Content-Length: 1"]);
    client.write_ignoring_errors(b"1");
    drop(origin.next_request());
    let response = client.read_response("POST");
    assert_eq!(response.status, 502);
    assert_eq!(
        response.text(),
        "502 Bad Gateway: the origin sent no valid response\n"
    );
    assert_eq!((origin.request_count(), other.request_count()), (1, 0));
    // A request that cannot have reached the first origin is sent to the next origin.
    let edge = crate::start_edge(
        &[closed_port(), other.address],
        &["--origin-balance", "first"],
    );
    let mut client = edge.connect();
    client.send("POST", "/pay", &["Content-Length: 1"]);
    client.write_ignoring_errors(b"1");
    let mut exchange = other.next_request();
    assert_eq!(exchange.read_body(1), b"1");
    exchange.respond(200, &[], b"paid");
    assert_eq!(client.read_response("POST").text(), "paid");
}

/// Regression: 40 uploads with a malformed chunk suspended all origins.
#[test]
fn broken_uploads_do_not_suspend_an_origin() {
    let origin = ScriptedOrigin::new();
    let edge = start_edge(&[origin.address], &["--origin-retry-after", "60s"]);
    for _ in 0..40 {
        let mut client = edge.connect();
        client.send("POST", "/a", &["Transfer-Encoding: chunked"]);
        client.write_ignoring_errors(b"3\r\nabc\r\n");
        let exchange = origin.next_request();
        client.write_ignoring_errors(b"zz\r\n");
        assert_eq!(client.read_head().status, 400);
        exchange.wait_for_hangup();
    }
    assert_eq!(edge.read_metric("headwater_upstream_out_now"), 0);
    assert_eq!(count_sent(&edge, origin.address, "failed"), 0);
    assert_eq!(count_sent(&edge, origin.address, "client"), 40);
}

/// The header timeout also applies to the request's body. If a client stops sending, the origin is
/// not at fault.
#[test]
fn late_uploads_do_not_suspend_an_origin() {
    let origin = ScriptedOrigin::new();
    let edge = start_edge(&[origin.address], &["--header-timeout", "300ms"]);
    for _ in 0..4 {
        let mut client = edge.connect();
        client.send("POST", "/a", &["Content-Length: 5"]);
        client.write_ignoring_errors(b"abc");
        let exchange = origin.next_request();
        assert_eq!(client.read_head().status, 408);
        exchange.wait_for_hangup();
    }
    assert_eq!(count_sent(&edge, origin.address, "client"), 4);
    assert_eq!(edge.read_metric("headwater_upstream_out_now"), 0);
}

/// Like POST, a method that the edge does not know may change something at the origin.
#[test]
fn unknown_methods_are_passed_once_and_invalidate_the_cache() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    for (method, body) in [("PROPFIND", "<x/>"), ("PURGE", ""), ("M-SEARCH", "")] {
        client.send("GET", "/a", &[]);
        origin.next_request().respond(200, &[KEEP], b"old");
        client.read_response("GET");
        edge.wait_for_metric("headwater_cache_flights", 0);
        let line = format!("Content-Length: {}", body.len());
        client.send(method, "/a", &[&line]);
        client.write_ignoring_errors(body.as_bytes());
        let mut exchange = origin.next_request();
        assert!(
            exchange
                .head
                .starts_with(&format!("{method} /a HTTP/1.1\r\n"))
        );
        assert_eq!(exchange.read_body(body.len()), body.as_bytes());
        exchange.respond(207, &[], b"done");
        let response = client.read_response(method);
        assert_eq!((response.status, response.text().as_str()), (207, "done"));
    }
    // The edge refuses CONNECT, which opens a tunnel, and TRACE, which returns the request with its
    // credentials.
    for method in ["CONNECT", "TRACE"] {
        assert_eq!(edge.request(method, "/a", &[]).status, 405, "{method}");
    }
    assert_eq!(origin.request_count(), 6);
}

/// All pools may serve the same resource, so a successful POST invalidates the responses of all
/// pools.
#[test]
fn a_request_with_a_body_invalidates_the_responses_of_all_pools() {
    let (usual, archive) = (start_named_origin("usual"), start_named_origin("archive"));
    let edge = start_edge_with_archive_pool(usual.0, archive.0);
    let pools = [&[][..], &["X-From: archive"]];
    for post in pools {
        for get in pools {
            edge.request("GET", "/a", get);
            edge.wait_for_metric("headwater_cache_flights", 0);
        }
        let lines = [post, &["Content-Length: 0"][..]].concat();
        assert_eq!(edge.request("POST", "/a", &lines).status, 200);
        for get in pools {
            let response = edge.request("GET", "/a", get);
            assert!(
                !response.cache_status().contains("hit"),
                "{}",
                response.head
            );
            edge.wait_for_metric("headwater_cache_flights", 0);
        }
    }
}

/// Caches a variant, and then a response that replaces the list of variants. `line` is a header of
/// this response. Checks that a POST also removes the variant.
fn check_that_a_post_removes_unlisted_variants(line: &'static str) {
    let version = Arc::new(AtomicUsize::new(1));
    let current = version.clone();
    let (address, _) = ScriptedOrigin::start_with(move |exchange| {
        let language = exchange.header("accept-language").unwrap_or("-");
        let version = current.load(SeqCst);
        let lines = match (language, version) {
            ("fr", 1) => vec![line.into()],
            _ => vec![KEEP.into(), "Vary: Accept-Language".into()],
        };
        (200, lines, format!("{language}{version}").into_bytes())
    });
    let edge = TestEdge::new(address, &[]);
    let get_in = |language: &str| {
        let line = format!("Accept-Language: {language}");
        let response = edge.request("GET", "/a", &[&line]);
        edge.wait_for_metric("headwater_cache_flights", 0);
        response.text()
    };
    assert_eq!(["de", "fr"].map(get_in), ["de1", "fr1"]);
    version.store(2, SeqCst);
    let posted = edge.request("POST", "/a", &["Content-Length: 0"]);
    assert_eq!(posted.status, 200);
    // The response in the first language creates a new list of variants.
    assert_eq!(["fr", "de"].map(get_in), ["fr2", "de2"]);
}

/// Regression: a variant from before the POST was found again.
#[test]
fn a_post_removes_variants_that_a_response_without_vary_has_replaced() {
    check_that_a_post_removes_unlisted_variants(KEEP);
}

#[test]
fn a_post_removes_variants_that_an_unshareable_mark_has_replaced() {
    check_that_a_post_removes_unlisted_variants("Cache-Control: private");
}
