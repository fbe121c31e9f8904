//! Responses from cached objects to plain, conditional and range requests.

use crate::KEEP;
use crate::support::{ScriptedOrigin, TestEdge};

#[test]
fn the_second_request_is_a_hit() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a?x=1", &["X-Forwarded-Host: evil", "Accept: a"]);
    let exchange = origin.next_request();
    assert_eq!(exchange.target(), "/a?x=1");
    assert_eq!(
        exchange.header("host"),
        Some(origin.address.to_string().as_str())
    );
    assert_eq!(exchange.header("x-forwarded-host"), None);
    assert_eq!(exchange.header("accept"), Some("a"));
    assert_eq!(exchange.header("via"), Some("1.1 headwater"));
    exchange.respond(
        200,
        &[KEEP, "Age: 7", "X: y", "Connection: X-Hop", "X-Hop: 1"],
        b"abc",
    );
    let miss = client.read_response("GET");
    assert_eq!((miss.status, miss.text().as_str()), (200, "abc"));
    assert_eq!(
        miss.cache_status(),
        "headwater; fwd=uri-miss; fwd-status=200; stored; detail=absent"
    );
    assert_eq!(miss.header("x-hop"), None);
    let age = miss.header("age");
    assert_eq!(
        age.as_deref(),
        Some("7"),
        "a cache between origin and edge added an age"
    );
    edge.wait_for_metric("headwater_cache_objects", 1);
    let hit = client.request("GET", "/a?x=1&CMCD=bl%3D1", &[]);
    assert_eq!((hit.status, hit.text().as_str()), (200, "abc"));
    assert_eq!(hit.cache_status(), "headwater; hit; detail=fresh");
    assert_eq!(hit.header("age").as_deref(), Some("7"));
    assert_eq!(hit.header("x").as_deref(), Some("y"));
    assert_eq!(hit.header("via").as_deref(), Some("1.1 headwater"));
    assert_eq!(origin.request_count(), 1);
    assert_eq!(
        edge.read_metric("headwater_cache_requests_total{result=\"hit\"}"),
        1
    );
}

#[test]
fn complete_objects_answer_ranges_conditions_and_head() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &["Range: bytes=2-3", "If-None-Match: \"b\""]);
    let exchange = origin.next_request();
    assert_eq!(
        (exchange.header("range"), exchange.header("if-none-match")),
        (None, None)
    );
    exchange.respond(
        200,
        &[KEEP, "ETag: \"b\"", "Content-Type: text/x"],
        b"0123456789",
    );
    assert_eq!(
        client.read_response("GET").status,
        304,
        "the client's copy is current"
    );
    edge.wait_for_metric("headwater_cache_objects", 1);
    for (method, headers, status, body) in [
        ("GET", &["Range: bytes=2-3"][..], 206, "23"),
        ("GET", &["Range: bytes=-2"], 206, "89"),
        ("GET", &["Range: bytes=2-3", "If-Range: \"b\""], 206, "23"),
        (
            "GET",
            &["Range: bytes=2-3", "If-Range: \"c\""],
            200,
            "0123456789",
        ),
        ("GET", &["Range: bytes=10-"], 416, ""),
        ("GET", &["If-None-Match: \"b\""], 304, ""),
        ("GET", &["If-None-Match: W/\"b\", \"c\""], 304, ""),
        ("GET", &["If-Match: \"c\""], 412, ""),
        ("HEAD", &[], 200, ""),
    ] {
        let response = client.request(method, "/a", headers);
        assert_eq!(response.status, status, "{method} {headers:?}");
        if matches!(status, 412 | 416) {
            // These statuses depend on the headers of the request, and a player may read them.
            let caching = response.header("cache-control");
            assert_eq!(caching.as_deref(), Some("no-store"), "{headers:?}");
            let readers = response.header("access-control-allow-origin");
            assert_eq!(readers.as_deref(), Some("*"), "{headers:?}");
        }
        if status < 300 {
            assert_eq!(response.text(), body, "{method} {headers:?}");
        }
        if method == "HEAD" {
            assert_eq!(response.header("content-length").as_deref(), Some("10"));
        }
    }
    let several = client.request("GET", "/a", &["Range: bytes=0-0,9-9"]);
    assert_eq!(several.status, 206);
    assert!(
        several.text().contains("Content-Range: bytes 9-9/10"),
        "{}",
        several.text()
    );
    assert_eq!(origin.request_count(), 1);
}

#[test]
fn request_directives_are_respected() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    let refused = client.request("GET", "/a", &["Cache-Control: only-if-cached"]);
    assert_eq!((refused.status, origin.request_count()), (504, 0));
    let readers = refused.header("access-control-allow-origin");
    assert_eq!(readers.as_deref(), Some("*"), "a player may read it");
    client.send("GET", "/a", &[]);
    origin
        .next_request()
        .respond(200, &[KEEP, "ETag: \"1\""], b"one");
    client.read_response("GET");
    edge.wait_for_metric("headwater_cache_objects", 1);
    assert_eq!(
        client
            .request("GET", "/a", &["Cache-Control: only-if-cached"])
            .status,
        200
    );
    client.send("GET", "/a", &["Cache-Control: no-cache"]);
    origin.next_request().respond(304, &[], b"");
    let response = client.read_response("GET");
    assert_eq!(
        response.cache_status(),
        "headwater; fwd=request; fwd-status=304; stored; detail=request-no-cache"
    );
    client.send("GET", "/b", &["Cache-Control: no-store"]);
    origin.next_request().respond(200, &[KEEP], b"b");
    assert_eq!(
        client.read_response("GET").cache_status(),
        "headwater; fwd=request; fwd-status=200; detail=request-no-store"
    );
    edge.wait_for_metric("headwater_cache_objects", 1);
}

/// RFC 9111 section 4.3.2: if a stored response has no Last-Modified, If-Modified-Since is compared
/// with the date of the response.
#[test]
fn if_modified_since_compares_with_the_date_of_a_stored_response() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    let dated = "Date: Sun, 06 Nov 2094 08:49:37 GMT";
    client.send("GET", "/dated", &[]);
    let lines = ["Cache-Control: max-age=60", dated];
    origin.next_request().respond(200, &lines, b"x");
    client.read_response("GET");
    client.send("GET", "/undated", &[]);
    origin
        .next_request()
        .respond(200, &["Cache-Control: max-age=60"], b"x");
    client.read_response("GET");
    edge.wait_for_metric("headwater_cache_flights", 0);
    for (path, since, status) in [
        ("/dated", "Sun, 06 Nov 2094 08:49:37 GMT", 304),
        ("/dated", "mon, 06 NOV 2094 08:49:38 gmt", 304),
        ("/dated", "Sun, 06 Nov 2094 08:49:36 GMT", 200),
        ("/undated", "Sun, 06 Nov 2094 08:49:36 GMT", 304),
        ("/undated", "Sun, 06 Nov 1994 08:49:36 GMT", 200),
    ] {
        let since = format!("If-Modified-Since: {since}");
        let response = client.request("GET", path, &[&since]);
        assert_eq!(response.status, status, "{path} {since}");
    }
    assert_eq!(origin.request_count(), 2);
}
