//! Tests that an emulated link shows a known difference between congestion controls. With a shallow
//! queue, bbr is faster than reno.

#![allow(clippy::unwrap_used)]

mod bed;

use bed::{TestLink, direction_shape};
use lab::link::{DirectionShape, QueueSize};

/// Maximum lateness of a link (p99) in microseconds. Above this limit, the machine is too busy for
/// the test.
const LATEST_US: u64 = 2000;
const ATTEMPTS: usize = 3;
/// Concurrent links per algorithm.
const LINKS: usize = 2;

/// Returns the mean time in seconds of downloads of 5 MB over concurrent links, with reno and with
/// bbr. Returns `None` if a link delivered packets too late.
fn measure_round() -> Option<[f64; 2]> {
    // The link has a rate of 20 Mbit/s and a round-trip time of 200 ms. Its queue holds a tenth of
    // the bandwidth-delay product.
    let shallow = DirectionShape {
        queue: QueueSize::Bdp(0.1),
        ..direction_shape(Some(20_000_000), 100)
    };
    let names: Vec<&str> = [["reno"; LINKS], ["bbr"; LINKS]].concat();
    let runs = names.iter().map(|name| {
        let (name, shallow) = (*name, shallow.clone());
        std::thread::spawn(move || {
            let bed = TestLink::new("congestion", shallow, 1).unwrap();
            // The socket starts with bbr and then switches to the tested congestion control, as the
            // edge does after a request. The kernel continues to pace a socket that has used bbr. A
            // socket that starts with reno sends bursts. The shallow queue drops packets of these
            // bursts long before the connection reaches the rate of the link. Reno would then take
            // about 2.5 times as long as bbr, instead of 1.5 times.
            let seconds = bed.time_download(5_000_000, &["bbr", name]).as_secs_f64();
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
fn bbr_is_faster_than_reno_over_a_shallow_queue() {
    let test = "bbr_is_faster_than_reno_over_a_shallow_queue";
    let algorithms =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    if !["reno", "bbr"].iter().all(|name| algorithms.contains(name)) {
        println!("SKIPPED {test}: this kernel has only {algorithms}");
        return;
    }
    if TestLink::new(test, direction_shape(None, 0), 1).is_none() {
        return;
    }
    let Some([reno, bbr]) = (0..ATTEMPTS).find_map(|_| measure_round()) else {
        println!("SKIPPED {test}: the machine is too busy, links were late {ATTEMPTS} times");
        return;
    };
    // Measured ratios are about 1.5. The limits leave a wide margin.
    let ratio = reno / bbr;
    assert!((1.15..2.5).contains(&ratio), "reno {reno} s, bbr {bbr} s");
}
