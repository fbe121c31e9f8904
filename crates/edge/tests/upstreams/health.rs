//! Suspension and recovery of origins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};

use crate::support::ScriptedOrigin;
use crate::{KEEP, start_edge, start_named_origin};

#[test]
fn probes_suspend_and_restore_an_origin() {
    let health = Arc::new(AtomicU16::new(503));
    let probe_status = health.clone();
    let (probed, _) = ScriptedOrigin::start_with(move |exchange| {
        if exchange.target() == "/up" {
            return (probe_status.load(SeqCst), vec![], vec![]);
        }
        (200, vec![KEEP.into()], b"first".to_vec())
    });
    let (other, _) = start_named_origin("second");
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
    let edge = start_edge(&[probed, other], &flags);
    edge.wait_for_metric("headwater_upstream_out_now", 1);
    assert_eq!(edge.get_path("/a").text(), "second");
    health.store(200, SeqCst);
    edge.wait_for_metric("headwater_upstream_out_now", 0);
    assert_eq!(edge.get_path("/b").text(), "first");
}

/// Requests `files` different files. Returns the number of requests that reach an origin that has
/// just recovered.
fn requests_to_recovering_origin(slow_start: &str, files: usize) -> usize {
    let health = Arc::new(AtomicU16::new(503));
    let probe_status = health.clone();
    let (back, seen) = ScriptedOrigin::start_with(move |exchange| {
        let status = if exchange.target() == "/up" {
            probe_status.load(SeqCst)
        } else {
            200
        };
        (status, vec![KEEP.into()], b"back".to_vec())
    });
    let (other, _) = start_named_origin("other");
    let flags = [
        "--origin-health",
        "/up",
        "--origin-health-interval",
        "50ms",
        "--origin-slow-start",
        slow_start,
    ];
    let edge = start_edge(&[back, other], &flags);
    edge.wait_for_metric("headwater_upstream_out_now", 1);
    health.store(200, SeqCst);
    edge.wait_for_metric("headwater_upstream_out_now", 0);
    let mut client = edge.connect();
    for n in 0..files {
        assert_eq!(client.request("GET", &format!("/{n}"), &[]).status, 200);
    }
    let seen = seen.lock().unwrap();
    seen.iter().filter(|head| !head.contains(" /up ")).count()
}

/// A recovered origin starts with one twentieth of its share. If another origin has a full share,
/// the recovered origin gets one file in 21, which is about 19 of 400 files. The probability that
/// the recovered origin gets no file, or 60 files or more, is less than one in ten million. With a
/// full share, the recovered origin would get about 200 files.
#[test]
fn a_recovered_origin_gets_few_requests_at_first() {
    let slowly = requests_to_recovering_origin("24h", 400);
    assert!((1..60).contains(&slowly), "{slowly}");
    let at_once = requests_to_recovering_origin("0s", 400);
    assert!((140..260).contains(&at_once), "{at_once}");
}
