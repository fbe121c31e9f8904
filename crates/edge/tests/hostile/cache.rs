//! One client's answer, given to others.

use super::strict::Strict;
use super::support::{Edge, Origin};

/// Web cache poisoning: what is not in the key must not reach the origin.
#[test]
fn no_header_outside_the_key_reaches_an_origin_whose_answer_is_kept() {
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
        let origin = Strict::new();
        let edge = Edge::new(origin.address, &[]);
        let mut client = edge.connect();
        client.send("GET", "/a", &[line]);
        if line.starts_with("Transfer") {
            client.stream_write(b"0\r\n\r\n");
        }
        let answer = client.answer("GET");
        assert!(answer.status < 500, "{line}: {}", answer.head);
        let name = line.split(':').next().unwrap();
        for seen in origin.seen() {
            let values = seen.values(name);
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

/// An origin that answers by a header and does not say so by Vary, where the answer shows it: what one
/// client's page may read, or one client can decode, is not for all.
#[test]
fn answers_that_show_for_whom_they_are_are_given_to_no_others() {
    let (address, seen) = Origin::answering(|asked| {
        let mut lines = vec!["Cache-Control: max-age=60".to_owned()];
        if let Some(origin) = asked.header("origin") {
            lines.push(format!("Access-Control-Allow-Origin: {origin}"));
        }
        let coding = asked.header("accept-encoding");
        lines.extend(coding.map(|coding| format!("Content-Encoding: {coding}")));
        (200, lines, b"x".to_vec())
    });
    let edge = Edge::new(address, &[]);
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
                let answer = client.ask("GET", &path, &[&format!("{name}: {value}")]);
                assert_eq!(answer.header(shown).as_deref(), Some(value), "{name}");
                let vary = answer.header("vary").unwrap();
                assert!(vary.eq_ignore_ascii_case(name), "{vary}");
                edge.until("headwater_cache_flights", 0);
            }
        }
    }
    assert_eq!(seen.lock().unwrap().len(), 4);
    // One that lets every page read it is for all.
    let (address, seen) = Origin::answering(|_| {
        let all = "Access-Control-Allow-Origin: *".to_owned();
        (200, vec!["Cache-Control: max-age=60".into(), all], vec![])
    });
    let edge = Edge::new(address, &[]);
    for origin in ["https://one", "https://other"] {
        edge.ask("GET", "/a", &[&format!("Origin: {origin}")]);
        edge.until("headwater_cache_flights", 0);
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// Who wants them all the same, says so, and has them.
#[test]
fn the_operator_may_send_more_on() {
    let (address, seen) = Origin::answering(|_| (200, vec![], vec![]));
    let edge = Edge::new(address, &["--forward", "user-agent"]);
    edge.ask("GET", "/a", &["User-Agent: player", "Referer: http://a"]);
    let seen = seen.lock().unwrap();
    assert!(seen[0].contains("user-agent: player\r\n"), "{}", seen[0]);
    assert!(!seen[0].contains("referer"), "{}", seen[0]);
}

#[test]
fn whoever_names_another_host_is_given_that_hosts_answer() {
    let (address, seen) = Origin::answering(|asked| {
        let host = asked.header("host").unwrap_or("none").to_owned();
        (
            200,
            vec!["Cache-Control: max-age=60".into()],
            host.into_bytes(),
        )
    });
    let edge = Edge::new(address, &["--forward-host", "client"]);
    let ask = |text: &str| {
        let mut client = edge.connect();
        client.stream_write(text.as_bytes());
        client.answer("GET").text()
    };
    // An absolute target goes before the Host header, for the key as for the origin.
    assert_eq!(
        ask("GET http://victim/a HTTP/1.1\r\nHost: evil\r\n\r\n"),
        "victim"
    );
    edge.until("headwater_cache_flights", 0);
    assert_eq!(ask("GET /a HTTP/1.1\r\nHost: victim\r\n\r\n"), "victim");
    assert_eq!(ask("GET /a HTTP/1.1\r\nHost: VICTIM\r\n\r\n"), "victim");
    assert_eq!(ask("GET /a HTTP/1.1\r\nHost: evil\r\n\r\n"), "evil");
    assert_eq!(
        ask("GET /a HTTP/1.1\r\nHost: victim:81\r\n\r\n"),
        "victim:81"
    );
    assert_eq!(seen.lock().unwrap().len(), 3);
}

/// Web cache deception: an ending that looks static makes nothing public, and no two spellings of
/// a path are one.
#[test]
fn what_looks_like_a_file_is_not_kept_for_that() {
    let (address, seen) = Origin::answering(|asked| {
        let who = asked.header("cookie").unwrap_or("nobody").to_owned();
        let lines = vec![
            "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT".into(),
            "Content-Type: text/html".into(),
        ];
        (200, lines, who.into_bytes())
    });
    let edge = Edge::new(address, &[]);
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
        let victim = edge.ask("GET", path, &["Cookie: victim"]);
        assert_eq!(victim.text(), "victim", "{path}");
        edge.until("headwater_cache_flights", 0);
        let attacker = edge.get(path);
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
        "paths go on as they came: {targets:?}"
    );
}

#[test]
fn an_error_that_an_attacker_causes_is_not_everybodys() {
    let (address, _) = Origin::answering(|asked| {
        // An origin that chokes on a header.
        if asked.head.len() > 3000 || asked.header("x-evil").is_some() {
            return (400, vec![], b"choked".to_vec());
        }
        (
            200,
            vec!["Cache-Control: max-age=60".into()],
            b"fine".to_vec(),
        )
    });
    let edge = Edge::new(address, &[]);
    let long = format!("Cookie: {}", "a".repeat(5000));
    assert_eq!(edge.ask("GET", "/a", &[&long]).status, 400);
    assert_eq!(edge.get("/a").text(), "fine");
    assert_eq!(edge.ask("GET", "/b", &["X-Evil: 1"]).text(), "fine");
    edge.until("headwater_cache_flights", 0);
    assert_eq!(edge.get("/b").text(), "fine");
}
