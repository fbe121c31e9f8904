//! One fetch, read by many while it arrives.

use std::sync::Barrier;

use crate::KEEP;
use crate::support::{Client, Edge, Origin, head};

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
