//! What a connection's task, its handlers, its bodies and its worker's sweep share.
//!
//! All timeouts rest on a few relaxed stores: whoever makes progress notes the worker's clock, and
//! the worker's sweep compares. So no request and no write sets a timer.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use atomic_waker::AtomicWaker;
use http::Version;
use tokio::net::tcp::OwnedWriteHalf;

use super::Mapped;
use super::mapped::Files;
use super::piped::{Piped, Pipes};
use super::tcp::{self, Refused, TcpInfo, Transport};
use crate::server::Limits;

/// How long a closed connection waits for its client to close too, so that data still under way
/// from it does not make the kernel throw away our last answer.
const LINGER: Duration = Duration::from_secs(1);

/// How long an idle client has to take part in an orderly close (HTTP/2 waits for its word).
const FAREWELL: Duration = Duration::from_secs(5);

/// A worker's coarse time: whole milliseconds since it began, as of its last sweep.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    now_ms: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock {
            start: Instant::now(),
            now_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn update(&self) {
        self.now_ms
            .store(crate::record::micros(self.start.elapsed()) / 1000, Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.now_ms.load(Relaxed)
    }
}

/// What a connection waits for while no request is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Wait {
    /// Nothing: requests are in flight.
    Busy = 0,
    /// The rest of a request's header (or of a handshake).
    Header = 1,
    /// The next request.
    Idle = 2,
    /// The client's end, after ours.
    Linger = 3,
}

/// What the sweep finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Live,
    /// Close it in an orderly way.
    Close,
    /// Cut it, for this reason.
    Cut(&'static str),
}

/// One connection's state.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: u64,
    peer: SocketAddr,
    /// For whom a balancer speaks.
    client: OnceLock<SocketAddr>,
    pub(crate) secure: bool,
    pub(super) socket: OwnedWriteHalf,
    pub(super) files: Files,
    pub(super) pipes: Pipes,
    clock: Arc<Clock>,
    wait: AtomicU8,
    since_ms: AtomicU64,
    /// A write waits for the client to take bytes.
    blocked: AtomicBool,
    /// When bytes last left.
    moved_ms: AtomicU64,
    requests: AtomicU64,
    /// Requests whose handler has not answered yet.
    running: AtomicU32,
    /// Requests whose answer has not left yet.
    in_flight: AtomicU32,
    /// HTTP/2: requests share the connection, and clients may send between them.
    multiplexed: AtomicBool,
    closing: AtomicBool,
    waker: AtomicWaker,
    /// How the socket sent before a response changed that.
    before: Mutex<Transport>,
    steered: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        id: u64,
        peer: SocketAddr,
        secure: bool,
        socket: OwnedWriteHalf,
        clock: Arc<Clock>,
    ) -> Shared {
        let now = AtomicU64::new(clock.now_ms());
        Shared {
            id,
            peer,
            client: OnceLock::new(),
            secure,
            socket,
            files: Files::default(),
            pipes: Pipes::default(),
            wait: AtomicU8::new(Wait::Header as u8),
            since_ms: now,
            blocked: AtomicBool::new(false),
            moved_ms: AtomicU64::new(clock.now_ms()),
            clock,
            requests: AtomicU64::new(0),
            running: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            multiplexed: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            before: Mutex::default(),
            steered: AtomicBool::new(false),
        }
    }

    /// The other end, or for whom it speaks.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.client.get().copied().unwrap_or(self.peer)
    }

    /// A balancer has said for whom it speaks, before the first request.
    pub(crate) fn speaks_for(&self, client: SocketAddr) {
        // It says so once.
        let _ = self.client.set(client);
    }

    /// A request's header is here. Returns its number and what keeps the connection busy for it.
    pub(crate) fn begin(self: &Arc<Self>, version: Version) -> (u64, InFlight) {
        if version > Version::HTTP_11 {
            self.multiplexed.store(true, Relaxed);
        }
        self.wait.store(Wait::Busy as u8, Relaxed);
        self.running.fetch_add(1, Relaxed);
        if self.in_flight.fetch_add(1, Relaxed) == 0 {
            self.put_back();
        }
        let number = self.requests.fetch_add(1, Relaxed) + 1;
        (
            number,
            InFlight {
                shared: Arc::clone(self),
                answered: false,
            },
        )
    }

    pub(super) fn tcp(&self) -> io::Result<TcpInfo> {
        tcp::info(self.socket.as_ref().as_fd())
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    pub(super) fn steer(&self, wanted: &Transport) -> Vec<Refused> {
        let mut wanted = wanted.clone();
        // Later it is what the network has made of it.
        wanted
            .initial_window_packets
            .take_if(|_| self.requests() > 1);
        let (found, refused) = tcp::apply(self.socket.as_ref().as_fd(), &wanted);
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        // What was there first counts, if several responses share the connection.
        *before = Transport {
            congestion: before.congestion.take().or(found.congestion),
            pace_bytes_per_s: before.pace_bytes_per_s.or(found.pace_bytes_per_s),
            notsent_lowat_bytes: before.notsent_lowat_bytes.or(found.notsent_lowat_bytes),
            initial_window_packets: None,
        };
        self.steered.store(true, Relaxed);
        refused
    }

    /// Sends as before it was steered.
    fn put_back(&self) {
        if self.steered.swap(false, Relaxed) {
            let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::take(&mut *before);
            for refused in tcp::apply(self.socket.as_ref().as_fd(), &before).1 {
                tracing::warn!(connection = self.id, ?refused, "a socket option stays set");
            }
        }
    }

    pub(super) fn handle_read(&self) {
        if self.wait.load(Relaxed) == Wait::Idle as u8 && !self.multiplexed.load(Relaxed) {
            self.waits(Wait::Header);
        }
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
        self.waits(Wait::Linger);
    }

    fn waits(&self, wait: Wait) {
        self.wait.store(wait as u8, Relaxed);
        self.since_ms.store(self.clock.now_ms(), Relaxed);
    }

    /// Asks the connection's task to finish what is in flight and close.
    pub(crate) fn close(&self) {
        self.closing.store(true, Relaxed);
        self.waker.wake();
    }

    /// For the connection's task: whether it was asked to close. Wakes it when it is.
    pub(crate) fn poll_closing(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.is_closing()
    }

    /// Whether it was asked to close.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Ends the connection in both directions, now.
    pub(crate) fn cut(&self) {
        let socket = socket2::SockRef::from(self.socket.as_ref());
        // Already gone is as good.
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }

    /// Judges by the clock; `slack` is the clock's period, so that nothing ends early.
    pub(crate) fn fate(&self, limits: &Limits, slack: Duration) -> Fate {
        let now = self.clock.now_ms();
        let over = |since: &AtomicU64, limit: Duration| {
            let quiet = Duration::from_millis(now.saturating_sub(since.load(Relaxed)));
            quiet > limit.saturating_add(slack)
        };
        let stalled = over(&self.moved_ms, limits.stall_timeout);
        if stalled && (self.blocked.load(Relaxed) || self.window_shut()) {
            return Fate::Cut("stalled");
        }
        let wait = self.wait.load(Relaxed);
        if wait == Wait::Header as u8 && over(&self.since_ms, limits.header_timeout) {
            Fate::Cut("header")
        } else if wait == Wait::Idle as u8
            && over(&self.since_ms, limits.idle_timeout.saturating_add(FAREWELL))
        {
            Fate::Cut("idle")
        } else if wait == Wait::Idle as u8 && over(&self.since_ms, limits.idle_timeout) {
            Fate::Close
        } else if wait == Wait::Linger as u8 && over(&self.since_ms, LINGER) {
            Fate::Cut("linger")
        } else {
            Fate::Live
        }
    }

    /// On HTTP/2 a slow reader closes its window, and then nothing waits in the socket: an answer
    /// is leaving, none is being made, and it does not move.
    fn window_shut(&self) -> bool {
        self.multiplexed.load(Relaxed)
            && self.running.load(Relaxed) == 0
            && self.in_flight.load(Relaxed) > 0
    }

    /// While draining: whether it may be asked to close without losing a request that was sent
    /// before its client could know. HTTP/2 says which requests it still takes; on HTTP/1.1 only a
    /// silence of `quiet` tells.
    pub(crate) fn may_close(&self, quiet: Duration) -> bool {
        let silent_ms = self
            .clock
            .now_ms()
            .saturating_sub(self.since_ms.load(Relaxed));
        self.multiplexed.load(Relaxed)
            || self.wait.load(Relaxed) == Wait::Busy as u8
            || Duration::from_millis(silent_ms) > quiet
    }
}

/// Held while a request is answered; the connection is idle when the last one is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    shared: Arc<Shared>,
    answered: bool,
}

impl InFlight {
    /// The response has parts of this file in it.
    pub(crate) fn sends(&self, file: &Mapped) {
        if !self.shared.secure && !self.shared.multiplexed.load(Relaxed) {
            self.shared.files.add(file);
        }
    }

    /// HTTP is given what stands for these bytes now. False where user code would see that.
    pub(crate) fn pipes(&self, piped: &Piped) -> bool {
        let unseen = !self.shared.secure && !self.shared.multiplexed.load(Relaxed);
        if unseen {
            self.shared.pipes.add(piped);
        }
        unseen
    }

    /// The handler has answered; the body is still to leave.
    pub(crate) fn answered(&mut self) {
        if !std::mem::replace(&mut self.answered, true) {
            self.shared.running.fetch_sub(1, Relaxed);
            self.shared
                .moved_ms
                .store(self.shared.clock.now_ms(), Relaxed);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.answered();
        let last = self.shared.in_flight.fetch_sub(1, Relaxed) == 1;
        // A closed connection stays closed.
        if last && self.shared.wait.load(Relaxed) == Wait::Busy as u8 {
            self.shared.files.forget();
            self.shared.waits(Wait::Idle);
        }
    }
}
