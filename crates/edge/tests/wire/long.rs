//! Bodies that are long enough to be read past HTTP: shared while they arrive, cut, and kept.

use crate::KEEP;
use crate::support::{Edge, Origin, head};

const LEN: usize = 300_000;
const HALF: usize = LEN / 2;

fn body(seed: usize) -> Vec<u8> {
    (0..LEN).map(|n| ((n + seed) % 251) as u8).collect()
}

#[test]
fn a_long_body_is_shared_while_it_arrives_and_its_connection_used_again() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    for round in 0..3 {
        let (path, body) = (format!("/{round}"), body(round));
        let (mut first, mut second, mut part) = (edge.connect(), edge.connect(), edge.connect());
        first.send("GET", &path, &[]);
        let mut asked = origin.next();
        second.send("GET", &path, &[]);
        asked.send(head(200, &[KEEP], Some(LEN)));
        asked.send(&body[..HALF]);
        for client in [&mut first, &mut second] {
            assert_eq!(client.head().status, 200);
            assert!(client.take(HALF) == body[..HALF]);
        }
        part.send("GET", &path, &["Range: bytes=149000-151999"]);
        assert_eq!(part.head().status, 206);
        assert!(part.take(1000) == body[149_000..HALF]);
        asked.send(&body[HALF..]);
        asked.done();
        assert!(first.take(LEN - HALF) == body[HALF..]);
        assert!(second.take(LEN - HALF) == body[HALF..]);
        assert!(part.take(2000) == body[HALF..152_000]);
        edge.until("headwater_cache_flights", 0);
        // From where it came to lie, and from where the second use has put it.
        for _ in 0..4 {
            let hit = edge.get(&path);
            assert!(hit.cache().contains("; hit") && hit.body == body);
        }
    }
    assert_eq!(origin.count(), 3);
    let opened = edge.metric("headwater_upstream_connections_opened_total");
    // Each of two workers has its own.
    assert!((1..=2).contains(&opened), "{opened} for three requests");
}

#[test]
fn a_long_body_that_is_cut_is_cut_for_all_and_not_kept() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let (mut first, mut second) = (edge.connect(), edge.connect());
    first.send("GET", "/a", &[]);
    let mut asked = origin.next();
    second.send("GET", "/a", &[]);
    asked.send(head(200, &[KEEP], Some(LEN)));
    asked.send(&body(0)[..HALF]);
    for client in [&mut first, &mut second] {
        client.head();
        assert!(client.take(HALF) == body(0)[..HALF]);
    }
    drop(asked);
    assert_eq!((first.rest(), second.rest()), (vec![], vec![]));
    edge.until("headwater_cache_flights", 0);
    first = edge.connect();
    first.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP], &body(1));
    assert!(first.answer("GET").body == body(1));
}
