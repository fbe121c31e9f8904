//! A limit on the traces that callers start.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Maximum number of traces per second that callers may start. Any client may send `traceparent`,
/// and each trace costs memory, processor time and storage at the collector.
const TRACES_PER_SECOND_MAX: u64 = 1000;

/// Counts the traces that callers start in the current second.
#[derive(Debug)]
pub(crate) struct CallerLimit {
    started: Instant,
    /// Upper 32 bits: whole seconds from `started` to the current second. Lower 32 bits: the traces
    /// counted in this second.
    window: AtomicU64,
}

impl CallerLimit {
    pub(crate) fn new() -> CallerLimit {
        CallerLimit {
            started: Instant::now(),
            window: AtomicU64::new(0),
        }
    }

    /// Counts a trace that a caller starts now. Returns whether the trace is within the limit.
    pub(crate) fn admit(&self) -> bool {
        self.admit_in_second(self.started.elapsed().as_secs())
    }

    fn admit_in_second(&self, second: u64) -> bool {
        let count = |window| match (window >> 32 == second, window & u64::from(u32::MAX)) {
            (true, TRACES_PER_SECOND_MAX..) => None,
            (true, _) => Some(window + 1),
            (false, _) => Some(second << 32 | 1),
        };
        self.window.fetch_update(Relaxed, Relaxed, count).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_admits_as_many_traces_as_the_limit() {
        let limit = CallerLimit::new();
        for second in [0, 1, 7] {
            let admitted = (0..2 * TRACES_PER_SECOND_MAX).filter(|_| limit.admit_in_second(second));
            assert_eq!(admitted.count() as u64, TRACES_PER_SECOND_MAX, "{second}");
        }
        assert!(limit.admit_in_second(8));
    }
}
