//! The timeouts of a connection. The worker of the connection checks them in a periodic sweep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::{ConnectionState, WaitState};
use crate::server::Limits;

/// Time for the client to close its side after we have closed ours. If we closed the socket
/// completely at once, data that still arrives from the client would make the kernel discard our
/// last response.
const LINGER: Duration = Duration::from_secs(1);

/// Time for the orderly close of an idle connection. In HTTP/2, the client takes part in this
/// close.
const FAREWELL: Duration = Duration::from_secs(5);

/// The sweep's decision about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SweepVerdict {
    Live,
    /// Close the connection in an orderly way.
    Close,
    /// Cut the connection, for this reason.
    Cut(&'static str),
}

impl ConnectionState {
    /// Compares the timeouts with the clock. `slack`, the period of the coarse clock, is added to
    /// each timeout, so that no timeout fires early.
    pub(crate) fn judge_timeouts(&self, limits: &Limits, slack: Duration) -> SweepVerdict {
        let now = self.clock.now_ms();
        let over = |since: &AtomicU64, limit: Duration| {
            let quiet = Duration::from_millis(now.saturating_sub(since.load(Relaxed)));
            quiet > limit.saturating_add(slack)
        };
        if self.memory().is_some_and(|memory| memory.take_progress()) {
            self.body_moved_ms.store(now, Relaxed);
        }
        let is_stalled = |since| over(since, limits.stall_timeout);
        if (self.blocked.load(Relaxed) && is_stalled(&self.moved_ms))
            || (self.window_shut() && is_stalled(&self.body_moved_ms))
        {
            return SweepVerdict::Cut("stalled");
        }
        let wait = self.wait.load(Relaxed);
        let receives_head = [WaitState::Header as u8, WaitState::Handshake as u8].contains(&wait);
        if receives_head && over(&self.since_ms, limits.header_timeout) {
            SweepVerdict::Cut("header")
        } else if wait == WaitState::Idle as u8
            && over(&self.since_ms, limits.idle_timeout.saturating_add(FAREWELL))
        {
            SweepVerdict::Cut("idle")
        } else if wait == WaitState::Idle as u8 && over(&self.since_ms, limits.idle_timeout) {
            SweepVerdict::Close
        } else if wait == WaitState::Linger as u8 && over(&self.since_ms, LINGER) {
            SweepVerdict::Cut("linger")
        } else {
            SweepVerdict::Live
        }
    }

    /// Returns whether an HTTP/2 client may have closed its flow-control window. This is possible
    /// while no handler is running, and a response is in flight that does not wait for its source.
    /// The caller checks the time since bytes of a body were last sent.
    ///
    /// A closed window stops the data before it reaches the socket, so `blocked` is not set.
    fn window_shut(&self) -> bool {
        let waiting_sources = self.memory().map_or(0, |memory| memory.waiting_sources());
        self.multiplexed.load(Relaxed)
            && self.running.load(Relaxed) == 0
            && self.in_flight.load(Relaxed) > waiting_sources
    }

    /// Returns whether a draining connection may close without losing a request that the client has
    /// already sent.
    ///
    /// An HTTP/2 server announces which requests it still accepts. An HTTP/1.1 server cannot, so
    /// the connection must have been silent for `quiet`. A response head that was sent before the
    /// drain did not contain `Connection: close`, so the client may send another request. A TLS
    /// handshake may take longer than `quiet` on a busy server. The connection stays open during
    /// the handshake, because the client's first request follows.
    pub(crate) fn may_close(&self, quiet: Duration) -> bool {
        let silent_ms = self
            .clock
            .now_ms()
            .saturating_sub(self.since_ms.load(Relaxed));
        let wait = self.wait.load(Relaxed);
        let is_busy = [WaitState::Busy as u8, WaitState::Handshake as u8].contains(&wait);
        self.multiplexed.load(Relaxed) || (!is_busy && Duration::from_millis(silent_ms) > quiet)
    }
}
