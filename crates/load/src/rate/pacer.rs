//! Sleeping until a moment, to the microsecond: tokio's own timers count in milliseconds.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel, in this thread's event loop.
pub(super) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    pub(super) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: what is registered must give the same open descriptor as long as it lives.
        // `OwnedFd` does: nobody else has it, and it is closed only when dropped, after the
        // registration, which `AsyncFd` drops first.
        #[allow(unsafe_code)]
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(Timer(fd?))
    }

    /// Waits; returns at once where the moment has passed.
    pub(super) async fn until(&self, moment: Instant) -> io::Result<()> {
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
            // Setting it anew forgets what has expired: nothing needs to be read.
            self.0.readable().await?.clear_ready();
        }
    }
}
