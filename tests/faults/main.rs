//! Tests the real edge against random faults of clients, origin and disk, and against random kills.
//!
//! A seed determines the plan of a run: resources, requests, faults and restarts. The run checks
//! three invariants (`judge.rs`). A failing seed is printed and can be replayed:
//!
//! ```sh
//! FAULT_SEED=17 cargo test --test faults
//! ```
//!
//! `FAULT_SECONDS` sets for how many seconds the test runs new seeds. Decision 24 gives the reasons
//! for this design.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod judge;
mod origin;
mod plan;
#[cfg(feature = "planted-bugs")]
mod planted;
mod random;
mod resource;
mod run;
#[path = "../e2e/support.rs"]
#[allow(dead_code)] // The end-to-end tests use the rest.
mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Number of seeds that run at a time. A run mostly waits for lifetimes and timeouts, so there can
/// be more runs than processors.
const THREADS: usize = 12;

/// Default number of seconds for which the test runs new seeds.
const SECONDS: u64 = 10;

/// A run that broke an invariant.
#[derive(Debug)]
struct FailedSeed {
    seed: u64,
    violations: Vec<String>,
}

/// Runs consecutive seeds from `first` on, until the time is over or a seed fails. Returns the
/// number of runs, and the failed seed.
fn run_seeds(first: u64, time: Duration, bug: Option<&str>) -> (u64, Option<FailedSeed>) {
    let (next, runs) = (AtomicU64::new(first), AtomicU64::new(0));
    let (failed, start) = (Mutex::new(None), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while start.elapsed() < time && failed.lock().unwrap().is_none() {
                    let seed = next.fetch_add(1, Relaxed);
                    let violations = run::run_seed(seed, bug);
                    runs.fetch_add(1, Relaxed);
                    if !violations.is_empty() {
                        *failed.lock().unwrap() = Some(FailedSeed { seed, violations });
                    }
                }
            });
        }
    });
    (runs.into_inner(), failed.into_inner().unwrap())
}

fn read_number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn random_faults_break_no_invariant() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = read_number("FAULT_SECONDS").unwrap_or(SECONDS);
    let (runs, failed) = match read_number("FAULT_SEED") {
        Some(seed) => {
            let violations = run::run_seed(seed, None);
            let failed = FailedSeed { seed, violations };
            (
                1,
                Some(failed).filter(|failed| !failed.violations.is_empty()),
            )
        }
        // Each test run starts with another seed.
        None => run_seeds(
            now.unwrap().as_secs() * 1000,
            Duration::from_secs(seconds),
            None,
        ),
    };
    println!("{runs} seeds");
    if let Some(FailedSeed { seed, violations }) = failed {
        panic!(
            "FAULT_SEED={seed} cargo test --test faults\n{}",
            violations.join("\n")
        );
    }
    assert!(runs > 0);
}
