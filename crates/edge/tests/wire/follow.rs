//! Many clients read the response of one fetch while it arrives.

use std::sync::Barrier;

use crate::KEEP;
use crate::support::{RawClient, ScriptedOrigin, TestEdge, format_head};

#[test]
fn a_thousand_clients_share_one_fetch_while_it_arrives() {
    const CLIENTS: usize = 1000;
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut clients: Vec<RawClient> = (0..CLIENTS).map(|_| edge.connect()).collect();
    for client in &mut clients {
        client.send("GET", "/segment", &[]);
    }
    let mut exchange = origin.next_request();
    exchange.send(format_head(200, &[KEEP], Some(6)));
    exchange.send("abc");
    // All clients get the first half of the body before the origin sends the second half.
    for client in &mut clients {
        assert_eq!(client.read_head().status, 200);
        assert_eq!(client.take(3), b"abc");
    }
    // Another client joins in the middle of the body.
    let mut late = edge.connect();
    late.send("GET", "/segment", &["Range: bytes=1-4"]);
    assert_eq!(late.read_head().status, 206);
    assert_eq!(late.take(2), b"bc");
    exchange.send("def");
    exchange.finish();
    for client in &mut clients {
        assert_eq!(client.take(3), b"def");
    }
    assert_eq!(late.take(2), b"de");
    assert_eq!(origin.request_count(), 1);
    let follow = edge.read_metric("headwater_cache_requests_total{result=\"follow\"}");
    let miss = edge.read_metric("headwater_cache_requests_total{result=\"miss\"}");
    assert_eq!((follow, miss), (CLIENTS as u64, 1));
}

#[test]
fn a_leader_can_disconnect_without_harm() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut first = edge.connect();
    first.send("GET", "/a", &[]);
    let mut exchange = origin.next_request();
    let mut second = edge.connect();
    second.send("GET", "/a", &[]);
    exchange.send(format_head(200, &[KEEP], Some(6)));
    exchange.send("abc");
    first.read_head();
    second.read_head();
    assert_eq!(second.take(3), b"abc");
    drop(first);
    exchange.send("def");
    exchange.finish();
    assert_eq!(second.take(3), b"def");
    edge.wait_for_metric("headwater_cache_objects", 1);
    assert_eq!(origin.request_count(), 1);
}

#[test]
fn a_fetch_continues_and_is_stored_after_all_clients_disconnect() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut only = edge.connect();
    only.send("GET", "/a", &[]);
    let mut exchange = origin.next_request();
    drop(only);
    exchange.send(format_head(200, &[KEEP], Some(3)));
    exchange.send("abc");
    exchange.finish();
    edge.wait_for_metric("headwater_cache_objects", 1);
    assert_eq!(
        edge.get_path("/a").cache_status(),
        "headwater; hit; detail=fresh"
    );
    assert_eq!(origin.request_count(), 1);
}

#[test]
fn a_cut_fetch_cuts_its_readers_and_stores_nothing() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    for framing in ["Content-Length: 9", "Transfer-Encoding: chunked"] {
        let mut clients = [edge.connect(), edge.connect()];
        for client in &mut clients {
            client.send("GET", "/a", &[]);
        }
        let mut exchange = origin.next_request();
        exchange.send(format_head(200, &[KEEP, framing], None));
        exchange.send(if framing.contains("chunked") {
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
            assert_eq!(client.read_head().status, 200);
            assert_eq!(client.take(expected.len()), expected);
        }
        drop(exchange);
        // A cut body must not look complete, so clients receive neither all nine bytes nor the last
        // chunk.
        for client in &mut clients {
            assert_eq!(client.read_to_end(), b"");
        }
    }
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert_eq!(edge.read_metric("headwater_cache_objects"), 0);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    origin.next_request().respond(200, &[KEEP], b"whole");
    assert_eq!(client.read_response("GET").text(), "whole");
}

#[test]
fn a_drain_waits_for_running_fetches() {
    let origin = ScriptedOrigin::new();
    let mut edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let mut exchange = origin.next_request();
    exchange.send(format_head(200, &[KEEP], Some(6)));
    exchange.send("abc");
    client.read_head();
    assert_eq!(client.take(3), b"abc");
    edge.shutdown().drain();
    exchange.send("def");
    exchange.finish();
    assert_eq!(client.take(3), b"def");
    edge.drain();
}

#[test]
fn concurrent_requests_share_one_fetch() {
    let (address, seen) =
        ScriptedOrigin::start_with(|_| (200, vec![KEEP.into()], vec![1; 100_000]));
    let edge = TestEdge::new(address, &[]);
    for round in 0..20 {
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut client = edge.connect();
                    barrier.wait();
                    let response = client.request("GET", &format!("/{round}"), &[]);
                    assert_eq!(response.body.len(), 100_000);
                });
            }
        });
        assert_eq!(seen.lock().unwrap().len(), round + 1);
    }
}
