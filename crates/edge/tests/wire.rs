//! The cache as clients and origins see it: every byte scripted, counters judge.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Barrier;

use support::{Client, Edge, Origin, head};

const KEEP: &str = "Cache-Control: max-age=60";

#[test]
fn the_second_request_is_a_hit_and_the_origin_is_asked_once() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a?x=1", &["X-Forwarded-Host: evil", "Accept: a"]);
    let asked = origin.next();
    assert_eq!(asked.target(), "/a?x=1");
    assert_eq!(
        asked.header("host"),
        Some(origin.address.to_string().as_str())
    );
    assert_eq!(asked.header("x-forwarded-host"), None);
    assert_eq!(asked.header("accept"), Some("a"));
    assert_eq!(asked.header("via"), Some("1.1 headwater"));
    asked.answer(
        200,
        &[KEEP, "Age: 7", "X: y", "Connection: X-Hop", "X-Hop: 1"],
        b"abc",
    );
    let miss = client.answer("GET");
    assert_eq!((miss.status, miss.text().as_str()), (200, "abc"));
    assert_eq!(
        miss.cache(),
        "headwater; fwd=uri-miss; fwd-status=200; stored; detail=absent"
    );
    assert_eq!(miss.header("x-hop"), None);
    edge.until("headwater_cache_objects", 1);
    let hit = client.ask("GET", "/a?x=1&CMCD=bl%3D1", &[]);
    assert_eq!((hit.status, hit.text().as_str()), (200, "abc"));
    assert_eq!(hit.cache(), "headwater; hit; detail=fresh");
    assert_eq!(hit.header("age").as_deref(), Some("7"));
    assert_eq!(hit.header("x").as_deref(), Some("y"));
    assert_eq!(hit.header("via").as_deref(), Some("1.1 headwater"));
    assert_eq!(origin.count(), 1);
    assert_eq!(
        edge.metric("headwater_cache_requests_total{result=\"hit\"}"),
        1
    );
}

#[test]
fn whole_objects_answer_ranges_conditions_and_head() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &["Range: bytes=2-3", "If-None-Match: \"b\""]);
    let asked = origin.next();
    assert_eq!(
        (asked.header("range"), asked.header("if-none-match")),
        (None, None)
    );
    asked.answer(
        200,
        &[KEEP, "ETag: \"b\"", "Content-Type: text/x"],
        b"0123456789",
    );
    assert_eq!(
        client.answer("GET").status,
        304,
        "it is what the client has"
    );
    edge.until("headwater_cache_objects", 1);
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
        let answer = client.ask(method, "/a", headers);
        assert_eq!(answer.status, status, "{method} {headers:?}");
        if status < 300 {
            assert_eq!(answer.text(), body, "{method} {headers:?}");
        }
        if method == "HEAD" {
            assert_eq!(answer.header("content-length").as_deref(), Some("10"));
        }
    }
    let several = client.ask("GET", "/a", &["Range: bytes=0-0,9-9"]);
    assert_eq!(several.status, 206);
    assert!(
        several.text().contains("Content-Range: bytes 9-9/10"),
        "{}",
        several.text()
    );
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_thousand_clients_cost_one_request_and_read_while_it_arrives() {
    const CLIENTS: usize = 1000;
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| edge.connect()).collect();
    for client in &mut clients {
        client.send("GET", "/segment", &[]);
    }
    let mut asked = origin.next();
    asked.send(head(200, &[KEEP], Some(6)));
    asked.send("abc");
    // Everybody has the first half before the second is sent.
    for client in &mut clients {
        assert_eq!(client.head().status, 200);
        assert_eq!(client.take(3), b"abc");
    }
    // One more joins in the middle.
    let mut late = edge.connect();
    late.send("GET", "/segment", &["Range: bytes=1-4"]);
    assert_eq!(late.head().status, 206);
    assert_eq!(late.take(2), b"bc");
    asked.send("def");
    asked.done();
    for client in &mut clients {
        assert_eq!(client.take(3), b"def");
    }
    assert_eq!(late.take(2), b"de");
    assert_eq!(origin.count(), 1);
    let follow = edge.metric("headwater_cache_requests_total{result=\"follow\"}");
    let miss = edge.metric("headwater_cache_requests_total{result=\"miss\"}");
    assert_eq!((follow, miss), (CLIENTS as u64, 1));
}

#[test]
fn the_first_clients_leaving_hurts_nobody() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut first = edge.connect();
    first.send("GET", "/a", &[]);
    let mut asked = origin.next();
    let mut second = edge.connect();
    second.send("GET", "/a", &[]);
    asked.send(head(200, &[KEEP], Some(6)));
    asked.send("abc");
    first.head();
    second.head();
    assert_eq!(second.take(3), b"abc");
    drop(first);
    asked.send("def");
    asked.done();
    assert_eq!(second.take(3), b"def");
    edge.until("headwater_cache_objects", 1);
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_fetch_goes_on_and_is_kept_when_all_have_left() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut only = edge.connect();
    only.send("GET", "/a", &[]);
    let mut asked = origin.next();
    drop(only);
    asked.send(head(200, &[KEEP], Some(3)));
    asked.send("abc");
    asked.done();
    edge.until("headwater_cache_objects", 1);
    assert_eq!(edge.get("/a").cache(), "headwater; hit; detail=fresh");
    assert_eq!(origin.count(), 1);
}

#[test]
fn an_origin_that_is_cut_cuts_its_readers_and_leaves_nothing() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    for framing in ["Content-Length: 9", "Transfer-Encoding: chunked"] {
        let mut clients = [edge.connect(), edge.connect()];
        for client in &mut clients {
            client.send("GET", "/a", &[]);
        }
        let mut asked = origin.next();
        asked.send(head(200, &[KEEP, framing], None));
        asked.send(if framing.contains("chunked") {
            "3\r\nabc\r\n"
        } else {
            "abc"
        });
        let expected: &[u8] = if framing.contains("chunked") {
            b"3\r\nabc\r\n"
        } else {
            b"abc"
        };
        for client in &mut clients {
            assert_eq!(client.head().status, 200);
            assert_eq!(client.take(expected.len()), expected);
        }
        drop(asked);
        // A cut body must not look whole: neither nine bytes nor a last chunk.
        for client in &mut clients {
            assert_eq!(client.rest(), b"");
        }
    }
    edge.until("headwater_cache_flights", 0);
    assert_eq!(edge.metric("headwater_cache_objects"), 0);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP], b"whole");
    assert_eq!(client.answer("GET").text(), "whole");
}

#[test]
fn stale_answers_are_confirmed_and_replaced() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    client.send("GET", "/a", &[]);
    origin.next().answer(200, &stale, b"one");
    assert_eq!(client.answer("GET").text(), "one");
    edge.until("headwater_cache_objects", 1);
    // Two ask, one question, and its answer is for both.
    let mut other = edge.connect();
    client.send("GET", "/a", &[]);
    let asked = origin.next();
    other.send("GET", "/a", &[]);
    assert_eq!(asked.header("if-none-match"), Some("\"1\""));
    edge.until("headwater_cache_flights", 1);
    asked.answer(304, &["Cache-Control: max-age=5", "Age: 5", "X: new"], b"");
    for client in [&mut client, &mut other] {
        let answer = client.answer("GET");
        assert_eq!((answer.status, answer.text().as_str()), (200, "one"));
        assert_eq!(answer.header("x").as_deref(), Some("new"));
    }
    let revalidated = "headwater_cache_requests_total{result=\"revalidated\"}";
    assert!(edge.metric(revalidated) >= 1);
    client.send("GET", "/a", &[]);
    let asked = origin.next();
    asked.answer(200, &[KEEP, "ETag: \"2\""], b"two");
    assert_eq!(client.answer("GET").text(), "two");
    edge.until("headwater_cache_objects", 1);
    assert_eq!(client.ask("GET", "/a", &[]).text(), "two");
    assert_eq!(origin.count(), 3);
}

#[test]
fn while_it_is_asked_for_anew_stale_is_served() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let lines = [
        "Cache-Control: max-age=5, stale-while-revalidate=99",
        "Age: 9",
    ];
    origin.next().answer(200, &lines, b"old");
    client.answer("GET");
    edge.until("headwater_cache_objects", 1);
    let stale = client.ask("GET", "/a", &[]);
    assert_eq!(stale.text(), "old");
    assert_eq!(
        stale.cache(),
        "headwater; hit; detail=stale-while-revalidate"
    );
    let asked = origin.next();
    assert_eq!(client.ask("GET", "/a", &[]).text(), "old");
    asked.answer(200, &[KEEP], b"new");
    edge.until("headwater_cache_flights", 0);
    let fresh = client.ask("GET", "/a", &[]);
    assert_eq!(
        (fresh.text().as_str(), fresh.cache().as_str()),
        ("new", "headwater; hit; detail=fresh")
    );
    assert_eq!(origin.count(), 2, "one question, however many asked");
}

#[test]
fn when_the_origin_fails_stale_stands_in_where_allowed() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    for (path, rule) in [("/a", "max-age=5, stale-if-error=99"), ("/b", "max-age=5")] {
        client.send("GET", path, &[]);
        let lines = [
            format!("Cache-Control: {rule}"),
            "Age: 9".into(),
            "ETag: \"e\"".into(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        origin.next().answer(200, &lines, b"old");
        client.answer("GET");
    }
    edge.until("headwater_cache_objects", 2);
    client.send("GET", "/a", &[]);
    origin.next().answer(503, &[], b"no");
    let stale = client.answer("GET");
    assert_eq!((stale.status, stale.text().as_str()), (200, "old"));
    assert_eq!(stale.cache(), "headwater; hit; detail=stale-if-error");
    client.send("GET", "/b", &[]);
    origin.next().answer(503, &[], b"no");
    assert_eq!(client.answer("GET").status, 503);
}

#[test]
fn what_is_for_one_client_is_given_to_no_other() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut clients = [edge.connect(), edge.connect()];
    clients[0].send("GET", "/me", &["Cookie: who=0"]);
    let first = origin.next();
    clients[1].send("GET", "/me", &["Cookie: who=1"]);
    edge.until("headwater_cache_flights", 1);
    first.answer(200, &["Cache-Control: private"], b"for 0");
    let second = origin.next();
    assert_eq!(second.header("cookie"), Some("who=1"));
    second.answer(200, &["Cache-Control: private"], b"for 1");
    assert_eq!(clients[0].answer("GET").text(), "for 0");
    assert_eq!(clients[1].answer("GET").text(), "for 1");
    // For a while nobody waits for anybody.
    clients[0].send("GET", "/me", &[]);
    let third = origin.next();
    clients[1].send("GET", "/me", &[]);
    origin.next().answer(200, &["Set-Cookie: a=b"], b"at once");
    assert_eq!(clients[1].answer("GET").text(), "at once");
    third.answer(200, &["Set-Cookie: a=b"], b"later");
    let answer = clients[0].answer("GET");
    assert_eq!(
        (answer.text().as_str(), answer.cache().as_str()),
        (
            "later",
            "headwater; fwd=bypass; fwd-status=200; detail=apart"
        )
    );
}

#[test]
fn variants_are_kept_apart_and_bounded() {
    let (address, seen) = support::Origin::answering(|exchange| {
        let body = exchange.header("accept-language").unwrap_or("-").to_owned();
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, body.into_bytes())
    });
    let edge = Edge::new(address, &[]);
    let mut client = edge.connect();
    for round in 0..2 {
        for language in ["de", "fr", "DE"] {
            let line = format!("Accept-Language: {language}");
            let answer = client.ask("GET", "/a", &[&line]);
            assert_eq!(answer.text().to_lowercase(), language.to_lowercase());
            edge.until("headwater_cache_flights", 0);
            if round > 0 {
                assert_eq!(answer.cache(), "headwater; hit; detail=fresh");
            }
        }
    }
    assert_eq!(seen.lock().unwrap().len(), 2, "de and DE are the same");
    for n in 0..200 {
        let line = format!("Accept-Language: x-{n}");
        assert_eq!(client.ask("GET", "/a", &[&line]).text(), format!("x-{n}"));
    }
    edge.until("headwater_cache_flights", 0);
    let objects = edge.metric("headwater_cache_objects");
    assert!(objects <= 65, "an explosion of variants: {objects}");
}

#[test]
fn a_follower_that_varies_is_not_given_the_leaders_variant() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let (mut gzip, mut plain) = (edge.connect(), edge.connect());
    gzip.send("GET", "/a", &["Accept-Encoding: gzip"]);
    let first = origin.next();
    plain.send("GET", "/a", &[]);
    edge.until("headwater_cache_flights", 1);
    let lines = [KEEP, "Vary: Accept-Encoding", "Content-Encoding: gzip"];
    first.answer(200, &lines, b"zipped");
    let second = origin.next();
    assert_eq!(second.header("accept-encoding"), None);
    second.answer(200, &[KEEP, "Vary: Accept-Encoding"], b"plain");
    assert_eq!(gzip.answer("GET").text(), "zipped");
    assert_eq!(plain.answer("GET").text(), "plain");
}

#[test]
fn what_is_too_long_is_passed_on_and_ranges_of_it_too() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--memory", "16MiB"]);
    let body = vec![7; 4 << 20];
    let mut client = edge.connect();
    client.send("GET", "/film", &["Range: bytes=5-6"]);
    let mut whole = origin.next();
    assert_eq!(whole.header("range"), None);
    whole.send(head(200, &[KEEP], Some(body.len())));
    let part = origin.next();
    assert_eq!(part.header("range"), Some("bytes=5-6"));
    part.answer(206, &["Content-Range: bytes 5-6/4194304"], b"xy");
    let answer = client.answer("GET");
    assert_eq!((answer.status, answer.text().as_str()), (206, "xy"));
    whole.gone();
    // Of unknown length: it turns out on the way.
    client.send("GET", "/live", &[]);
    let mut asked = origin.next();
    asked.send(head(200, &[KEEP, "Transfer-Encoding: chunked"], None));
    let feed = std::thread::spawn(move || {
        for _ in 0..4 {
            asked.send(format!("{:x}\r\n", 1 << 20));
            asked.send(vec![7; 1 << 20]);
            asked.send("\r\n");
        }
        asked.send("0\r\n\r\n");
        asked.done();
    });
    let answer = client.answer("GET");
    feed.join().unwrap();
    assert!(answer.complete);
    assert_eq!(answer.body, body);
    edge.until("headwater_cache_flights", 0);
    assert!(edge.metric("headwater_cache_memory_bytes") < 1 << 20);
}

#[test]
fn clients_directives_are_heeded() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    let refused = client.ask("GET", "/a", &["Cache-Control: only-if-cached"]);
    assert_eq!((refused.status, origin.count()), (504, 0));
    client.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP, "ETag: \"1\""], b"one");
    client.answer("GET");
    edge.until("headwater_cache_objects", 1);
    assert_eq!(
        client
            .ask("GET", "/a", &["Cache-Control: only-if-cached"])
            .status,
        200
    );
    client.send("GET", "/a", &["Cache-Control: no-cache"]);
    origin.next().answer(304, &[], b"");
    let answer = client.answer("GET");
    assert_eq!(
        answer.cache(),
        "headwater; fwd=request; fwd-status=304; stored; detail=request-no-cache"
    );
    client.send("GET", "/b", &["Cache-Control: no-store"]);
    origin.next().answer(200, &[KEEP], b"b");
    assert_eq!(
        client.answer("GET").cache(),
        "headwater; fwd=request; fwd-status=200; detail=request-no-store"
    );
    edge.until("headwater_cache_objects", 1);
}

#[test]
fn failures_of_the_origin_have_their_status_and_all_who_wait_hear_it() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--origin-first-byte-timeout", "300ms"]);
    let mut clients = [edge.connect(), edge.connect()];
    for client in &mut clients {
        client.send("GET", "/slow", &[]);
    }
    let kept = origin.next();
    for client in &mut clients {
        let answer = client.answer("GET");
        assert_eq!(answer.status, 504);
        assert!(
            answer
                .header("headwater-error")
                .unwrap()
                .starts_with("upstream;")
        );
    }
    assert_eq!(origin.count(), 1);
    drop(kept);
    // An error is for all who waited, and is not kept.
    for client in &mut clients {
        client.send("GET", "/sick", &[]);
    }
    let asked = origin.next();
    edge.until("headwater_cache_flights", 1);
    asked.answer(500, &[], b"sick");
    for client in &mut clients {
        assert_eq!(client.answer("GET").status, 500);
    }
    assert_eq!(origin.count(), 2);
    edge.until("headwater_cache_objects", 0);
}

#[test]
fn a_drain_waits_for_what_is_being_fetched() {
    let origin = Origin::new();
    let mut edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let mut asked = origin.next();
    asked.send(head(200, &[KEEP], Some(6)));
    asked.send("abc");
    client.head();
    assert_eq!(client.take(3), b"abc");
    edge.shutdown().drain();
    asked.send("def");
    asked.done();
    assert_eq!(client.take(3), b"def");
    edge.drain();
}

#[test]
fn requests_at_once_after_a_barrier_cost_one_request() {
    let (address, seen) = Origin::answering(|_| (200, vec![KEEP.into()], vec![1; 100_000]));
    let edge = Edge::new(address, &[]);
    for round in 0..20 {
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut client = edge.connect();
                    barrier.wait();
                    let answer = client.ask("GET", &format!("/{round}"), &[]);
                    assert_eq!(answer.body.len(), 100_000);
                });
            }
        });
        assert_eq!(seen.lock().unwrap().len(), round + 1);
    }
}
