//! What is for one client, or for some, is given to no other.

use crate::KEEP;
use crate::support::{Edge, Origin, head};

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
    let answer = clients[1].answer("GET");
    assert_eq!(
        (answer.text().as_str(), answer.cache().as_str()),
        (
            "at once",
            "headwater; fwd=bypass; fwd-status=200; detail=apart"
        )
    );
    third.answer(200, &["Set-Cookie: a=b"], b"later");
    assert_eq!(clients[0].answer("GET").text(), "later");
}

/// A mark that nothing but time could take away would let one private answer cost a popular URL its
/// cache for as long.
#[test]
fn an_answer_that_may_be_kept_ends_the_time_apart() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &["Cookie: who=0"]);
    origin
        .next()
        .answer(200, &["Cache-Control: private"], b"for 0");
    assert_eq!(client.answer("GET").text(), "for 0");
    edge.until("headwater_cache_flights", 0);
    client.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP], b"for all");
    assert_eq!(client.answer("GET").text(), "for all");
    edge.until("headwater_cache_flights", 0);
    let answer = client.ask("GET", "/a", &[]);
    assert_eq!(answer.cache(), "headwater; hit; detail=fresh");
    assert_eq!(origin.count(), 2);
}

#[test]
fn who_asks_for_a_part_of_what_is_not_shared_is_given_just_that() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    origin
        .next()
        .answer(200, &["Cache-Control: private"], b"whole");
    assert_eq!(client.answer("GET").text(), "whole");
    client.send("GET", "/a", &["Range: bytes=0-1"]);
    let asked = origin.next();
    assert_eq!(asked.header("range"), Some("bytes=0-1"));
    asked.answer(206, &["Content-Range: bytes 0-1/5"], b"wh");
    assert_eq!(client.answer("GET").text(), "wh");
}

/// What a client said wrongly says nothing of the URL: those who said the same are given the same
/// refusal, another one asks anew, and what then comes is kept.
#[test]
fn a_refusal_is_shared_by_those_who_said_the_same_and_marks_nothing() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut bad = edge.connect();
    bad.send("GET", "/a", &["Accept-Language: nonsense"]);
    let mut first = origin.next();
    // The head is here and the body is not: whoever comes now follows.
    first.send(head(400, &["Cache-Control: no-store"], Some(2)));
    assert_eq!(bad.head().status, 400);
    let (mut same, mut other) = (edge.connect(), edge.connect());
    let lines = ["Accept-Language: nonsense", "X-Request-Id: 2"];
    same.send("GET", "/a", &lines);
    let shared = same.head();
    assert_eq!(shared.status, 400);
    assert!(shared.cache().contains("collapsed"), "{}", shared.head);
    other.send("GET", "/a", &[]);
    let second = origin.next();
    assert_eq!(second.header("accept-language"), None);
    second.answer(200, &[KEEP], b"yes");
    assert_eq!(other.answer("GET").text(), "yes");
    first.send("no");
    first.done();
    assert_eq!((bad.take(2), same.take(2)), (b"no".into(), b"no".into()));
    assert_eq!(origin.count(), 2);
    edge.until("headwater_cache_flights", 0);
    // Nobody waits for anybody's error, and the next answer that may be kept is.
    other.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP], b"yes");
    assert_eq!(other.answer("GET").text(), "yes");
    edge.until("headwater_cache_objects", 1);
    let answer = edge.ask("GET", "/a", &["Accept-Language: nonsense"]);
    assert_eq!(answer.cache(), "headwater; hit; detail=fresh");
}

/// Whom a request has passed is said by whoever sends it, and origins hear it.
#[test]
fn a_refusal_for_whom_a_request_has_passed_is_given_to_no_others() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let (mut bad, mut other) = (edge.connect(), edge.connect());
    bad.send("GET", "/a", &["CDN-Loop: another"]);
    let mut first = origin.next();
    // The head is here and the body is not: whoever comes now follows.
    first.send(head(400, &["Cache-Control: no-store"], Some(2)));
    assert_eq!(bad.head().status, 400);
    other.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP], b"yes");
    assert_eq!(other.answer("GET").text(), "yes");
    first.send("no");
    first.done();
    assert_eq!(bad.take(2), b"no");
}

/// A private refusal is for one alone, and still no mark.
#[test]
fn a_refusal_for_one_client_is_given_to_no_other() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut clients = [edge.connect(), edge.connect()];
    clients[0].send("GET", "/a", &[]);
    let first = origin.next();
    clients[1].send("GET", "/a", &[]);
    first.answer(403, &["Set-Cookie: a=b"], b"not you");
    origin.next().answer(200, &[KEEP], b"but you");
    assert_eq!(clients[0].answer("GET").status, 403);
    assert_eq!(clients[1].answer("GET").text(), "but you");
}

#[test]
fn variants_are_kept_apart_and_bounded() {
    let (address, seen) = Origin::answering(|exchange| {
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
fn followers_of_two_variants_cost_two_requests() {
    const EACH: usize = 20;
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut clients: Vec<_> = (0..2 * EACH).map(|_| edge.connect()).collect();
    let line = |n: usize| format!("Accept-Encoding: {}", ["gzip", "br"][n % 2]);
    clients[0].send("GET", "/a", &[&line(0)]);
    let mut first = origin.next();
    for (n, client) in clients.iter_mut().enumerate().skip(1) {
        client.send("GET", "/a", &[&line(n)]);
    }
    first.send(head(200, &[KEEP, "Vary: Accept-Encoding"], Some(4)));
    let second = origin.next();
    assert_eq!(second.header("accept-encoding"), Some("br"));
    second.answer(200, &[KEEP, "Vary: Accept-Encoding"], b"br..");
    first.send("gzip");
    first.done();
    for (n, client) in clients.iter_mut().enumerate() {
        let expected = ["gzip", "br.."][n % 2];
        assert_eq!(client.answer("GET").text(), expected, "{n}");
    }
    assert_eq!(origin.count(), 2);
}

/// A header that was no text counted as absent: one client's variant became everybody's.
#[test]
fn a_header_that_is_no_text_makes_no_variant_for_all() {
    let (address, _) = Origin::answering(|exchange| {
        let said = exchange.header("accept-language").unwrap_or("-").to_owned();
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, said.into_bytes())
    });
    let edge = Edge::new(address, &[]);
    let mut client = edge.connect();
    let raw = b"GET /a HTTP/1.1\r\nHost: edge\r\nAccept-Language: \xe9\r\n\r\n";
    std::io::Write::write_all(&mut client.stream, raw).unwrap();
    assert_eq!(client.answer("GET").status, 200);
    edge.until("headwater_cache_flights", 0);
    assert_eq!(client.ask("GET", "/a", &[]).text(), "-");
}

#[test]
fn a_request_that_says_too_much_for_a_variant_is_for_itself() {
    let (address, _) = Origin::answering(|_| {
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, b"x".to_vec())
    });
    let edge = Edge::new(address, &[]);
    let line = format!("Accept-Language: {}", "x".repeat(3000));
    let answer = edge.ask("GET", "/a", &[&line]);
    assert!(
        answer.cache().ends_with("detail=vary-long"),
        "{}",
        answer.cache()
    );
}
