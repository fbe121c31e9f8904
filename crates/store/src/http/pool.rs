//! Connections by address: bounded, kept while they are useful, counted.

use super::buffers::Buffers;
use super::connect::{Spoken, Target};
use super::lease::{Carrier, Lease};
use super::shared::Shared;
use super::socket::Counted;
use super::wire::Wire;
use super::{Connector, Failed, Transport};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// How often kept connections are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Counts of connections to the storage, kept where sockets are opened and closed.
#[derive(Debug, Default)]
pub struct Connections {
    opened: AtomicU64,
    closed: AtomicU64,
    reused: AtomicU64,
    resumed: AtomicU64,
}

impl Connections {
    /// Opened so far.
    pub fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// Closed so far, by either end.
    pub fn closed(&self) -> u64 {
        self.closed.load(Relaxed)
    }

    /// Requests so far that were sent on a connection that had carried one before.
    pub fn reused(&self) -> u64 {
        self.reused.load(Relaxed)
    }

    /// Of those opened so far, how many resumed a TLS session of an earlier one.
    pub fn resumed(&self) -> u64 {
        self.resumed.load(Relaxed)
    }

    /// Open now.
    pub fn open(&self) -> u64 {
        let closed = self.closed();
        self.opened().saturating_sub(closed)
    }
}

/// Lives as long as a connection's socket.
pub(crate) struct Guard(Arc<Connections>);

impl Guard {
    fn new(connections: Arc<Connections>) -> Guard {
        connections.opened.fetch_add(1, Relaxed);
        Guard(connections)
    }

    /// Its TLS session is one of an earlier connection.
    pub(super) fn resumed(&self) {
        self.0.resumed.fetch_add(1, Relaxed);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Relaxed);
    }
}

/// All connections of a process to its storage.
pub(crate) struct Pool {
    connector: Connector,
    transport: Transport,
    connections: Arc<Connections>,
    buffers: Arc<Buffers>,
    numbers: AtomicU64,
    hosts: Mutex<HashMap<Target, Arc<Host>>>,
    /// Where connections live that several use at once.
    handle: Handle,
}

/// One address.
pub(super) struct Host {
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    shared: Shared,
}

struct Idle {
    wire: Wire,
    number: u64,
    since: Instant,
}

impl Pool {
    /// A pool without connections. Must be called where a runtime is entered.
    pub(crate) fn new(
        transport: Transport,
        connections: Arc<Connections>,
    ) -> Result<Arc<Pool>, String> {
        let pool = Arc::new(Pool {
            connector: Connector::new(&transport)?,
            transport,
            connections,
            buffers: Arc::default(),
            numbers: AtomicU64::new(1),
            hosts: Mutex::default(),
            handle: Handle::current(),
        });
        tokio::spawn(sweep(Arc::downgrade(&pool), pool.transport.idle));
        Ok(pool)
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// A connection for one request: one that is kept or shared, or a new one. `failed`: not
    /// the one of this number, nor any that was kept as long.
    pub(crate) async fn lease(
        self: &Arc<Pool>,
        target: &Target,
        failed: Option<u64>,
    ) -> Result<Lease, Failed> {
        let host = self.host(target);
        let wait = host.permits.clone().acquire_owned();
        let permit = tokio::time::timeout(self.transport.timeouts.connect, wait).await;
        // The semaphore is never closed, so a failure is one of time.
        let Ok(Ok(permit)) = permit else {
            return Err(Failed::Crowded);
        };
        let lease = |carrier, number, reused| Lease::new(carrier, number, reused, &host, permit);
        if self.transport.http2 && self.transport.pooled && target.tls && host.shared.is_likely() {
            let (carrier, number, reused) = host.shared.take(self, target, failed).await?;
            self.connections.reused.fetch_add(reused.into(), Relaxed);
            return Ok(lease(carrier, number, reused));
        }
        if self.transport.pooled
            && failed.is_none()
            && let Some((wire, number)) = host.take(self.transport.idle)
        {
            self.connections.reused.fetch_add(1, Relaxed);
            return Ok(lease(Carrier::Own(Box::new(wire)), number, true));
        }
        let counted = self.connector.connect(target, self.guard()).await?;
        let wire = Box::new(self.wire(counted));
        Ok(lease(Carrier::Own(wire), self.number(), false))
    }

    /// A connection that several may use, or one for one alone, where that is all there is.
    pub(super) async fn open_shared(self: &Arc<Pool>, target: &Target) -> Result<Spoken, Failed> {
        let (pool, target) = (self.clone(), target.clone());
        let guard = self.guard();
        // Not on the runtime of who asks first: others go on with it.
        let opening = self
            .handle
            .spawn(async move { pool.connector.connect_shared(&target, guard).await });
        let ended = |_| Err(Failed::Connect("the storage's threads have ended".into()));
        opening.await.unwrap_or_else(ended)
    }

    fn guard(&self) -> impl FnOnce() -> Guard + Send + use<> {
        let connections = self.connections.clone();
        || Guard::new(connections)
    }

    pub(super) fn wire(&self, counted: Counted) -> Wire {
        Wire::new(counted, self.buffers.clone())
    }

    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    fn host(&self, target: &Target) -> Arc<Host> {
        let mut hosts = lock(&self.hosts);
        if let Some(host) = hosts.get(target) {
            return host.clone();
        }
        let host = Arc::new(Host {
            permits: Arc::new(Semaphore::new(self.transport.connections_max.max(1))),
            idle: Mutex::default(),
            shared: Shared::default(),
        });
        hosts.insert(target.clone(), host.clone());
        host
    }
}

impl Host {
    /// The connection that was used last: the others may then be idle long enough to be closed.
    fn take(&self, idle_max: Duration) -> Option<(Wire, u64)> {
        loop {
            let idle = lock(&self.idle).pop()?;
            if idle.since.elapsed() < idle_max
                && let Some(wire) = idle.wire.wake()
            {
                return Some((wire, idle.number));
            }
        }
    }

    /// Keeps a connection whose answer is over, if it may be kept.
    pub(super) fn keep(&self, wire: Wire, number: u64) {
        if let Some(wire) = wire.rest() {
            let since = Instant::now();
            lock(&self.idle).push(Idle {
                wire,
                number,
                since,
            });
        }
    }
}

/// Closes what has been idle for too long, and what the other end has closed, as long as there is
/// a pool.
async fn sweep(pool: Weak<Pool>, idle_max: Duration) {
    let every = (idle_max / 2).clamp(Duration::from_millis(50), SWEEP_EVERY);
    loop {
        tokio::time::sleep(every).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        for host in lock(&pool.hosts).values() {
            host.shared.sweep(idle_max);
            lock(&host.idle)
                .retain_mut(|idle| idle.since.elapsed() < idle_max && idle.wire.is_open());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
