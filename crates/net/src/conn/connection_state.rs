//! The state of a connection. The connection's task shares this state with the handlers, the bodies
//! and the worker's periodic sweep.
//!
//! Timeouts need no timers. Whenever a connection makes progress, it stores the time of the
//! worker's clock (a relaxed store). The worker's sweep compares the stored times with the limits.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Instant;

use atomic_waker::AtomicWaker;
use http::Version;
use tokio::net::tcp::OwnedWriteHalf;

use super::interim::InterimQueue;
use super::tcp::{self, RefusedOption, TcpInfo, TransportOptions};
use crate::send_memory::{ConnectionMemory, MinRate, SendMemory};

pub(crate) use self::timeouts::SweepVerdict;

mod timeouts;

/// A worker's coarse clock, in whole milliseconds since the clock's start. Each sweep of the worker
/// updates the clock.
#[derive(Debug)]
pub(crate) struct CoarseClock {
    start: Instant,
    now_ms: AtomicU64,
}

impl CoarseClock {
    pub(crate) fn new() -> CoarseClock {
        CoarseClock {
            start: Instant::now(),
            now_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn update_clock(&self) {
        let now_ms = self.start.elapsed().as_millis();
        self.now_ms
            .store(u64::try_from(now_ms).unwrap_or(u64::MAX), Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.load(Relaxed)
    }
}

/// Frame length in bytes for HTTP/1.1 over TLS. `hyper` holds at most two frames.
const FRAME_BYTES: u64 = 64 << 10;
/// Frame length in bytes for an HTTP/2 stream. `hyper` holds one frame, and up to three more frames
/// wait in the stream's buffer.
const STREAM_FRAME_BYTES: u64 = 32 << 10;

/// Parameters for copying bodies on a connection.
#[derive(Debug)]
pub(crate) struct CopyParameters {
    pub(crate) memory: Arc<ConnectionMemory>,
    /// Limit on the bytes of a frame.
    pub(crate) frame_bytes: u64,
    pub(crate) now_ms: u64,
}

/// The event that a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum WaitState {
    /// No event, because requests are in flight.
    Busy = 0,
    /// The rest of a request's header.
    Header = 1,
    /// The next request.
    Idle = 2,
    /// The client's close, after we have closed our side.
    Linger = 3,
    /// The rest of a TLS handshake.
    Handshake = 4,
}

/// One connection's state.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) id: u64,
    peer: SocketAddr,
    /// The client's address that a proxy has reported.
    client: OnceLock<SocketAddr>,
    pub(crate) secure: bool,
    pub(super) socket: OwnedWriteHalf,
    /// The memory budget for copied bodies. Present as soon as this connection copies bodies.
    memory: OnceLock<Arc<ConnectionMemory>>,
    clock: Arc<CoarseClock>,
    wait: AtomicU8,
    since_ms: AtomicU64,
    /// Whether a write waits because the socket is full.
    blocked: AtomicBool,
    /// Start of the stall timeout of the socket. This is the last time when bytes were sent or a
    /// write started to wait.
    moved_ms: AtomicU64,
    /// Start of the stall timeout of HTTP/2 responses. This is the last time when bytes of a body
    /// were sent, or when a response started to wait for the client while no other response did.
    /// Other sent bytes and further responses do not count, because a client can request them.
    body_moved_ms: AtomicU64,
    requests: AtomicU64,
    /// Number of requests whose handler has not returned.
    running: AtomicU32,
    /// Number of requests whose response has not been sent completely.
    in_flight: AtomicU32,
    /// Whether the connection uses HTTP/2. Several requests then share the connection, and received
    /// bytes do not always belong to a request.
    multiplexed: AtomicBool,
    /// Whether a request declared both a length and a transfer coding.
    ambiguous_length: AtomicBool,
    pub(crate) interim: InterimQueue,
    closing: AtomicBool,
    waker: AtomicWaker,
    /// The values of the socket's options before a response changed them.
    before: Mutex<TransportOptions>,
    steered: AtomicBool,
}

impl ConnectionState {
    pub(crate) fn new(
        id: u64,
        peer: SocketAddr,
        secure: bool,
        socket: OwnedWriteHalf,
        clock: Arc<CoarseClock>,
    ) -> ConnectionState {
        let now = AtomicU64::new(clock.now_ms());
        let wait = match secure {
            true => WaitState::Handshake,
            false => WaitState::Header,
        };
        ConnectionState {
            id,
            peer,
            client: OnceLock::new(),
            secure,
            socket,
            memory: OnceLock::new(),
            wait: AtomicU8::new(wait as u8),
            since_ms: now,
            blocked: AtomicBool::new(false),
            moved_ms: AtomicU64::new(clock.now_ms()),
            body_moved_ms: AtomicU64::new(clock.now_ms()),
            clock,
            requests: AtomicU64::new(0),
            running: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            multiplexed: AtomicBool::new(false),
            ambiguous_length: AtomicBool::new(false),
            interim: InterimQueue::default(),
            closing: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            before: Mutex::default(),
            steered: AtomicBool::new(false),
        }
    }

    /// Returns the client's address that a proxy has reported, or else the peer's address.
    pub(crate) fn effective_peer(&self) -> SocketAddr {
        self.client.get().copied().unwrap_or(self.peer)
    }

    /// Stores the client's address, which a proxy reports before the first request.
    pub(crate) fn set_client(&self, client: SocketAddr) {
        // A proxy reports the client's address only once.
        let _ = self.client.set(client);
    }

    /// Starts to copy bodies. Call this when `hyper` starts to serve the connection, because
    /// `hyper` sends bodies only from memory. `bytes_max` is the connection's share of the memory
    /// budget.
    pub(crate) fn start_copying(&self, budget: &SendMemory, bytes_max: u64) {
        let memory = ConnectionMemory::new(budget.clone(), bytes_max);
        // A connection starts to copy only once.
        let _ = self.memory.set(Arc::new(memory));
    }

    pub(crate) fn memory_account(&self) -> Option<&Arc<ConnectionMemory>> {
        self.memory.get()
    }

    /// Returns the parameters for copying bodies, or `None` if the connection does not copy bodies.
    pub(crate) fn copy_parameters(&self) -> Option<CopyParameters> {
        let frame_bytes = if self.multiplexed.load(Relaxed) {
            STREAM_FRAME_BYTES
        } else {
            FRAME_BYTES
        };
        Some(CopyParameters {
            memory: self.memory.get()?.clone(),
            frame_bytes,
            now_ms: self.clock.now_ms(),
        })
    }

    /// Returns the rate, in bytes per second, of the slowest response that holds memory. Returns
    /// `None` if no such response is below the minimum rate.
    pub(crate) fn slowest_rate_below(&self, min_rate: &MinRate) -> Option<u64> {
        let now_ms = self.clock.now_ms();
        self.memory.get()?.slowest_rate_below(now_ms, min_rate)
    }

    /// Records a request whose header has arrived. Returns the request's number and the guard that
    /// counts the request as in flight.
    pub(crate) fn begin_request(self: &Arc<Self>, version: Version) -> (u64, InFlight) {
        if version > Version::HTTP_11 {
            self.multiplexed.store(true, Relaxed);
        }
        self.wait.store(WaitState::Busy as u8, Relaxed);
        self.running.fetch_add(1, Relaxed);
        if self.in_flight.fetch_add(1, Relaxed) == 0 {
            self.restore_options();
        }
        let number = self.requests.fetch_add(1, Relaxed) + 1;
        (
            number,
            InFlight {
                shared: Arc::clone(self),
                responded: false,
            },
        )
    }

    pub(super) fn tcp_info(&self) -> io::Result<TcpInfo> {
        tcp::tcp_info(self.socket.as_ref().as_fd())
    }

    pub(crate) fn request_count(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Returns the number of requests whose response has not been sent completely.
    pub(crate) fn requests_in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    pub(super) fn apply_transport(&self, wanted: &TransportOptions) -> Vec<RefusedOption> {
        let mut wanted = wanted.clone();
        // Checks the initial window only at the first request, because the congestion window
        // changes afterwards.
        wanted
            .initial_window_packets
            .take_if(|_| self.request_count() > 1);
        let (found, refused) = tcp::apply_options(self.socket.as_ref().as_fd(), &wanted);
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        // If responses are concurrent, keeps the values that applied before the first of these
        // responses.
        *before = TransportOptions {
            congestion: before.congestion.take().or(found.congestion),
            pace_bytes_per_s: before.pace_bytes_per_s.or(found.pace_bytes_per_s),
            notsent_lowat_bytes: before.notsent_lowat_bytes.or(found.notsent_lowat_bytes),
            initial_window_packets: None,
        };
        self.steered.store(true, Relaxed);
        refused
    }

    /// Restores the socket options that [`Self::apply_transport`] has changed.
    fn restore_options(&self) {
        if self.steered.swap(false, Relaxed) {
            let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::take(&mut *before);
            for refused in tcp::apply_options(self.socket.as_ref().as_fd(), &before).1 {
                tracing::warn!(
                    connection = self.id,
                    ?refused,
                    "cannot restore a socket option"
                );
            }
        }
    }

    pub(super) fn handle_read(&self) {
        if self.wait.load(Relaxed) == WaitState::Idle as u8 && !self.multiplexed.load(Relaxed) {
            self.set_wait(WaitState::Header);
        }
    }

    /// Records that the TLS handshake is complete, and whether HTTP/2 was negotiated.
    pub(crate) fn finish_handshake(&self, is_http2: bool) {
        self.multiplexed.store(is_http2, Relaxed);
        self.set_wait(WaitState::Header);
    }

    pub(super) fn handle_written(&self) {
        self.blocked.store(false, Relaxed);
        self.moved_ms.store(self.clock.now_ms(), Relaxed);
    }

    pub(super) fn handle_blocked(&self) {
        if !self.blocked.swap(true, Relaxed) {
            self.moved_ms.store(self.clock.now_ms(), Relaxed);
        }
    }

    /// Returns whether a response in flight waits for the client. The handler of such a response has
    /// returned, and its source has bytes.
    fn has_response_for_client(&self) -> bool {
        let waiting_sources = self
            .memory_account()
            .map_or(0, |memory| memory.waiting_sources());
        let unready = self.running.load(Relaxed).saturating_add(waiting_sources);
        self.in_flight.load(Relaxed) > unready
    }

    /// Starts the stall timeout of HTTP/2 responses, unless a response already waits for the client.
    /// Call this immediately before a response starts to wait for the client.
    fn start_body_stall_timeout(&self) {
        if !self.has_response_for_client() {
            self.body_moved_ms.store(self.clock.now_ms(), Relaxed);
        }
    }

    pub(super) fn start_linger(&self) {
        self.set_wait(WaitState::Linger);
    }

    fn set_wait(&self, wait: WaitState) {
        self.wait.store(wait as u8, Relaxed);
        self.since_ms.store(self.clock.now_ms(), Relaxed);
    }

    /// Records that a request declares both a length and a transfer coding. This request is the
    /// last request on the connection.
    pub(crate) fn mark_ambiguous_length(&self) {
        self.ambiguous_length.store(true, Relaxed);
    }

    /// Returns whether a request on this connection declares both a length and a transfer coding.
    pub(crate) fn has_ambiguous_length(&self) -> bool {
        self.ambiguous_length.load(Relaxed)
    }

    /// Wakes the connection's task.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// Makes the connection's task finish the requests in flight and then close the connection.
    pub(crate) fn request_close(&self) {
        self.closing.store(true, Relaxed);
        self.wake();
    }

    /// Returns whether a close was requested. Registers `waker`, so that the connection's task is
    /// woken when a close is requested.
    pub(crate) fn poll_closing(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.is_closing()
    }

    /// Returns whether a close was requested.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Immediately closes the connection in both directions.
    pub(crate) fn close_immediately(&self) {
        let socket = socket2::SockRef::from(self.socket.as_ref());
        // Ignores the error, because the connection may already be closed.
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
}

/// Counts a request as in flight until this guard is dropped. When the last guard is dropped, the
/// connection becomes idle.
#[derive(Debug)]
pub(crate) struct InFlight {
    shared: Arc<ConnectionState>,
    responded: bool,
}

impl InFlight {
    /// Returns the connection's parameters for copying bodies, or `None` if the connection does not
    /// copy bodies.
    pub(crate) fn body_copy_parameters(&self) -> Option<CopyParameters> {
        self.shared.copy_parameters()
    }

    /// Records that the handler has returned. The body may still have to be sent.
    pub(crate) fn mark_responded(&mut self) {
        if !std::mem::replace(&mut self.responded, true) {
            self.shared.start_body_stall_timeout();
            self.shared.running.fetch_sub(1, Relaxed);
        }
    }

    /// Records that the source of the response has bytes again. Call this before the
    /// [`SourceWait`](crate::send_memory::SourceWait) is dropped.
    pub(crate) fn mark_source_ready(&self) {
        self.shared.start_body_stall_timeout();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.mark_responded();
        let last = self.shared.in_flight.fetch_sub(1, Relaxed) == 1;
        // A connection that has closed its side must not become idle again.
        if last && self.shared.wait.load(Relaxed) == WaitState::Busy as u8 {
            self.shared.set_wait(WaitState::Idle);
        }
    }
}
