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
        if self
            .memory_account()
            .is_some_and(|memory| memory.take_progress())
        {
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
    /// while a response waits for the client. The caller checks the time since bytes of a body were
    /// last sent.
    ///
    /// A closed window stops the data before it reaches the socket, so `blocked` is not set.
    fn window_shut(&self) -> bool {
        self.multiplexed.load(Relaxed) && self.has_response_for_client()
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::Version;
    use tokio::net::{TcpListener, TcpStream};

    use super::super::{CoarseClock, InFlight};
    use super::*;
    use crate::metrics::Metrics;
    use crate::send_memory::{SendMemory, SourceWait};

    /// An HTTP/2 connection whose stall timeout is 30 s, and whose clock the test sets.
    struct ClockedConnection(Arc<ConnectionState>);

    impl ClockedConnection {
        async fn open() -> ClockedConnection {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let peer = listener.local_addr().unwrap();
            let (_, write) = TcpStream::connect(peer).await.unwrap().into_split();
            let clock = Arc::new(CoarseClock::new());
            let shared = ConnectionState::new(1, peer, false, write, clock);
            shared.start_copying(&SendMemory::new(1 << 20, &Metrics::new()), 1 << 20);
            ClockedConnection(Arc::new(shared))
        }

        fn begin_request(&self) -> InFlight {
            self.0.begin_request(Version::HTTP_2).1
        }

        /// Begins a request whose handler returns at once.
        fn begin_response(&self) -> InFlight {
            let mut response = self.begin_request();
            response.mark_responded();
            response
        }

        fn wait_for_source(&self) -> SourceWait {
            self.0
                .memory_account()
                .unwrap()
                .track_response(0)
                .wait_for_source()
        }

        /// Sets the clock, and returns the verdict of a sweep at this time.
        fn sweep_at(&self, seconds: u64) -> SweepVerdict {
            self.0.clock.now_ms.store(seconds * 1000, Relaxed);
            let limits = Limits {
                stall_timeout: Duration::from_secs(30),
                ..Limits::default()
            };
            self.0.judge_timeouts(&limits, Duration::ZERO)
        }
    }

    const STALLED: SweepVerdict = SweepVerdict::Cut("stalled");

    /// Regression: each handler that returned restarted the stall timeout, so that a client could
    /// hold an unread response forever.
    #[tokio::test]
    async fn further_requests_do_not_extend_the_stall_timeout() {
        let connection = ClockedConnection::open().await;
        let _unread = connection.begin_response();
        for second in 1..=30 {
            assert_eq!(connection.sweep_at(second), SweepVerdict::Live);
            drop(connection.begin_response());
        }
        assert_eq!(connection.sweep_at(31), STALLED);
    }

    #[tokio::test]
    async fn a_running_handler_does_not_extend_the_stall_timeout() {
        let connection = ClockedConnection::open().await;
        let _unread = connection.begin_response();
        let _running = connection.begin_request();
        assert_eq!(connection.sweep_at(30), SweepVerdict::Live);
        assert_eq!(connection.sweep_at(31), STALLED);
    }

    /// Regression: a source that was dropped while a response waited for it restarted the stall
    /// timeout. A client causes this by a reset of the stream.
    #[tokio::test]
    async fn other_sources_do_not_extend_the_stall_timeout() {
        let connection = ClockedConnection::open().await;
        let _unread = connection.begin_response();
        for second in 1..=30 {
            assert_eq!(connection.sweep_at(second), SweepVerdict::Live);
            let response = connection.begin_response();
            let wait = connection.wait_for_source();
            // The source of every second response delivers before the stream is reset.
            if second % 2 == 0 {
                response.mark_source_ready();
            }
            drop((wait, response));
        }
        assert_eq!(connection.sweep_at(31), STALLED);
    }

    #[tokio::test]
    async fn a_response_gets_the_whole_stall_timeout_after_a_slow_source() {
        let connection = ClockedConnection::open().await;
        let response = connection.begin_response();
        let wait = connection.wait_for_source();
        assert_eq!(connection.sweep_at(100), SweepVerdict::Live);
        response.mark_source_ready();
        drop(wait);
        assert_eq!(connection.sweep_at(130), SweepVerdict::Live);
        assert_eq!(connection.sweep_at(131), STALLED);
    }

    #[tokio::test]
    async fn a_response_gets_the_whole_stall_timeout_after_a_slow_handler() {
        let connection = ClockedConnection::open().await;
        let _waiting = connection.begin_response();
        let _wait = connection.wait_for_source();
        let mut response = connection.begin_request();
        assert_eq!(connection.sweep_at(100), SweepVerdict::Live);
        response.mark_responded();
        assert_eq!(connection.sweep_at(130), SweepVerdict::Live);
        assert_eq!(connection.sweep_at(131), STALLED);
    }
}
