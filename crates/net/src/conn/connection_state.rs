//! The state that a connection's task shares with its handlers, its bodies and its worker's sweep.
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

/// A worker's coarse clock: whole milliseconds since its start, as of its last sweep.
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

    pub(crate) fn update(&self) {
        let now_ms = self.start.elapsed().as_millis();
        self.now_ms
            .store(u64::try_from(now_ms).unwrap_or(u64::MAX), Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.load(Relaxed)
    }
}

/// Frame length for HTTP/1.1 over TLS. `hyper` holds at most two frames.
const FRAME_BYTES: u64 = 64 << 10;
/// Frame length for an HTTP/2 stream. `hyper` holds one frame, and up to three more wait in the
/// stream's buffer.
const STREAM_FRAME_BYTES: u64 = 32 << 10;

/// Parameters for copying bodies on a connection.
#[derive(Debug)]
pub(crate) struct CopyPolicy {
    pub(crate) memory: Arc<ConnectionMemory>,
    /// Most bytes per frame.
    pub(crate) frame_bytes: u64,
    pub(crate) now_ms: u64,
}

/// The event that a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum WaitState {
    /// Nothing: requests are in flight.
    Busy = 0,
    /// The rest of a request's header.
    Header = 1,
    /// The next request.
    Idle = 2,
    /// The client's close, after ours.
    Linger = 3,
    /// The rest of a TLS handshake.
    Handshake = 4,
}

/// One connection's state.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) id: u64,
    peer: SocketAddr,
    /// The client that a proxy has reported.
    client: OnceLock<SocketAddr>,
    pub(crate) secure: bool,
    pub(super) socket: OwnedWriteHalf,
    /// Present once bodies are copied on this connection.
    memory: OnceLock<Arc<ConnectionMemory>>,
    clock: Arc<CoarseClock>,
    wait: AtomicU8,
    since_ms: AtomicU64,
    /// Whether a write waits for the client to take bytes.
    blocked: AtomicBool,
    /// Time when bytes were last sent.
    moved_ms: AtomicU64,
    requests: AtomicU64,
    /// Requests whose handler has not returned.
    running: AtomicU32,
    /// Requests whose response is not completely sent.
    in_flight: AtomicU32,
    /// Whether this is HTTP/2: requests share the connection, and received bytes need not belong to
    /// a request.
    multiplexed: AtomicBool,
    /// A request declared both a length and a transfer coding.
    ambiguous_length: AtomicBool,
    pub(crate) interim: InterimQueue,
    closing: AtomicBool,
    waker: AtomicWaker,
    /// The socket's options before a response changed them.
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

    /// Returns the peer's address, or the client that a proxy has reported.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.client.get().copied().unwrap_or(self.peer)
    }

    /// Stores the client that a proxy has reported before the first request.
    pub(crate) fn set_client(&self, client: SocketAddr) {
        // A proxy reports its client once.
        let _ = self.client.set(client);
    }

    /// Starts to copy bodies, because `hyper` serves the connection from now on. `bytes_max` is the
    /// connection's share of the budget.
    pub(crate) fn start_copying(&self, budget: &SendMemory, bytes_max: u64) {
        let memory = ConnectionMemory::new(budget.clone(), bytes_max);
        // Copying starts once.
        let _ = self.memory.set(Arc::new(memory));
    }

    pub(crate) fn memory(&self) -> Option<&Arc<ConnectionMemory>> {
        self.memory.get()
    }

    /// Returns the parameters for copying bodies; `None` when bodies are not copied.
    pub(crate) fn copy_policy(&self) -> Option<CopyPolicy> {
        let frame_bytes = if self.multiplexed.load(Relaxed) {
            STREAM_FRAME_BYTES
        } else {
            FRAME_BYTES
        };
        Some(CopyPolicy {
            memory: self.memory.get()?.clone(),
            frame_bytes,
            now_ms: self.clock.now_ms(),
        })
    }

    /// Returns the rate of the slowest response that holds memory, in bytes per second, if it is
    /// below the minimum rate.
    pub(crate) fn slowest_rate_below(&self, min_rate: &MinRate) -> Option<u64> {
        let now_ms = self.clock.now_ms();
        self.memory.get()?.slowest_rate_below(now_ms, min_rate)
    }

    /// Starts a request whose header has arrived. Returns its number and the guard that counts it
    /// as in flight.
    pub(crate) fn begin_request(self: &Arc<Self>, version: Version) -> (u64, InFlight) {
        if version > Version::HTTP_11 {
            self.multiplexed.store(true, Relaxed);
        }
        self.wait.store(WaitState::Busy as u8, Relaxed);
        self.running.fetch_add(1, Relaxed);
        if self.in_flight.fetch_add(1, Relaxed) == 0 {
            self.put_back();
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

    /// Returns the number of requests whose response is not completely sent.
    pub(crate) fn requests_in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    pub(super) fn apply_transport(&self, wanted: &TransportOptions) -> Vec<RefusedOption> {
        let mut wanted = wanted.clone();
        // After the first request, the window is no longer the initial one.
        wanted
            .initial_window_packets
            .take_if(|_| self.request_count() > 1);
        let (found, refused) = tcp::apply_options(self.socket.as_ref().as_fd(), &wanted);
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        // If responses are concurrent, the options from before the first of them will be restored.
        *before = TransportOptions {
            congestion: before.congestion.take().or(found.congestion),
            pace_bytes_per_s: before.pace_bytes_per_s.or(found.pace_bytes_per_s),
            notsent_lowat_bytes: before.notsent_lowat_bytes.or(found.notsent_lowat_bytes),
            initial_window_packets: None,
        };
        self.steered.store(true, Relaxed);
        refused
    }

    /// Restores the options from before [`Self::apply_transport`].
    fn put_back(&self) {
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

    /// Records that the TLS handshake is complete, and whether the client has chosen HTTP/2 in it.
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

    pub(super) fn handle_closed(&self) {
        self.set_wait(WaitState::Linger);
    }

    fn set_wait(&self, wait: WaitState) {
        self.wait.store(wait as u8, Relaxed);
        self.since_ms.store(self.clock.now_ms(), Relaxed);
    }

    /// Records that a request declares both a length and a transfer coding. It is the last one on
    /// the connection.
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

    /// Makes the connection's task finish the requests in flight and close.
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

    /// Closes the connection in both directions at once.
    pub(crate) fn cut(&self) {
        let socket = socket2::SockRef::from(self.socket.as_ref());
        // The connection may already be closed.
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
}

/// Counts a request as in flight until this guard is dropped. When the last guard is dropped, the
/// connection is idle.
#[derive(Debug)]
pub(crate) struct InFlight {
    shared: Arc<ConnectionState>,
    responded: bool,
}

impl InFlight {
    /// Returns the connection's parameters for copying bodies; `None` when bodies are not copied.
    pub(crate) fn copying(&self) -> Option<CopyPolicy> {
        self.shared.copy_policy()
    }

    /// Records that the handler has returned; the body is still to be sent.
    pub(crate) fn mark_responded(&mut self) {
        if !std::mem::replace(&mut self.responded, true) {
            self.shared.running.fetch_sub(1, Relaxed);
            self.shared
                .moved_ms
                .store(self.shared.clock.now_ms(), Relaxed);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.mark_responded();
        let last = self.shared.in_flight.fetch_sub(1, Relaxed) == 1;
        // A closed connection must not become idle again.
        if last && self.shared.wait.load(Relaxed) == WaitState::Busy as u8 {
            self.shared.set_wait(WaitState::Idle);
        }
    }
}
