//! The kernel's congestion controls over a link meet what they meet on a real one.

#![allow(clippy::unwrap_used)]

mod bed;

use bed::{Bed, way};
use lab::link::{Queue, Way};

/// Microseconds; a link that was later than this, at the 99th percentile, judges the machine.
const LATEST_US: u64 = 2000;
const ATTEMPTS: usize = 3;
/// Links beside each other for each algorithm.
const LINKS: usize = 2;

/// Mean seconds of 5 MB with reno and with bbr, all links beside each other; none where one was
/// late.
fn round() -> Option<[f64; 2]> {
    // 20 Mbit/s and a round trip of 200 ms: the queue holds a tenth of their product.
    let shallow = Way {
        queue: Queue::Bdp(0.1),
        ..way(Some(20_000_000), 100)
    };
    let names: Vec<&str> = [["reno"; LINKS], ["bbr"; LINKS]].concat();
    let runs = names.iter().map(|name| {
        let (name, shallow) = (*name, shallow.clone());
        std::thread::spawn(move || {
            let bed = Bed::new("congestion", shallow, 1).unwrap();
            // Chosen when the request has come, as the edge does, on a socket that began with bbr:
            // the kernel goes on pacing it. A reno socket from the start sends bursts, which a
            // shallow queue ends long before the rate is reached: some 2.5 instead of 1.5.
            let seconds = bed.download(5_000_000, &["bbr", name]).as_secs_f64();
            let report = bed.link.report();
            (seconds, report.lateness_us.p99)
        })
    });
    let runs: Vec<_> = runs.collect();
    let runs: Vec<(f64, u64)> = runs.into_iter().map(|run| run.join().unwrap()).collect();
    if runs.iter().any(|(_, late_us)| *late_us > LATEST_US) {
        return None;
    }
    let (reno, bbr) = runs.split_at(LINKS);
    let mean = |runs: &[(f64, u64)]| runs.iter().map(|run| run.0).sum::<f64>() / LINKS as f64;
    Some([mean(reno), mean(bbr)])
}

#[test]
fn bbr_minds_a_shallow_queue_less_than_reno() {
    let test = "bbr_minds_a_shallow_queue_less_than_reno";
    let algorithms =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    if !["reno", "bbr"].iter().all(|name| algorithms.contains(name)) {
        println!("SKIPPED {test}: this kernel has only {algorithms}");
        return;
    }
    if Bed::new(test, way(None, 0), 1).is_none() {
        return;
    }
    let Some([reno, bbr]) = (0..ATTEMPTS).find_map(|_| round()) else {
        println!("SKIPPED {test}: the machine is too busy, links were late {ATTEMPTS} times");
        return;
    };
    // Some 1.5 in measurements; wide of both sides.
    let ratio = reno / bbr;
    assert!((1.15..2.5).contains(&ratio), "reno {reno} s, bbr {bbr} s");
}
