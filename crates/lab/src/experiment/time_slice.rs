//! A time limit for one session of an experiment. It allows a long experiment to alternate with
//! other work on the same machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time limit of a session.
#[derive(Debug)]
pub(super) struct TimeSlice {
    until: Option<Instant>,
    /// Duration of the longest run so far.
    longest_ms: AtomicU64,
}

impl TimeSlice {
    /// Starts a time slice. If `length` is `None`, the slice never ends. `took_s` contains the
    /// durations of earlier runs in seconds.
    pub(super) fn start_now(
        length: Option<Duration>,
        took_s: impl Iterator<Item = f64>,
    ) -> TimeSlice {
        let slice = TimeSlice {
            until: length.and_then(|length| Instant::now().checked_add(length)),
            longest_ms: AtomicU64::new(0),
        };
        took_s.for_each(|seconds| slice.note_run(seconds));
        slice
    }

    /// Records the duration of a run.
    pub(super) fn note_run(&self, seconds: f64) {
        let millis = (seconds.max(0.0) * 1e3) as u64;
        self.longest_ms.fetch_max(millis, Ordering::Relaxed);
    }

    /// Returns whether a run that starts now would exceed the slice. Assumes that the run takes as
    /// long as the longest run so far.
    pub(super) fn is_too_short_for_run(&self) -> bool {
        let longest = Duration::from_millis(self.longest_ms.load(Ordering::Relaxed));
        self.until
            .is_some_and(|until| Instant::now() + longest > until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_over_if_the_longest_run_does_not_fit() {
        let hour = Some(Duration::from_secs(3600));
        assert!(!TimeSlice::start_now(None, [1e9].into_iter()).is_too_short_for_run());
        assert!(!TimeSlice::start_now(hour, [60.0].into_iter()).is_too_short_for_run());
        let slice = TimeSlice::start_now(hour, [60.0, 7200.0, 1.0].into_iter());
        assert!(slice.is_too_short_for_run());
        let slice = TimeSlice::start_now(hour, std::iter::empty());
        slice.note_run(3601.0);
        assert!(slice.is_too_short_for_run());
        assert!(
            TimeSlice::start_now(Some(Duration::ZERO), std::iter::empty()).is_too_short_for_run()
        );
    }
}
