//! A closed loop's rest: with many requests under way, a thread that has nothing to do lets a few
//! answers come before it wakes.
//!
//! Waking for each costs the thread, and the server that has to wake it, more than it brings. A
//! thread does some 100,000 requests a second at best, so `n` of them under way take 10·n µs if it
//! is never idle, and longer if it is: resting 3·n µs delays none by a third. Fewer than
//! [`UNDER_WAY_MIN`] are never kept waiting, and the open loop never rests.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Fewest requests under way at which a thread rests.
const UNDER_WAY_MIN: usize = 16;

/// How long, for each request under way.
const REST_EACH: Duration = Duration::from_micros(3);

/// The longest rest.
const REST_MAX: Duration = Duration::from_micros(200);

/// How many requests of a thread are under way.
#[derive(Debug, Default)]
pub(super) struct UnderWay(AtomicUsize);

impl UnderWay {
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Rests, where there is enough to wait for.
    pub(super) fn rest(&self) {
        let count = self.count();
        if count >= UNDER_WAY_MIN {
            std::thread::sleep((REST_EACH * count as u32).min(REST_MAX));
        }
    }
}

/// Lets this thread's sleeps end when they should, not up to 50 µs later; where the kernel will not,
/// they end later.
pub(super) fn on_time() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
