//! The budget for response bytes that were copied into the memory of this process and are not sent
//! yet.
//!
//! The kernel sends most bytes without a copy. TLS and HTTP/2 need copies, and a client that does
//! not read keeps these copies in memory. A connection that needs copies therefore reads a response
//! body in small frames, and holds only a few of them. Each frame is counted in the
//! server's [`SendMemory`] until the bytes of the frame are sent. Four rules apply:
//!
//! - If the budget is used up, new responses that need copies are refused with 503.
//! - If the budget is used up, responses in flight continue in frames of [`SMALL_FRAME_BYTES`].
//! - Above 80 % of the budget, connections with a stream below the minimum rate are cut, the
//!   slowest connection first.
//! - Below 80 % of the budget, no connection is cut for its rate, because paused players are
//!   legitimate.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::metrics::{Counter, Gauge, MetricSpec, Metrics};

/// Length of the frames that are sent while the budget, or the connection's share of the budget, is
/// used up.
pub(crate) const SMALL_FRAME_BYTES: u64 = 4 << 10;

const IN_USE: MetricSpec = MetricSpec {
    name: "send_memory",
    unit: "bytes",
    help: "Copied response bytes that are not sent yet",
};
const LIMIT: MetricSpec = MetricSpec {
    name: "send_memory_limit",
    unit: "bytes",
    help: "Most copied response bytes that may wait to be sent (setting send-memory)",
};
const REFUSED: MetricSpec = MetricSpec {
    name: "send_memory_refused",
    unit: "",
    help: "Responses refused with 503 because send-memory was used up",
};

/// The send-memory budget of a server. Cheap to clone; all clones share the budget.
#[derive(Debug, Clone)]
pub(crate) struct SendMemory(Arc<SendMemoryState>);

#[derive(Debug)]
struct SendMemoryState {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    used: Gauge,
    refused: Counter,
}

impl SendMemory {
    pub(crate) fn new(limit_bytes: u64, metrics: &Metrics) -> SendMemory {
        let limit = metrics.gauge(&LIMIT);
        limit.set(i64::try_from(limit_bytes).unwrap_or(i64::MAX));
        SendMemory(Arc::new(SendMemoryState {
            limit_bytes,
            used_bytes: AtomicU64::new(0),
            used: metrics.gauge(&IN_USE),
            refused: metrics.counter(&REFUSED),
        }))
    }

    /// Returns the number of bytes that must be released so that at most 80 % of the budget is in
    /// use.
    pub(crate) fn excess_bytes(&self) -> u64 {
        let comfortable = self.0.limit_bytes / 5 * 4;
        self.0.used_bytes.load(Relaxed).saturating_sub(comfortable)
    }

    /// Adds `bytes` to the used bytes, unless the sum would exceed the budget. Returns whether the
    /// bytes were added.
    fn try_reserve_bytes(&self, bytes: u64) -> bool {
        let before = self.0.used_bytes.fetch_add(bytes, Relaxed);
        let fits = before.saturating_add(bytes) <= self.0.limit_bytes;
        if fits {
            self.0.used.inc_by(bytes as i64);
        } else {
            self.0.used_bytes.fetch_sub(bytes, Relaxed);
        }
        fits
    }

    fn reserve_bytes(&self, bytes: u64) {
        self.0.used_bytes.fetch_add(bytes, Relaxed);
        self.0.used.inc_by(bytes as i64);
    }

    fn release_bytes(&self, bytes: u64) {
        self.0.used_bytes.fetch_sub(bytes, Relaxed);
        self.0.used.dec_by(bytes as i64);
    }
}

/// The part of the budget that one connection uses, and the connection's streams.
#[derive(Debug)]
pub(crate) struct ConnectionMemory {
    budget: SendMemory,
    /// The connection's share of the budget. If a frame would exceed the share, the frame is
    /// limited to [`SMALL_FRAME_BYTES`].
    bytes_max: u64,
    held_bytes: AtomicU64,
    streams: Mutex<Vec<Weak<StreamMemory>>>,
    /// Whether bytes of a body were sent since [`ConnectionMemory::take_progress`].
    has_progressed: AtomicBool,
    /// Number of responses whose source has no bytes at the moment.
    waiting_sources: AtomicU32,
}

impl ConnectionMemory {
    pub(crate) fn new(budget: SendMemory, bytes_max: u64) -> ConnectionMemory {
        ConnectionMemory {
            budget,
            bytes_max,
            held_bytes: AtomicU64::new(0),
            streams: Mutex::default(),
            has_progressed: AtomicBool::new(false),
            waiting_sources: AtomicU32::new(0),
        }
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Relaxed)
    }

    /// Returns whether bytes of a body were sent since the last call.
    pub(crate) fn take_progress(&self) -> bool {
        self.has_progressed.swap(false, Relaxed)
    }

    /// Returns the number of responses that wait for their source. The client does not delay these
    /// responses.
    pub(crate) fn waiting_sources(&self) -> u32 {
        self.waiting_sources.load(Relaxed)
    }

    /// Starts to count the frames of one response.
    pub(crate) fn track_response(self: &Arc<Self>, now_ms: u64) -> Arc<StreamMemory> {
        let stream = Arc::new(StreamMemory {
            connection: self.clone(),
            held_bytes: AtomicU64::new(0),
            rate: Mutex::new(RateWindow {
                start_ms: now_ms,
                ..RateWindow::default()
            }),
            sent_bytes: AtomicU64::new(0),
        });
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        stream
    }

    /// Starts a new rate window for each stream whose window has elapsed. Returns the rate in bytes
    /// per second of the slowest stream that holds memory and is slower than `min_rate`.
    pub(crate) fn slowest_rate_below(&self, now_ms: u64, min_rate: &MinRate) -> Option<u64> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let rates = streams.iter().filter_map(Weak::upgrade);
        let rates = rates.filter_map(|stream| stream.slow_rate(now_ms, min_rate));
        rates.min()
    }
}

/// The minimum rate that is enforced while send memory is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinRate {
    /// Minimum rate of one response in bytes per second. 0 disables the rule.
    pub bytes_per_s: u64,
    /// Time over which the rate is measured.
    pub window: Duration,
}

impl Default for MinRate {
    fn default() -> MinRate {
        MinRate {
            bytes_per_s: 1024,
            window: Duration::from_secs(30),
        }
    }
}

/// The send memory of one response, which belongs to an HTTP/2 stream or to the current request of
/// an HTTP/1 connection.
#[derive(Debug)]
pub(crate) struct StreamMemory {
    connection: Arc<ConnectionMemory>,
    held_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    rate: Mutex<RateWindow>,
}

#[derive(Debug, Default)]
struct RateWindow {
    start_ms: u64,
    /// Value of [`StreamMemory::sent_bytes`] at the start of the window.
    start_sent_bytes: u64,
    /// Rate in the previous window, in bytes per second.
    last_rate: Option<u64>,
}

impl StreamMemory {
    /// Records that the connection has accepted bytes of the response.
    pub(crate) fn note_progress(&self) {
        self.connection.has_progressed.store(true, Relaxed);
    }

    /// Counts the response as waiting for its source until the returned value is dropped.
    pub(crate) fn wait_for_source(self: &Arc<Self>) -> SourceWait {
        self.connection.waiting_sources.fetch_add(1, Relaxed);
        SourceWait(Arc::clone(self))
    }

    /// Reserves memory for the first frame of a new response. Returns `None` if the budget is used
    /// up.
    pub(crate) fn try_admit_response(self: &Arc<Self>, wanted: u64) -> Option<SendPermit> {
        let bytes = self.frame_share(wanted);
        if self.connection.budget.try_reserve_bytes(bytes) {
            return Some(self.issue_permit(bytes));
        }
        self.connection.budget.0.refused.inc();
        None
    }

    /// Reserves memory for a frame of a response in flight. The frame has `wanted` bytes, or fewer
    /// if memory is short.
    pub(crate) fn reserve_frame_up_to(self: &Arc<Self>, wanted: u64) -> SendPermit {
        let mut bytes = self.frame_share(wanted);
        if !self.connection.budget.try_reserve_bytes(bytes) {
            bytes = bytes.min(SMALL_FRAME_BYTES);
            // A response in flight may exceed the budget, but only with small frames.
            self.connection.budget.reserve_bytes(bytes);
        }
        self.issue_permit(bytes)
    }

    /// Returns `wanted` if the connection's share has room for this frame. Otherwise returns at
    /// most the length of a small frame.
    fn frame_share(&self, wanted: u64) -> u64 {
        let connection = &self.connection;
        let fits = connection.held_bytes().saturating_add(wanted) <= connection.bytes_max;
        if fits {
            wanted
        } else {
            wanted.min(SMALL_FRAME_BYTES)
        }
    }

    fn issue_permit(self: &Arc<Self>, bytes: u64) -> SendPermit {
        self.held_bytes.fetch_add(bytes, Relaxed);
        self.connection.held_bytes.fetch_add(bytes, Relaxed);
        SendPermit {
            stream: self.clone(),
            bytes,
        }
    }

    fn slow_rate(&self, now_ms: u64, min_rate: &MinRate) -> Option<u64> {
        let mut window = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.sent_bytes.load(Relaxed);
        if self.held_bytes.load(Relaxed) == 0 {
            // All counted bytes of the response have been sent, so the server does not wait for the
            // client.
            *window = RateWindow {
                start_ms: now_ms,
                start_sent_bytes: sent,
                last_rate: None,
            };
            return None;
        }
        let elapsed_ms = now_ms.saturating_sub(window.start_ms);
        let rate = (sent - window.start_sent_bytes).saturating_mul(1000) / elapsed_ms.max(1);
        if u128::from(elapsed_ms) >= min_rate.window.as_millis() {
            *window = RateWindow {
                start_ms: now_ms,
                start_sent_bytes: sent,
                last_rate: Some(rate),
            };
        } else if rate >= min_rate.bytes_per_s {
            // The client reads fast enough in the current window.
            return None;
        }
        window.last_rate.filter(|rate| *rate < min_rate.bytes_per_s)
    }
}

/// A wait for the source of a response.
#[derive(Debug)]
pub(crate) struct SourceWait(Arc<StreamMemory>);

impl Drop for SourceWait {
    fn drop(&mut self) {
        self.0.connection.waiting_sources.fetch_sub(1, Relaxed);
    }
}

/// Bytes that are counted in the budget until the permit is dropped.
#[derive(Debug)]
pub(crate) struct SendPermit {
    stream: Arc<StreamMemory>,
    bytes: u64,
}

impl SendPermit {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps `bytes` and releases the rest.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.release_bytes(surplus);
    }

    /// Records that the connection has accepted `count` bytes. The rate of the response is computed
    /// from these bytes and compared with the minimum rate.
    pub(crate) fn count_sent_for_rate(&self, count: u64) {
        self.stream.sent_bytes.fetch_add(count, Relaxed);
    }

    fn release_bytes(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.stream.held_bytes.fetch_sub(bytes, Relaxed);
        let connection = &self.stream.connection;
        connection.held_bytes.fetch_sub(bytes, Relaxed);
        connection.budget.release_bytes(bytes);
    }
}

impl Drop for SendPermit {
    fn drop(&mut self) {
        self.release_bytes(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_connection(limit_bytes: u64, bytes_max: u64) -> Arc<ConnectionMemory> {
        let budget = SendMemory::new(limit_bytes, &Metrics::new());
        Arc::new(ConnectionMemory::new(budget, bytes_max))
    }

    #[test]
    fn a_used_up_budget_refuses_new_responses_and_shrinks_frames() {
        let connection = test_connection(100_000, u64::MAX);
        let (one, other) = (connection.track_response(0), connection.track_response(0));
        let first = one.try_admit_response(65_536).unwrap();
        assert!(other.try_admit_response(65_536).is_none());
        assert_eq!(connection.budget.0.refused.get(), 1);
        let small = one.reserve_frame_up_to(65_536);
        assert_eq!(small.bytes(), SMALL_FRAME_BYTES);
        assert!(connection.budget.excess_bytes() == 0);
        drop(first);
        assert_eq!(other.try_admit_response(65_536).unwrap().bytes(), 65_536);
        drop(small);
        assert_eq!(connection.held_bytes(), 0);
        assert_eq!(connection.budget.0.used.get(), 0);
    }

    #[test]
    fn a_connection_with_its_share_continues_in_small_frames() {
        let connection = test_connection(u64::MAX / 2, 100_000);
        let stream = connection.track_response(0);
        let _first = stream.try_admit_response(65_536).unwrap();
        assert_eq!(
            stream.reserve_frame_up_to(65_536).bytes(),
            SMALL_FRAME_BYTES
        );
        assert_eq!(
            stream.try_admit_response(65_536).unwrap().bytes(),
            SMALL_FRAME_BYTES
        );
    }

    #[test]
    fn a_permit_shrinks_to_the_bytes_read() {
        let connection = test_connection(100_000, u64::MAX);
        let mut permit = connection.track_response(0).reserve_frame_up_to(50_000);
        permit.shrink_to(10);
        assert_eq!(connection.held_bytes(), 10);
        drop(permit);
        assert_eq!(connection.held_bytes(), 0);
    }

    #[test]
    fn only_streams_that_hold_memory_for_a_whole_window_are_slow() {
        let connection = test_connection(100_000, u64::MAX);
        let min_rate = MinRate::default();
        let slowest = |now_s: u64| connection.slowest_rate_below(now_s * 1000, &min_rate);
        let (fast, slow) = (connection.track_response(0), connection.track_response(0));
        let (fast, slow) = (
            fast.reserve_frame_up_to(1000),
            slow.reserve_frame_up_to(1000),
        );
        for second in 1..30 {
            fast.count_sent_for_rate(5000);
            assert_eq!(slowest(second), None);
        }
        slow.count_sent_for_rate(3);
        fast.count_sent_for_rate(5000);
        assert_eq!(slowest(30), Some(0));
        // A client that resumes reading is no longer slow.
        slow.count_sent_for_rate(100_000);
        assert_eq!(slowest(35), None);
        drop(slow);
        assert_eq!(slowest(120), Some(0), "the other one has stopped");
        drop(fast);
        assert_eq!(slowest(240), None);
    }
}
