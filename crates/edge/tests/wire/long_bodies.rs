//! Bodies of 64 KiB or more. The edge reads such a body into buffers that contain only bytes of
//! this body, instead of recycled buffers. In the tests, clients share a body that is still
//! arriving, the origin cuts a body, and the edge stores bodies.

use crate::KEEP;
use crate::support::{ScriptedOrigin, TestEdge, format_head};

const LEN: usize = 300_000;
const HALF: usize = LEN / 2;

fn make_body(seed: usize) -> Vec<u8> {
    (0..LEN).map(|n| ((n + seed) % 251) as u8).collect()
}

#[test]
fn a_long_body_is_shared_while_it_arrives_and_its_connection_reused() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    for round in 0..3 {
        let (path, body) = (format!("/{round}"), make_body(round));
        let (mut first, mut second, mut part) = (edge.connect(), edge.connect(), edge.connect());
        first.send("GET", &path, &[]);
        let mut exchange = origin.next_request();
        second.send("GET", &path, &[]);
        exchange.send(format_head(200, &[KEEP], Some(LEN)));
        exchange.send(&body[..HALF]);
        for client in [&mut first, &mut second] {
            assert_eq!(client.read_head().status, 200);
            assert!(client.take(HALF) == body[..HALF]);
        }
        part.send("GET", &path, &["Range: bytes=149000-151999"]);
        assert_eq!(part.read_head().status, 206);
        assert!(part.take(1000) == body[149_000..HALF]);
        exchange.send(&body[HALF..]);
        exchange.finish();
        assert!(first.take(LEN - HALF) == body[HALF..]);
        assert!(second.take(LEN - HALF) == body[HALF..]);
        assert!(part.take(2000) == body[HALF..152_000]);
        edge.wait_for_metric("headwater_cache_flights", 0);
        // The first hit starts a copy of the body to the arena. Hits are served from the heap until
        // the copy is complete, and from the arena afterwards.
        for _ in 0..4 {
            let hit = edge.get_path(&path);
            assert!(hit.cache_status().contains("; hit") && hit.body == body);
        }
    }
    assert_eq!(origin.request_count(), 3);
    let opened = edge.read_metric("headwater_upstream_connections_opened_total");
    // Each of the two workers has its own connection to the origin.
    assert!((1..=2).contains(&opened), "{opened} for three requests");
}

#[test]
fn a_cut_long_body_is_cut_for_all_and_not_stored() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let (mut first, mut second) = (edge.connect(), edge.connect());
    first.send("GET", "/a", &[]);
    let mut exchange = origin.next_request();
    second.send("GET", "/a", &[]);
    exchange.send(format_head(200, &[KEEP], Some(LEN)));
    exchange.send(&make_body(0)[..HALF]);
    for client in [&mut first, &mut second] {
        client.read_head();
        assert!(client.take(HALF) == make_body(0)[..HALF]);
    }
    drop(exchange);
    assert_eq!(
        (first.read_to_end(), second.read_to_end()),
        (vec![], vec![])
    );
    edge.wait_for_metric("headwater_cache_flights", 0);
    first = edge.connect();
    first.send("GET", "/a", &[]);
    origin.next_request().respond(200, &[KEEP], &make_body(1));
    assert!(first.read_response("GET").body == make_body(1));
}
