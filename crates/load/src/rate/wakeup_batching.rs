//! Pauses of the threads of a closed loop. With many requests in flight, an idle thread sleeps
//! briefly, so that several responses have arrived when it wakes up.
//!
//! Without pauses, a thread would wake up for every response. This would cost more processor time
//! on the client and on the server. A thread completes about 100,000 requests per second, so `n`
//! requests in flight take at least 10·n µs. A pause of 3·n µs therefore extends this time by at
//! most a third. With fewer than [`IN_FLIGHT_MIN`] requests in flight, there is no pause. In an
//! open loop, threads never pause.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Minimum number of requests in flight at which a thread pauses.
const IN_FLIGHT_MIN: usize = 16;

/// Length of a pause for each request in flight.
const PAUSE_EACH: Duration = Duration::from_micros(3);

/// Maximum length of a pause.
const PAUSE_MAX: Duration = Duration::from_micros(200);

/// The number of requests in flight on a thread.
#[derive(Debug, Default)]
pub(super) struct InFlightRequests(AtomicUsize);

impl InFlightRequests {
    pub(super) fn count_request_start(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_request_end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Pauses the thread if enough requests are in flight.
    pub(super) fn sleep_to_batch_responses(&self) {
        let count = self.count();
        if count >= IN_FLIGHT_MIN {
            std::thread::sleep((PAUSE_EACH * count as u32).min(PAUSE_MAX));
        }
    }
}

/// By default, Linux can end sleeps up to 50 µs late. This function makes the sleeps of the current
/// thread end on time. Errors are ignored, because they only make the sleeps less exact.
pub(super) fn reduce_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
