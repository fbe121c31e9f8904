//! A timer with microsecond precision. The timers of tokio have only millisecond precision.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A kernel timer (timerfd) that is registered in the event loop of the current thread.
pub(super) struct MonotonicTimer(AsyncFd<OwnedFd>);

impl MonotonicTimer {
    pub(super) fn new() -> io::Result<MonotonicTimer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the registered object must refer to the same open descriptor for its whole life.
        // `OwnedFd` fulfills this condition, because the descriptor is not shared. `OwnedFd` closes
        // the descriptor only when it is dropped, after `AsyncFd` has removed the registration.
        #[allow(unsafe_code)]
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(MonotonicTimer(fd?))
    }

    /// Waits until `moment`. Returns immediately if `moment` has passed.
    pub(super) async fn wait_until(&self, moment: Instant) -> io::Result<()> {
        loop {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let zero = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let value = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let once = Itimerspec {
                it_interval: zero,
                it_value: value,
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            // Setting the timer again resets its expiration count, so the count need not be read.
            self.0.readable().await?.clear_ready();
        }
    }
}
