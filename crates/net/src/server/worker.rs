//! One worker: accepts, starts a task per connection, sweeps out those that wait too long, drains.

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

use super::roster::{Entry, Roster};
use super::serve::{self, Service};
use super::{Common, Shutdown};
use crate::body::Incoming;
use crate::conn::{Clock, Fate, Io, Shared};
use crate::{Body, Conn};

/// While draining, how long an HTTP/1.1 connection must be silent before it is closed: a request
/// already under way to us would be lost.
const QUIET: Duration = Duration::from_millis(250);
/// How often a draining worker looks whether it is done.
const DRAIN_PERIOD: Duration = Duration::from_millis(10);
/// How long not to accept after the process ran out of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Threads for blocking calls of handlers, per worker.
const BLOCKING_THREADS_MAX: usize = 64;

pub(super) struct Worker<H> {
    listeners: Vec<TcpListener>,
    service: Service<H>,
    clock: Arc<Clock>,
    period: Duration,
    open: Roster,
}

/// A worker thread's whole life.
pub(super) fn run<H, R>(
    common: Arc<Common>,
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
            service: Service {
                protocol: Arc::new(serve::protocol(&common.limits)),
                shutdown: shutdown.clone(),
                handler: make(),
                common: Arc::clone(&common),
            },
            clock: Arc::new(Clock::new()),
            period: common.limits.sweep_period(),
            open: common.rosters.get(number).cloned().unwrap_or_default(),
        };
        worker.work().await;
        Ok(())
    });
    // Blocking calls that still run must not hold the end up.
    runtime.shutdown_background();
    result
}

impl<H, R> Worker<H>
where
    H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    async fn work(mut self) {
        let shutdown = self.service.shutdown.clone();
        let limits = self.service.common.limits.clone();
        self.serve_until(shutdown.draining()).await;
        // Answers already say that their connection ends; the port stays open until a balancer
        // has noticed.
        tokio::select! {
            () = shutdown.stopped() => {}
            () = self.serve_until(sleep(limits.announce)) => {}
        }
        self.close_listeners();
        tokio::select! {
            () = shutdown.stopped() => {}
            () = self.drain(Instant::now() + limits.drain_timeout) => {}
        }
        self.open.entries().iter().for_each(Entry::cut);
    }

    async fn serve_until(&mut self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut tick = interval(self.period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut end => return,
                accepted = accept(&self.listeners) => self.handle_accepted(accepted).await,
                _ = tick.tick(), if !self.open.entries().is_empty() => self.sweep(),
            }
        }
    }

    async fn handle_accepted(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        match accepted {
            Ok((stream, peer)) => self.admit(stream, peer),
            // The client changed its mind before we looked.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted for a moment");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Starts a connection's task, if there is room.
    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        let common = &self.service.common;
        let secure = common.tls.is_some();
        let speaks_for_many = common.trust.proxies(peer.ip());
        let Some(seat) = common.census.seat(peer.ip(), speaks_for_many) else {
            if !secure {
                // The client may be gone already.
                let _ = serve::refuse(&stream);
            }
            return;
        };
        self.clock.update();
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        if let Some(near) = &common.near {
            near.look(stream.as_fd(), peer.ip());
        }
        let (read, write) = stream.into_split();
        let shared = Arc::new(Shared::new(
            seat.id,
            peer,
            secure,
            write,
            Arc::clone(&self.clock),
        ));
        let weak = Arc::downgrade(&shared);
        let io = Io::new(read, Arc::clone(&shared));
        // As it is: within another future there would be room for it twice.
        let task = tokio::spawn(self.service.clone().connection(io, shared, seat));
        self.open.entries().push(Entry {
            shared: weak,
            task: task.abort_handle(),
        });
    }

    /// Forgets finished connections and ends those whose client is too slow.
    fn sweep(&mut self) {
        self.clock.update();
        let mut open = self.open.entries();
        open.retain(|entry| !entry.task.is_finished());
        let Common { limits, census, .. } = &*self.service.common;
        for (entry, shared) in open.iter().filter_map(Entry::live) {
            match shared.fate(limits, self.period) {
                Fate::Live => {}
                Fate::Close => shared.close(),
                Fate::Cut(reason) => {
                    census.cut.of(&[reason]).inc();
                    entry.cut();
                }
            }
        }
    }

    /// Takes in every connection that is already waiting, then closes the port. One that completes
    /// its handshake between the two is refused by the kernel.
    fn close_listeners(&mut self) {
        for listener in std::mem::take(&mut self.listeners) {
            // Asked directly: the runtime may not have heard yet of what waits.
            let Ok(listener) = listener.into_std() else {
                continue;
            };
            while let Ok((stream, peer)) = listener.accept() {
                let stream = stream
                    .set_nonblocking(true)
                    .and_then(|()| TcpStream::from_std(stream));
                if let Ok(stream) = stream {
                    self.admit(stream, peer);
                }
            }
        }
    }

    /// Lets every connection finish what it does.
    async fn drain(&mut self, deadline: Instant) {
        let mut tick = interval(DRAIN_PERIOD);
        loop {
            self.sweep();
            if self.open.entries().is_empty() && !self.service.shutdown.is_held() {
                return;
            }
            for (_, shared) in self.open.entries().iter().filter_map(Entry::live) {
                if shared.may_close(QUIET) {
                    shared.close();
                }
            }
            tokio::select! {
                () = sleep_until(deadline) => return,
                _ = tick.tick() => {}
            }
        }
    }
}

/// The next connection of any listener.
async fn accept(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
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
