//! Suspension and recovery of origins.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{ScriptedOrigin, format_head};
use crate::{KEEP, count_sent, start_edge, start_named_origin};

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

/// The body of a health response counts in the timeout of a probe. Otherwise, one origin that never
/// completes the body would stop the probes of all origins.
#[test]
fn a_health_response_that_never_ends_does_not_stop_the_probes() {
    let slow = ScriptedOrigin::new();
    let (other, _) = ScriptedOrigin::start_with({
        let probe_count = AtomicU16::new(0);
        move |_| match probe_count.fetch_add(1, SeqCst) {
            0 => (200, vec![], vec![]),
            _ => (503, vec![], vec![]),
        }
    });
    let flags = [
        "--origin-health",
        "/up",
        "--origin-health-interval",
        "50ms",
        "--origin-failures",
        "1",
    ];
    let edge = start_edge(&[slow.address, other], &flags);
    let mut exchange = slow.next_request();
    exchange.send(format_head(200, &[], Some(4000)));
    let feed = std::thread::spawn(move || {
        while exchange.try_send("x") {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    // The first origin has failed its probe, and the second origin its second probe.
    edge.wait_for_metric("headwater_upstream_out_now", 2);
    feed.join().unwrap();
}

/// A request that waits because too many other requests are in flight is not sent, so it says
/// nothing about the origin.
#[test]
fn requests_above_the_limit_do_not_suspend_an_origin() {
    let origin = ScriptedOrigin::new();
    let flags = [
        "--origin-at-once",
        "1",
        "--origin-connect-timeout",
        "100ms",
        "--origin-failures",
        "1",
    ];
    let edge = start_edge(&[origin.address], &flags);
    let mut first = edge.connect();
    first.send("GET", "/0", &[]);
    let exchange = origin.next_request();
    for n in 1..5 {
        assert_eq!(edge.get_path(&format!("/{n}")).status, 504);
    }
    assert_eq!(edge.read_metric("headwater_upstream_out_now"), 0);
    assert_eq!(count_sent(&edge, origin.address, "limit"), 4);
    exchange.respond(200, &[KEEP], b"x");
    assert_eq!(first.read_response("GET").status, 200);
    assert_eq!(origin.request_count(), 1);
}

/// Regression: idle connections were checked only at the interval of the probes.
#[test]
fn an_idle_connection_that_the_origin_has_closed_is_closed_between_two_probes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let edge = start_edge(&[address], &["--origin-health-interval", "24h"]);
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let (mut stream, _) = listener.accept().unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    stream
        .write_all(format_head(200, &[KEEP], Some(0)).as_bytes())
        .unwrap();
    assert_eq!(client.read_response("GET").status, 200);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(
        stream.read(&mut byte).unwrap(),
        0,
        "the edge closes its side"
    );
}
