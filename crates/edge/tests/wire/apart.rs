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
