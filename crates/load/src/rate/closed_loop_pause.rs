//! Pauses of a closed loop: with many requests in flight, an idle thread waits until several
//! responses have arrived before it wakes.
//!
//! Waking for every response costs more processor time, on the client and the server, than it
//! saves. A thread completes about 100,000 requests per second, so `n` requests in flight take at
//! least 10·n µs. A pause of 3·n µs therefore delays a response by at most a third. With fewer than
//! [`IN_FLIGHT_MIN`] requests there is no pause, and the open loop never pauses.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Minimum number of requests in flight for a pause.
const IN_FLIGHT_MIN: usize = 16;

/// Pause per request in flight.
const PAUSE_EACH: Duration = Duration::from_micros(3);

/// Limit of a pause.
const PAUSE_MAX: Duration = Duration::from_micros(200);

/// The number of requests in flight on a thread.
#[derive(Debug, Default)]
pub(super) struct InFlightRequests(AtomicUsize);

impl InFlightRequests {
    pub(super) fn start_request(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end_request(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Pauses the thread if enough requests are in flight.
    pub(super) fn pause_thread(&self) {
        let count = self.count();
        if count >= IN_FLIGHT_MIN {
            std::thread::sleep((PAUSE_EACH * count as u32).min(PAUSE_MAX));
        }
    }
}

/// Lets this thread's sleeps end on time instead of up to 50 µs late. Ignores errors: sleeps are
/// then less exact.
pub(super) fn reduce_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
