//! A response for one client, or for some clients, is not given to other clients.

use crate::KEEP;
use crate::support::{OriginExchange, ScriptedOrigin, TestEdge, format_head};

#[test]
fn a_private_response_is_given_to_no_other_client() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut clients = [edge.connect(), edge.connect()];
    clients[0].send("GET", "/me", &["Cookie: who=0"]);
    let first = origin.next_request();
    clients[1].send("GET", "/me", &["Cookie: who=1"]);
    edge.wait_for_metric("headwater_cache_flights", 1);
    first.respond(200, &["Cache-Control: private"], b"for 0");
    let second = origin.next_request();
    assert_eq!(second.header("cookie"), Some("who=1"));
    second.respond(200, &["Cache-Control: private"], b"for 1");
    assert_eq!(clients[0].read_response("GET").text(), "for 0");
    assert_eq!(clients[1].read_response("GET").text(), "for 1");
    // While the URL is marked as unshareable, no request waits for another request's fetch.
    clients[0].send("GET", "/me", &[]);
    let third = origin.next_request();
    clients[1].send("GET", "/me", &[]);
    origin
        .next_request()
        .respond(200, &["Set-Cookie: a=b"], b"at once");
    let response = clients[1].read_response("GET");
    assert_eq!(
        (response.text().as_str(), response.cache_status().as_str()),
        (
            "at once",
            "headwater; fwd=bypass; fwd-status=200; detail=apart"
        )
    );
    third.respond(200, &["Set-Cookie: a=b"], b"later");
    assert_eq!(clients[0].read_response("GET").text(), "later");
}

/// A cacheable response removes the unshareable mark before the mark expires. Otherwise, one
/// private response could disable the cache for a popular URL until the mark expires.
#[test]
fn a_cacheable_response_ends_the_unshareable_mark() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &["Cookie: who=0"]);
    origin
        .next_request()
        .respond(200, &["Cache-Control: private"], b"for 0");
    assert_eq!(client.read_response("GET").text(), "for 0");
    edge.wait_for_metric("headwater_cache_flights", 0);
    client.send("GET", "/a", &[]);
    origin.next_request().respond(200, &[KEEP], b"for all");
    assert_eq!(client.read_response("GET").text(), "for all");
    edge.wait_for_metric("headwater_cache_flights", 0);
    let response = client.request("GET", "/a", &[]);
    assert_eq!(response.cache_status(), "headwater; hit; detail=fresh");
    assert_eq!(origin.request_count(), 2);
}

#[test]
fn a_range_of_an_unshareable_object_is_passed_as_a_range() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    origin
        .next_request()
        .respond(200, &["Cache-Control: private"], b"whole");
    assert_eq!(client.read_response("GET").text(), "whole");
    client.send("GET", "/a", &["Range: bytes=0-1"]);
    let exchange = origin.next_request();
    assert_eq!(exchange.header("range"), Some("bytes=0-1"));
    exchange.respond(206, &["Content-Range: bytes 0-1/5"], b"wh");
    assert_eq!(client.read_response("GET").text(), "wh");
}

/// A 4xx may depend on the client's headers, so only requests with the same headers share the
/// response. A concurrent request with other headers is sent to the origin separately.
#[test]
fn a_4xx_is_shared_by_equal_requests_and_marks_nothing() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut bad = edge.connect();
    bad.send("GET", "/a", &["Accept-Language: nonsense"]);
    let mut first = origin.next_request();
    // Sends the head without the body, so that the fetch is still in progress during later
    // requests.
    first.send(format_head(400, &["Cache-Control: no-store"], Some(2)));
    assert_eq!(bad.read_head().status, 400);
    let (mut same, mut other) = (edge.connect(), edge.connect());
    let lines = ["Accept-Language: nonsense", "X-Request-Id: 2"];
    same.send("GET", "/a", &lines);
    let shared = same.read_head();
    assert_eq!(shared.status, 400);
    assert!(
        shared.cache_status().contains("collapsed"),
        "{}",
        shared.head
    );
    other.send("GET", "/a", &[]);
    let second = origin.next_request();
    assert_eq!(second.header("accept-language"), None);
    second.respond(200, &[KEEP], b"yes");
    assert_eq!(other.read_response("GET").text(), "yes");
    first.send("no");
    first.finish();
    assert_eq!((bad.take(2), same.take(2)), (b"no".into(), b"no".into()));
    assert_eq!(origin.request_count(), 2);
    edge.wait_for_metric("headwater_cache_flights", 0);
    // The error does not mark the URL as unshareable. The next request starts a fetch, and its
    // cacheable response is stored.
    other.send("GET", "/a", &[]);
    origin.next_request().respond(200, &[KEEP], b"yes");
    assert_eq!(other.read_response("GET").text(), "yes");
    edge.wait_for_metric("headwater_cache_objects", 1);
    let response = edge.request("GET", "/a", &["Accept-Language: nonsense"]);
    assert_eq!(response.cache_status(), "headwater; hit; detail=fresh");
}

/// Origins receive `CDN-Loop`, which lists the earlier hops of a request. A 4xx may therefore
/// depend on `CDN-Loop`.
#[test]
fn a_4xx_for_earlier_hops_is_not_shared() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let (mut bad, mut other) = (edge.connect(), edge.connect());
    bad.send("GET", "/a", &["CDN-Loop: another"]);
    let mut first = origin.next_request();
    // Sends the head without the body, so that the fetch is still in progress during later
    // requests.
    first.send(format_head(400, &["Cache-Control: no-store"], Some(2)));
    assert_eq!(bad.read_head().status, 400);
    other.send("GET", "/a", &[]);
    origin.next_request().respond(200, &[KEEP], b"yes");
    assert_eq!(other.read_response("GET").text(), "yes");
    first.send("no");
    first.finish();
    assert_eq!(bad.take(2), b"no");
}

/// A private 4xx is for one client. Unlike a private 200, a private 4xx does not mark the URL as
/// unshareable.
#[test]
fn a_private_4xx_is_given_to_no_other_client() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut clients = [edge.connect(), edge.connect()];
    clients[0].send("GET", "/a", &[]);
    let first = origin.next_request();
    clients[1].send("GET", "/a", &[]);
    first.respond(403, &["Set-Cookie: a=b"], b"not you");
    origin.next_request().respond(200, &[KEEP], b"but you");
    assert_eq!(clients[0].read_response("GET").status, 403);
    assert_eq!(clients[1].read_response("GET").text(), "but you");
}

#[test]
fn variants_are_separate_and_bounded() {
    let (address, seen) = ScriptedOrigin::start_with(|exchange| {
        let body = exchange.header("accept-language").unwrap_or("-").to_owned();
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, body.into_bytes())
    });
    let edge = TestEdge::new(address, &[]);
    let mut client = edge.connect();
    for round in 0..2 {
        for language in ["de", "fr", "DE"] {
            let line = format!("Accept-Language: {language}");
            let response = client.request("GET", "/a", &[&line]);
            assert_eq!(response.text().to_lowercase(), language.to_lowercase());
            edge.wait_for_metric("headwater_cache_flights", 0);
            if round > 0 {
                assert_eq!(response.cache_status(), "headwater; hit; detail=fresh");
            }
        }
    }
    assert_eq!(seen.lock().unwrap().len(), 2, "de and DE are the same");
    for n in 0..200 {
        let line = format!("Accept-Language: x-{n}");
        assert_eq!(
            client.request("GET", "/a", &[&line]).text(),
            format!("x-{n}")
        );
    }
    edge.wait_for_metric("headwater_cache_flights", 0);
    let objects = edge.read_metric("headwater_cache_objects");
    assert!(objects <= 65, "an explosion of variants: {objects}");
}

#[test]
fn a_follower_of_another_variant_does_not_get_the_leaders() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let (mut gzip, mut plain) = (edge.connect(), edge.connect());
    gzip.send("GET", "/a", &["Accept-Encoding: gzip"]);
    let first = origin.next_request();
    plain.send("GET", "/a", &[]);
    edge.wait_for_metric("headwater_cache_flights", 1);
    let lines = [KEEP, "Vary: Accept-Encoding", "Content-Encoding: gzip"];
    first.respond(200, &lines, b"zipped");
    let second = origin.next_request();
    assert_eq!(second.header("accept-encoding"), None);
    second.respond(200, &[KEEP, "Vary: Accept-Encoding"], b"plain");
    assert_eq!(gzip.read_response("GET").text(), "zipped");
    assert_eq!(plain.read_response("GET").text(), "plain");
}

#[test]
fn followers_of_two_variants_cost_two_requests() {
    const EACH: usize = 20;
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut clients: Vec<_> = (0..2 * EACH).map(|_| edge.connect()).collect();
    let line = |n: usize| format!("Accept-Encoding: {}", ["gzip", "br"][n % 2]);
    clients[0].send("GET", "/a", &[&line(0)]);
    let mut first = origin.next_request();
    for (n, client) in clients.iter_mut().enumerate().skip(1) {
        client.send("GET", "/a", &[&line(n)]);
    }
    first.send(format_head(200, &[KEEP, "Vary: Accept-Encoding"], Some(4)));
    let second = origin.next_request();
    assert_eq!(second.header("accept-encoding"), Some("br"));
    second.respond(200, &[KEEP, "Vary: Accept-Encoding"], b"br..");
    first.send("gzip");
    first.finish();
    for (n, client) in clients.iter_mut().enumerate() {
        let expected = ["gzip", "br.."][n % 2];
        assert_eq!(client.read_response("GET").text(), expected, "{n}");
    }
    assert_eq!(origin.request_count(), 2);
}

/// Regression: an invalid header value was treated as a missing header, so one client's variant was
/// served to all clients that do not send the header.
#[test]
fn an_invalid_header_value_does_not_select_the_shared_variant() {
    let (address, _) = ScriptedOrigin::start_with(|exchange| {
        let language = exchange.header("accept-language").unwrap_or("-").to_owned();
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, language.into_bytes())
    });
    let edge = TestEdge::new(address, &[]);
    let mut client = edge.connect();
    let raw = b"GET /a HTTP/1.1\r\nHost: edge\r\nAccept-Language: \xe9\r\n\r\n";
    std::io::Write::write_all(&mut client.stream, raw).unwrap();
    assert_eq!(client.read_response("GET").status, 200);
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert_eq!(client.request("GET", "/a", &[]).text(), "-");
}

#[test]
fn a_request_with_too_long_variant_values_is_not_shared() {
    let (address, _) = ScriptedOrigin::start_with(|_| {
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, b"x".to_vec())
    });
    let edge = TestEdge::new(address, &[]);
    let line = format!("Accept-Language: {}", "x".repeat(3000));
    let response = edge.request("GET", "/a", &[&line]);
    assert!(
        response.cache_status().ends_with("detail=vary-long"),
        "{}",
        response.cache_status()
    );
}

/// With `--cookies pass`, the edge passes all requests with cookies, as Varnish does by default.
#[test]
fn requests_with_cookies_bypass_the_cache_if_configured() {
    for (flags, cookie_requests, status) in [
        (&[][..], 0, "headwater; hit; detail=fresh"),
        (
            &["--cookies", "pass"],
            2,
            "headwater; fwd=bypass; fwd-status=200; detail=cookie",
        ),
    ] {
        let (address, seen) = ScriptedOrigin::start_with(|_| (200, vec![KEEP.into()], vec![]));
        let edge = TestEdge::new(address, flags);
        edge.get_path("/a");
        edge.wait_for_metric("headwater_cache_flights", 0);
        for _ in 0..2 {
            let response = edge.request("GET", "/a", &["Cookie: a=b"]);
            assert_eq!(response.cache_status(), status);
        }
        // Requests without cookies still use the cache.
        assert!(edge.get_path("/a").cache_status().contains("hit"));
        assert_eq!(seen.lock().unwrap().len(), 1 + cookie_requests);
    }
}

/// RFC 9111 section 5.2.2.4: a response with `no-cache` must not be used for another request without
/// validation. It may depend on a cookie although it has no Vary.
#[test]
fn a_response_that_needs_validation_is_shared_only_by_equal_requests() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    for (path, line) in [
        ("/a", "Cache-Control: no-cache"),
        ("/b", "Cache-Control: max-age=0"),
    ] {
        let (mut leader, mut same, mut other) = (edge.connect(), edge.connect(), edge.connect());
        let before = origin.request_count();
        leader.send("GET", path, &["Cookie: who=0"]);
        let first = origin.next_request();
        same.send("GET", path, &["Cookie: who=0"]);
        other.send("GET", path, &["Cookie: who=1"]);
        edge.wait_for_metric("headwater_cache_followers", 2);
        first.respond(200, &[line, "ETag: \"0\""], b"for 0");
        let second = origin.next_request();
        assert_eq!(second.header("cookie"), Some("who=1"));
        second.respond(200, &[line, "ETag: \"1\""], b"for 1");
        assert_eq!(leader.read_response("GET").text(), "for 0");
        assert_eq!(same.read_response("GET").text(), "for 0");
        assert_eq!(other.read_response("GET").text(), "for 1");
        assert_eq!(origin.request_count(), before + 2);
        edge.wait_for_metric("headwater_cache_flights", 0);
    }
}

/// If the reason is a header of one request, the responses to other requests stay cached.
#[test]
fn a_request_with_too_long_variant_values_removes_no_variant() {
    let (address, seen) = ScriptedOrigin::start_with(|_| {
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, b"x".to_vec())
    });
    let edge = TestEdge::new(address, &[]);
    let long = format!("Accept-Language: {}", "x".repeat(3000));
    for (line, end) in [
        ("Accept-Language: de", "detail=absent"),
        (&long, "detail=vary-long"),
        ("Accept-Language: de", "detail=fresh"),
    ] {
        let status = edge.request("GET", "/a", &[line]).cache_status();
        assert!(status.ends_with(end), "{status}");
        edge.wait_for_metric("headwater_cache_flights", 0);
    }
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn a_request_with_authorization_removes_no_shared_response() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    for (path, status) in [("/a", 200), ("/b", 304)] {
        client.send("GET", path, &[]);
        let lines = [KEEP, "ETag: \"1\""];
        origin.next_request().respond(200, &lines, b"for all");
        client.read_response("GET");
        edge.wait_for_metric("headwater_cache_flights", 0);
        let authorized = ["Authorization: Basic eA==", "Cache-Control: no-cache"];
        client.send("GET", path, &authorized);
        let body: &[u8] = if status == 304 { b"" } else { b"for one" };
        origin.next_request().respond(status, &lines, body);
        let response = client.read_response("GET");
        assert!(
            response.cache_status().ends_with("detail=authorization"),
            "{}",
            response.head
        );
        edge.wait_for_metric("headwater_cache_flights", 0);
        let response = client.request("GET", path, &[]);
        assert_eq!(response.text(), "for all");
        assert_eq!(response.cache_status(), "headwater; hit; detail=fresh");
    }
}

/// The response to a request with Authorization is for its client. The requests that wait for it
/// share another fetch.
#[test]
fn followers_of_a_request_with_authorization_share_one_fetch() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut leader = edge.connect();
    leader.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next_request().respond(200, &stale, b"old");
    leader.read_response("GET");
    edge.wait_for_metric("headwater_cache_flights", 0);
    leader.send("GET", "/a", &["Authorization: Basic eA=="]);
    let first = origin.next_request();
    let mut followers = [edge.connect(), edge.connect(), edge.connect()];
    for follower in &mut followers {
        follower.send("GET", "/a", &[]);
    }
    edge.wait_for_metric("headwater_cache_followers", 3);
    first.respond(200, &[KEEP], b"for one");
    origin.next_request().respond(200, &[KEEP], b"for all");
    assert_eq!(leader.read_response("GET").text(), "for one");
    for follower in &mut followers {
        assert_eq!(follower.read_response("GET").text(), "for all");
    }
    assert_eq!(origin.request_count(), 3);
}

/// Regression: such followers waited for each other's requests, although none of the responses is
/// shareable.
#[test]
fn followers_with_authorization_do_not_wait_for_each_other() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut clients = [edge.connect(), edge.connect(), edge.connect()];
    clients[0].send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next_request().respond(200, &stale, b"old");
    clients[0].read_response("GET");
    edge.wait_for_metric("headwater_cache_flights", 0);
    clients[0].send("GET", "/a", &["Authorization: Basic MA=="]);
    let first = origin.next_request();
    clients[1].send("GET", "/a", &["Authorization: Basic MQ=="]);
    clients[2].send("GET", "/a", &["Authorization: Basic Mg=="]);
    edge.wait_for_metric("headwater_cache_followers", 2);
    let respond = |exchange: OriginExchange| {
        let body = exchange.header("authorization").unwrap().to_owned();
        exchange.respond(200, &[KEEP], body.as_bytes());
    };
    respond(first);
    // Both requests arrive before the origin responds to one of them.
    let others = [origin.next_request(), origin.next_request()];
    others.into_iter().for_each(respond);
    let bodies = clients.map(|mut client| client.read_response("GET").text());
    assert_eq!(bodies, ["Basic MA==", "Basic MQ==", "Basic Mg=="]);
}
