//! Attacks on the cache, which try to give one client the response to another client's request.

use super::strict::StrictOrigin;
use super::support::{ScriptedOrigin, TestEdge};

/// Web cache poisoning: a request header that is not part of the cache key must not reach the
/// origin.
#[test]
fn no_unkeyed_header_reaches_the_origin_of_a_cacheable_response() {
    let headers = [
        "Forwarded: host=evil",
        "X-Forwarded-Host: evil",
        "X-Forwarded-Server: evil",
        "X-Forwarded-For: 1.2.3.4",
        "X-Forwarded-Proto: http",
        "X-Forwarded-Scheme: nothttps",
        "X-Forwarded-Port: 1",
        "X-Forwarded-Prefix: /evil",
        "X-Host: evil",
        "X-Original-Host: evil",
        "X-Original-URL: /evil",
        "X-Rewrite-URL: /evil",
        "X-Real-IP: 1.2.3.4",
        "X-HTTP-Method-Override: DELETE",
        "X-Method-Override: DELETE",
        "X-Wap-Profile: http://evil",
        "Fastly-Host: evil",
        "Via: evil",
        "Range: bytes=0-1",
        "If-None-Match: \"evil\"",
        "If-Match: \"evil\"",
        "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT",
        "Expect: 100-continue",
        "Upgrade: evil",
        "Connection: Authorization, Cookie",
        "Transfer-Encoding: chunked",
        "Priority: u=1",
        "Referer: http://evil",
        "User-Agent: evil",
        "Content-Type: evil",
        "Cache-Control: max-age=0",
        "Pragma: evil",
    ];
    for line in headers {
        let origin = StrictOrigin::new();
        let edge = TestEdge::new(origin.address, &[]);
        let mut client = edge.connect();
        client.send("GET", "/a", &[line]);
        if line.starts_with("Transfer") {
            client.write_ignoring_errors(b"0\r\n\r\n");
        }
        let response = client.read_response("GET");
        assert!(response.status < 500, "{line}: {}", response.head);
        let name = line.split(':').next().unwrap();
        for seen in origin.parsed_requests() {
            let values = seen.header_values(name);
            assert!(
                values.iter().all(|value| !value.contains("evil")),
                "{line}: {}",
                seen.head
            );
            let ours = ["Via", "Connection", "User-Agent"].contains(&name);
            assert!(ours || values.is_empty(), "{line}: {}", seen.head);
        }
    }
}

/// If the origin varies its response by a request header but sends no Vary, the edge infers the
/// header from Access-Control-Allow-Origin or Content-Encoding. Only requests with the same value
/// of this header share the response.
#[test]
fn implied_variants_are_not_shared() {
    let (address, seen) = ScriptedOrigin::start_with(|exchange| {
        let mut lines = vec!["Cache-Control: max-age=60".to_owned()];
        if let Some(origin) = exchange.header("origin") {
            lines.push(format!("Access-Control-Allow-Origin: {origin}"));
        }
        let coding = exchange.header("accept-encoding");
        lines.extend(coding.map(|coding| format!("Content-Encoding: {coding}")));
        (200, lines, b"x".to_vec())
    });
    let edge = TestEdge::new(address, &[]);
    let mut client = edge.connect();
    for (name, shown, values) in [
        (
            "Origin",
            "access-control-allow-origin",
            ["https://evil", "https://player"],
        ),
        ("Accept-Encoding", "content-encoding", ["br", "gzip"]),
    ] {
        let path = format!("/{name}");
        for _ in 0..2 {
            for value in values {
                let response = client.request("GET", &path, &[&format!("{name}: {value}")]);
                assert_eq!(response.header(shown).as_deref(), Some(value), "{name}");
                let vary = response.header("vary").unwrap();
                assert!(vary.eq_ignore_ascii_case(name), "{vary}");
                edge.wait_for_metric("headwater_cache_flights", 0);
            }
        }
    }
    assert_eq!(seen.lock().unwrap().len(), 4);
    // `Access-Control-Allow-Origin: *` implies no variant, so all clients share the response.
    let (address, seen) = ScriptedOrigin::start_with(|_| {
        let all = "Access-Control-Allow-Origin: *".to_owned();
        (200, vec!["Cache-Control: max-age=60".into(), all], vec![])
    });
    let edge = TestEdge::new(address, &[]);
    for origin in ["https://one", "https://other"] {
        edge.request("GET", "/a", &[&format!("Origin: {origin}")]);
        edge.wait_for_metric("headwater_cache_flights", 0);
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// Operators can configure further request headers that the edge forwards.
#[test]
fn the_operator_can_forward_more_headers() {
    let (address, seen) = ScriptedOrigin::start_with(|_| (200, vec![], vec![]));
    let edge = TestEdge::new(address, &["--forward", "user-agent"]);
    edge.request("GET", "/a", &["User-Agent: player", "Referer: http://a"]);
    let seen = seen.lock().unwrap();
    assert!(seen[0].contains("user-agent: player\r\n"), "{}", seen[0]);
    assert!(!seen[0].contains("referer"), "{}", seen[0]);
}

#[test]
fn a_response_belongs_to_the_named_host() {
    let (address, seen) = ScriptedOrigin::start_with(|exchange| {
        let host = exchange.header("host").unwrap_or("none").to_owned();
        (
            200,
            vec!["Cache-Control: max-age=60".into()],
            host.into_bytes(),
        )
    });
    let edge = TestEdge::new(address, &["--forward-host", "client"]);
    let ask = |text: &str| {
        let mut client = edge.connect();
        client.write_ignoring_errors(text.as_bytes());
        client.read_response("GET").text()
    };
    // The host of an absolute target has precedence over the Host header, both in the cache key and
    // in the request to the origin.
    assert_eq!(
        ask("GET http://victim/a HTTP/1.1\r\nHost: evil\r\n\r\n"),
        "victim"
    );
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert_eq!(ask("GET /a HTTP/1.1\r\nHost: victim\r\n\r\n"), "victim");
    assert_eq!(ask("GET /a HTTP/1.1\r\nHost: VICTIM\r\n\r\n"), "victim");
    assert_eq!(ask("GET /a HTTP/1.1\r\nHost: evil\r\n\r\n"), "evil");
    assert_eq!(
        ask("GET /a HTTP/1.1\r\nHost: victim:81\r\n\r\n"),
        "victim:81"
    );
    assert_eq!(seen.lock().unwrap().len(), 3);
}

/// Web cache deception: a path that looks like a static file does not make its response cacheable.
/// Spellings of a path that are not equivalent have different cache keys.
#[test]
fn static_looking_paths_do_not_make_responses_cacheable() {
    let (address, seen) = ScriptedOrigin::start_with(|exchange| {
        let who = exchange.header("cookie").unwrap_or("nobody").to_owned();
        let lines = vec![
            "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT".into(),
            "Content-Type: text/html".into(),
        ];
        (200, lines, who.into_bytes())
    });
    let edge = TestEdge::new(address, &[]);
    for path in [
        "/me/x.css",
        "/me;x.css",
        "/me%2fx.css",
        "/me/..%2fx.css",
        "/me?x.css",
        "/static/..%2f..%2fme",
        "/static/%2e%2e/me",
        "/me%00x.css",
        "/me%23x.css",
        "//me/x.css",
    ] {
        let victim = edge.request("GET", path, &["Cookie: victim"]);
        assert_eq!(victim.text(), "victim", "{path}");
        edge.wait_for_metric("headwater_cache_flights", 0);
        let attacker = edge.get_path(path);
        assert_ne!(attacker.text(), "victim", "{path}");
    }
    let targets: Vec<String> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|head| head.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert!(
        targets.contains(&"/static/%2e%2e/me".to_owned()),
        "paths are forwarded unchanged: {targets:?}"
    );
}

#[test]
fn an_error_caused_by_an_attacker_is_not_shared() {
    let (address, _) = ScriptedOrigin::start_with(|exchange| {
        // The origin rejects long request heads and the header X-Evil.
        if exchange.head.len() > 3000 || exchange.header("x-evil").is_some() {
            return (400, vec![], b"choked".to_vec());
        }
        (
            200,
            vec!["Cache-Control: max-age=60".into()],
            b"fine".to_vec(),
        )
    });
    let edge = TestEdge::new(address, &[]);
    let long = format!("Cookie: {}", "a".repeat(5000));
    assert_eq!(edge.request("GET", "/a", &[&long]).status, 400);
    assert_eq!(edge.get_path("/a").text(), "fine");
    assert_eq!(edge.request("GET", "/b", &["X-Evil: 1"]).text(), "fine");
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert_eq!(edge.get_path("/b").text(), "fine");
}
