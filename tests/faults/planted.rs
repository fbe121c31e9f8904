//! Checks that the random faults find each bug that the feature `planted-bugs` adds to the build.
//! `PLANTED_BUG` selects one of these bugs.

use std::time::Duration;

/// The names of the bugs, as in the calls of `is_bug_planted`.
const BUGS: [&str; 12] = [
    "age-ignored",
    "age-on-disk-forgotten",
    "any-304-confirms",
    "blocks-of-any-version",
    "disk-sum-ignored",
    "failure-not-reported",
    "key-without-query",
    "private-stored",
    "range-shifted",
    "short-body-stored",
    "stale-on-any-error",
    "vary-ignored",
];

/// Maximum time to find a bug.
const TIME_MAX: Duration = Duration::from_secs(180);

#[test]
fn random_faults_find_every_planted_bug() {
    let mut missed = Vec::new();
    let only = std::env::var("PLANTED_BUG").ok();
    let wanted = |bug: &&str| only.as_ref().is_none_or(|only| only == bug);
    for bug in BUGS.into_iter().filter(wanted) {
        let (runs, failed) = crate::run_seeds(1, TIME_MAX, Some(bug));
        match failed {
            Some(failed) => println!(
                "{bug}: seed {} of {runs}: {}",
                failed.seed, failed.violations[0]
            ),
            None => missed.push(format!("{bug} ({runs} seeds)")),
        }
    }
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
}
