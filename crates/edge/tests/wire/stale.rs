//! What is stale is asked for anew, and stands in where it may.

use crate::KEEP;
use crate::support::{Edge, Origin};

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
    edge.until("headwater_cache_followers", 1);
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
fn failures_of_the_origin_have_their_status_and_all_who_wait_hear_it() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &["--origin-first-byte-timeout", "3s"]);
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
    edge.until("headwater_cache_followers", 1);
    asked.answer(500, &[], b"sick");
    for client in &mut clients {
        assert_eq!(client.answer("GET").status, 500);
    }
    assert_eq!(origin.count(), 2);
    edge.until("headwater_cache_objects", 0);
}

#[test]
fn a_304_about_something_else_confirms_nothing() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next().answer(200, &stale, b"one");
    client.answer("GET");
    edge.until("headwater_cache_objects", 1);
    client.send("GET", "/a", &[]);
    origin.next().answer(304, &[KEEP, "ETag: \"2\""], b"");
    let again = origin.next();
    assert_eq!(again.header("if-none-match"), None);
    again.answer(200, &[KEEP, "ETag: \"2\""], b"two");
    let answer = client.answer("GET");
    assert_eq!((answer.status, answer.text().as_str()), (200, "two"));
    assert_eq!(answer.header("etag").as_deref(), Some("\"2\""));
}

/// What was for all may be confirmed for one page's origin alone.
#[test]
fn what_a_304_shows_for_whom_it_is_is_given_to_no_others() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next().answer(200, &stale, b"one");
    client.answer("GET");
    edge.until("headwater_cache_objects", 1);
    let allowed = "access-control-allow-origin";
    client.send("GET", "/a", &["Origin: https://evil"]);
    let asked = origin.next();
    assert_eq!(asked.header("if-none-match"), Some("\"1\""));
    asked.answer(
        304,
        &[KEEP, "Access-Control-Allow-Origin: https://evil"],
        b"",
    );
    let answer = client.answer("GET");
    assert_eq!(answer.text(), "one");
    assert_eq!(answer.header(allowed).as_deref(), Some("https://evil"));
    edge.until("headwater_cache_flights", 0);
    client.send("GET", "/a", &["Origin: https://player"]);
    let lines = [KEEP, "Access-Control-Allow-Origin: https://player"];
    origin.next().answer(200, &lines, b"one");
    let answer = client.answer("GET");
    assert_eq!(answer.header(allowed).as_deref(), Some("https://player"));
    edge.until("headwater_cache_flights", 0);
    let answer = client.ask("GET", "/a", &["Origin: https://evil"]);
    assert_eq!(answer.cache(), "headwater; hit; detail=fresh");
    assert_eq!(answer.header(allowed).as_deref(), Some("https://evil"));
    assert_eq!(origin.count(), 3);
}
