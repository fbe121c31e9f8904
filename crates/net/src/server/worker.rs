//! A worker accepts connections and starts a task for each connection. It also cuts connections
//! that time out, and drains connections at shutdown.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::Shutdown;
use super::connection_registry::{ConnectionRegistry, RegisteredConnection};
use super::serve_connection::{self, ConnectionService, ProtocolBuilders};
use super::server_state::ServerState;
use crate::body::Incoming;
use crate::conn::{CoarseClock, ConnectionIo, ConnectionState, SweepVerdict};
use crate::{Body, Conn};

/// Idle time before a draining worker closes an HTTP/1.1 connection. An immediate close would
/// lose a request that is already on its way. This time covers a slow client with a long round trip.
const QUIET: Duration = Duration::from_secs(1);
/// Idle time before a worker closes an HTTP/1.1 connection in a drain after a hand-over. This time
/// can be longer, because the successor already serves the port and nothing waits for this process
/// to exit.
const QUIET_HANDED_OVER: Duration = Duration::from_secs(2);
/// Interval at which a draining worker checks whether it is done.
const DRAIN_PERIOD: Duration = Duration::from_millis(10);
/// Pause before the next accept after an error, for example when the process has no free
/// descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Limit on the threads per worker for blocking calls of handlers.
const BLOCKING_THREADS_MAX: usize = 64;

pub(super) struct Worker<H> {
    listeners: Vec<TcpListener>,
    service: ConnectionService<H>,
    clock: Arc<CoarseClock>,
    period: Duration,
    open: ConnectionRegistry,
}

/// Runs a worker on the current thread until the shutdown.
pub(super) fn run_worker<H, R>(
    common: Arc<ServerState>,
    number: usize,
    listeners: Vec<std::net::TcpListener>,
    shutdown: &Shutdown,
    make: impl FnOnce() -> H,
) -> io::Result<()>
where
    H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    let result = runtime.block_on(async {
        let worker = Worker {
            listeners: listeners
                .into_iter()
                .map(TcpListener::from_std)
                .collect::<Result<_, _>>()?,
            service: ConnectionService {
                protocols: Arc::new(ProtocolBuilders::new(&common.limits)),
                shutdown: shutdown.clone(),
                handler: make(),
                common: Arc::clone(&common),
            },
            clock: Arc::new(CoarseClock::new()),
            period: common.limits.sweep_period(),
            open: common.registries.get(number).cloned().unwrap_or_default(),
        };
        worker.run_until_stopped().await;
        Ok(())
    });
    // Blocking calls that still run must not delay the exit.
    runtime.shutdown_background();
    result
}

impl<H, R> Worker<H>
where
    H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    async fn run_until_stopped(mut self) {
        let shutdown = self.service.shutdown.clone();
        let limits = self.service.common.limits.clone();
        self.serve_until(shutdown.wait_until_draining()).await;
        // The port stays open for a while, so that load balancers can notice the shutdown.
        // Responses already contain `Connection: close`. After a hand-over, this wait is not
        // necessary, because the successor already accepts connections.
        if shutdown.is_handed_over() {
            self.listeners.clear();
        } else {
            tokio::select! {
                () = shutdown.wait_until_stopped() => {}
                () = self.serve_until(sleep(limits.announce)) => {}
            }
        }
        self.close_listeners();
        tokio::select! {
            () = shutdown.wait_until_stopped() => {}
            () = self.drain_connections(Instant::now() + limits.drain_timeout) => {}
        }
        self.open
            .lock_entries()
            .iter()
            .for_each(RegisteredConnection::cut_connection);
    }

    async fn serve_until(&mut self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut tick = interval(self.period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut end => return,
                // Precedes the accept, which completes at once while it fails.
                due = tick.tick(), if !self.open.lock_entries().is_empty() => {
                    self.service.common.worker_delay.observe(due.elapsed());
                    self.sweep_connections();
                }
                accepted = accept_any(&self.listeners) => {
                    // Restarts the timer. The worker does not wait for the timer while there are no
                    // connections, so the next tick may be overdue.
                    if self.open.lock_entries().is_empty() {
                        tick.reset();
                    }
                    self.handle_accepted(accepted).await;
                }
            }
        }
    }

    async fn handle_accepted(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        match accepted {
            Ok((stream, peer)) => self.admit_connection(stream, peer),
            // The client has already disconnected.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; pausing");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Starts a task for a connection, unless a connection limit is reached.
    fn admit_connection(&mut self, stream: TcpStream, peer: SocketAddr) {
        let common = &self.service.common;
        let secure = common.tls.is_some();
        let speaks_for_many = common.trust.sends_proxy_header(peer.ip());
        let Some(slot) = common
            .connection_limits
            .take_slot(peer.ip(), speaks_for_many)
        else {
            if !secure {
                // Ignores an error, because the client may have disconnected.
                let _ = serve_connection::refuse_connection(&stream);
            }
            return;
        };
        self.clock.update_clock();
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        if let Some(low_rtt) = &common.low_rtt {
            low_rtt.pace_if_remote(stream.as_fd(), peer.ip());
        }
        let (read, write) = stream.into_split();
        let shared = Arc::new(ConnectionState::new(
            slot.id,
            peer,
            secure,
            write,
            Arc::clone(&self.clock),
        ));
        let weak = Arc::downgrade(&shared);
        let io = ConnectionIo::new(read, Arc::clone(&shared));
        // Spawns the future directly, because a wrapper would store the future twice.
        let task = tokio::spawn(self.service.clone().serve_connection(io, shared, slot));
        self.open.lock_entries().push(RegisteredConnection {
            shared: weak,
            task: task.abort_handle(),
        });
    }

    /// Removes finished connections, and closes or cuts connections that have timed out or whose
    /// clients read too slowly.
    fn sweep_connections(&mut self) {
        self.clock.update_clock();
        let mut open = self.open.lock_entries();
        open.retain(|entry| !entry.task.is_finished());
        let ServerState {
            limits,
            connection_limits,
            ..
        } = &*self.service.common;
        for (entry, shared) in open.iter().filter_map(RegisteredConnection::as_live) {
            match shared.judge_timeouts(limits, self.period) {
                SweepVerdict::Live => {}
                SweepVerdict::Close => shared.request_close(),
                SweepVerdict::Cut(reason) => {
                    connection_limits.cut.with_labels(&[reason]).inc();
                    entry.cut_connection();
                }
            }
        }
        cut_slow_readers(&open, &self.service.common);
    }

    /// Accepts all connections that already wait, then closes the port. The kernel refuses a
    /// connection whose TCP handshake completes between the last accept and the close.
    fn close_listeners(&mut self) {
        self.service.common.copies.clear();
        for listener in std::mem::take(&mut self.listeners) {
            // Calls `accept` on the socket directly, because the runtime may not know yet that a
            // connection waits.
            let Ok(listener) = listener.into_std() else {
                continue;
            };
            while let Ok((stream, peer)) = listener.accept() {
                let stream = stream
                    .set_nonblocking(true)
                    .and_then(|()| TcpStream::from_std(stream));
                if let Ok(stream) = stream {
                    self.admit_connection(stream, peer);
                }
            }
        }
    }

    /// Lets connections finish their requests until `deadline`.
    async fn drain_connections(&mut self, deadline: Instant) {
        let mut tick = interval(DRAIN_PERIOD);
        let least_quiet = match self.service.shutdown.is_handed_over() {
            true => QUIET_HANDED_OVER,
            false => QUIET,
        };
        // Times stored before the drain are only as exact as the sweep period, so they do not prove
        // that a connection was idle. Idle times are therefore measured from the start of the
        // drain.
        let silences_count_from = Instant::now() + least_quiet;
        loop {
            self.sweep_connections();
            let quiet = match Instant::now() < silences_count_from {
                true => Duration::MAX,
                false => least_quiet,
            };
            if self.open.lock_entries().is_empty() && !self.service.shutdown.has_holds() {
                return;
            }
            for (_, shared) in self
                .open
                .lock_entries()
                .iter()
                .filter_map(RegisteredConnection::as_live)
            {
                if shared.may_close(quiet) {
                    shared.request_close();
                }
            }
            tokio::select! {
                () = sleep_until(deadline) => return,
                _ = tick.tick() => {}
            }
        }
    }
}

/// Cuts slow connections while copied responses use more than 80 % of `send-memory`. A connection
/// is slow if one of its streams is below the minimum rate. The slowest connections are cut first,
/// until the remaining connections use at most 80 %.
fn cut_slow_readers(open: &[RegisteredConnection], common: &ServerState) {
    let min_rate = &common.limits.min_rate;
    let rated = open.iter().filter_map(RegisteredConnection::as_live);
    let rated = rated.filter_map(|(entry, shared)| {
        let rate = shared.slowest_rate_below(min_rate)?;
        Some((rate, entry, shared.memory_account()?.held_bytes()))
    });
    let mut slow: Vec<_> = rated.collect();
    let mut excess = common.send_memory.excess_bytes();
    slow.sort_unstable_by_key(|(rate, _, _)| *rate);
    for (_, entry, held_bytes) in slow {
        if excess == 0 {
            return;
        }
        common.connection_limits.cut.with_labels(&["slow"]).inc();
        entry.cut_connection();
        excess = excess.saturating_sub(held_bytes);
    }
}

/// Waits for the next connection on any listener, and accepts the connection.
async fn accept_any(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    std::future::poll_fn(|cx| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    })
    .await
}
