//! Compares the eviction policy of the memory cache with LRU and S3-FIFO by replaying traces.
//!
//! `cargo test -p store --test eviction -- --nocapture` prints the table that decision 11 quotes.
//! Traces are generated from seeds, so the results of LRU and S3-FIFO are the same everywhere. The
//! memory cache uses random hash seeds, which change its results by a few thousandths. The table
//! therefore shows the median of several replays.

#![allow(clippy::unwrap_used)]

mod policies;
mod traces;

use policies::{Lru, MemoryTier, Policy, S3Fifo};
use traces::{Trace, session_trace, zipf_and_scan, zipf_trace};

/// Cache sizes as shares of the total size of all requested objects. Each entry has a label and a
/// divisor.
const SHARES: [(&str, u64); 3] = [("1 %", 100), ("5 %", 20), ("20 %", 5)];

/// Number of replays with the memory cache, each with a different hash seed.
const REPLAYS: usize = 15;

/// Returns the median result of the memory cache.
fn measure_memory_tier(room: u64, trace: &Trace) -> (u64, u64) {
    let replays = |count| (0..count).map(|_| replay_trace(&mut MemoryTier::new(room), trace));
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let half = scope.spawn(|| replays(REPLAYS / 2).collect::<Vec<_>>());
        let rest = replays(REPLAYS - REPLAYS / 2).collect::<Vec<_>>();
        half.join().unwrap().into_iter().chain(rest).collect()
    });
    all.sort_unstable();
    all[REPLAYS / 2]
}

/// Returns the hit ratios by requests and by bytes, in thousandths.
fn replay_trace(policy: &mut dyn Policy, trace: &Trace) -> (u64, u64) {
    let (mut hits, mut hit_bytes, mut bytes) = (0, 0, 0);
    for &(object, size) in &trace.requests {
        bytes += size;
        if policy.request_object(object, size) {
            hits += 1;
            hit_bytes += size;
        }
    }
    (
        hits * 1000 / trace.requests.len() as u64,
        hit_bytes * 1000 / bytes,
    )
}

fn as_percent(thousandths: (u64, u64)) -> String {
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
    for trace in [zipf_trace(), zipf_and_scan(), session_trace()] {
        let all = trace.unique_bytes();
        for (share, part) in SHARES {
            let room = all / part;
            let ours = measure_memory_tier(room, &trace);
            let lru = replay_trace(&mut Lru::new(room), &trace);
            let s3 = replay_trace(&mut S3Fifo::new(room), &trace);
            let row = [as_percent(ours), as_percent(lru), as_percent(s3)].join(" | ");
            println!("| {} | {share} | {row} |", trace.name);
            assert!(ours.0 + 10 >= lru.0, "{} at {share}: {row}", trace.name);
            assert!(ours.0 + 50 >= s3.0, "{} at {share}: {row}", trace.name);
        }
    }
}
