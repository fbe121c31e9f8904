//! Origins that are out, and come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};

use crate::support::Origin;
use crate::{KEEP, edge, named};

#[test]
fn probes_take_an_origin_out_and_bring_it_back() {
    let health = Arc::new(AtomicU16::new(503));
    let said = health.clone();
    let (probed, _) = Origin::answering(move |asked| {
        if asked.target() == "/up" {
            return (said.load(SeqCst), vec![], vec![]);
        }
        (200, vec![KEEP.into()], b"first".to_vec())
    });
    let (other, _) = named("second");
    let flags = [
        "--origin-balance",
        "first",
        "--origin-health",
        "/up",
        "--origin-health-interval",
        "50ms",
        "--origin-slow-start",
        "0s",
    ];
    let edge = edge(&[probed, other], &flags);
    edge.until("headwater_upstream_out_now", 1);
    assert_eq!(edge.get("/a").text(), "second");
    health.store(200, SeqCst);
    edge.until("headwater_upstream_out_now", 0);
    assert_eq!(edge.get("/b").text(), "first");
}

/// How many of so many files an origin is asked for that has just come back, beside another.
fn asked_of_one_that_is_back(slow_start: &str, files: usize) -> usize {
    let health = Arc::new(AtomicU16::new(503));
    let said = health.clone();
    let (back, seen) = Origin::answering(move |asked| {
        let status = if asked.target() == "/up" {
            said.load(SeqCst)
        } else {
            200
        };
        (status, vec![KEEP.into()], b"back".to_vec())
    });
    let (other, _) = named("other");
    let flags = [
        "--origin-health",
        "/up",
        "--origin-health-interval",
        "50ms",
        "--origin-slow-start",
        slow_start,
    ];
    let edge = edge(&[back, other], &flags);
    edge.until("headwater_upstream_out_now", 1);
    health.store(200, SeqCst);
    edge.until("headwater_upstream_out_now", 0);
    let mut client = edge.connect();
    for n in 0..files {
        assert_eq!(client.ask("GET", &format!("/{n}"), &[]).status, 200);
    }
    let seen = seen.lock().unwrap();
    seen.iter().filter(|head| !head.contains(" /up ")).count()
}

/// A twentieth beside a whole share is one file in 21, and of 400 files 19: sixty or none would be ten
/// times as rare as once in a million; two whole shares are 200.
#[test]
fn one_that_is_back_is_given_little_at_first() {
    let slowly = asked_of_one_that_is_back("24h", 400);
    assert!((1..60).contains(&slowly), "{slowly}");
    let at_once = asked_of_one_that_is_back("0s", 400);
    assert!((140..260).contains(&at_once), "{at_once}");
}
