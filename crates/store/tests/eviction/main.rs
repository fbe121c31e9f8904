//! Who stays in memory, judged by replaying traces: the memory tier beside LRU and S3-FIFO.
//!
//! `cargo test -p store --test eviction -- --nocapture` prints the table that decision 11 quotes.
//! Traces are made from seeds, so the others' figures are the same everywhere; ours move by some
//! thousandths with the seeds of its hashes, and are the median of several replays.

#![allow(clippy::unwrap_used)]

mod policies;
mod traces;

use policies::{Lru, Ours, Policy, S3Fifo};
use traces::{Trace, sessions, zipf, zipf_and_scan};

/// Parts of all that is asked for that fit.
const SHARES: [(&str, u64); 3] = [("1 %", 100), ("5 %", 20), ("20 %", 5)];

/// Replays of ours, each with hashes of its own.
const REPLAYS: usize = 15;

/// The median of ours.
fn ours(room: u64, trace: &Trace) -> (u64, u64) {
    let replays = |count| (0..count).map(|_| replay(&mut Ours::new(room), trace));
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let half = scope.spawn(|| replays(REPLAYS / 2).collect::<Vec<_>>());
        let rest = replays(REPLAYS - REPLAYS / 2).collect::<Vec<_>>();
        half.join().unwrap().into_iter().chain(rest).collect()
    });
    all.sort_unstable();
    all[REPLAYS / 2]
}

/// Hits by requests and by bytes, in thousandths.
fn replay(policy: &mut dyn Policy, trace: &Trace) -> (u64, u64) {
    let (mut hits, mut hit_bytes, mut bytes) = (0, 0, 0);
    for &(object, size) in &trace.requests {
        bytes += size;
        if policy.request(object, size) {
            hits += 1;
            hit_bytes += size;
        }
    }
    (
        hits * 1000 / trace.requests.len() as u64,
        hit_bytes * 1000 / bytes,
    )
}

fn percent(thousandths: (u64, u64)) -> String {
    let (requests, bytes) = thousandths;
    format!(
        "{}.{} / {}.{}",
        requests / 10,
        requests % 10,
        bytes / 10,
        bytes % 10
    )
}

#[test]
fn the_memory_tier_is_no_worse_than_lru_and_close_to_s3_fifo() {
    println!("hits by requests / by bytes, in percent\n");
    println!("| trace | memory | ours | LRU | S3-FIFO |\n|---|---|---|---|---|");
    for trace in [zipf(), zipf_and_scan(), sessions()] {
        let all = trace.bytes();
        for (share, part) in SHARES {
            let room = all / part;
            let ours = ours(room, &trace);
            let lru = replay(&mut Lru::new(room), &trace);
            let s3 = replay(&mut S3Fifo::new(room), &trace);
            let row = [percent(ours), percent(lru), percent(s3)].join(" | ");
            println!("| {} | {share} | {row} |", trace.name);
            assert!(ours.0 + 10 >= lru.0, "{} at {share}: {row}", trace.name);
            assert!(ours.0 + 50 >= s3.0, "{} at {share}: {row}", trace.name);
        }
    }
}
