//! Connections by address: bounded, kept while they are useful, counted.

use super::connect::Target;
use super::{Connector, Failed, Transport};
use hyper::client::conn::http1::SendRequest;
use object_store::client::HttpRequestBody;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    numbers: AtomicU64,
    hosts: Mutex<HashMap<Target, Arc<Host>>>,
}

struct Host {
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    sender: SendRequest<HttpRequestBody>,
    number: u64,
    since: Instant,
}

/// A connection that is in use by one request.
pub(crate) struct Lease {
    pub(crate) sender: SendRequest<HttpRequestBody>,
    pub(crate) number: u64,
    pub(crate) reused: bool,
    host: Arc<Host>,
    keep: bool,
    _permit: OwnedSemaphorePermit,
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
            numbers: AtomicU64::new(1),
            hosts: Mutex::default(),
        });
        tokio::spawn(sweep(Arc::downgrade(&pool), pool.transport.idle));
        Ok(pool)
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// A connection: one that is kept, unless `fresh`, or a new one.
    pub(crate) async fn lease(&self, target: &Target, fresh: bool) -> Result<Lease, Failed> {
        let host = self.host(target);
        let wait = host.permits.clone().acquire_owned();
        let permit = tokio::time::timeout(self.transport.timeouts.connect, wait).await;
        // The semaphore is never closed, so a failure is one of time.
        let Ok(Ok(permit)) = permit else {
            return Err(Failed::Crowded);
        };
        if self.transport.pooled && !fresh {
            while let Some(mut idle) = host.take(self.transport.idle) {
                if idle.sender.ready().await.is_ok() {
                    self.connections.reused.fetch_add(1, Relaxed);
                    return Ok(Lease {
                        sender: idle.sender,
                        number: idle.number,
                        reused: true,
                        host,
                        keep: true,
                        _permit: permit,
                    });
                }
            }
        }
        let guard = || Guard::new(self.connections.clone());
        let sender = self.connector.connect(target, guard).await?;
        Ok(Lease {
            sender,
            number: self.numbers.fetch_add(1, Relaxed),
            reused: false,
            host,
            keep: self.transport.pooled,
            _permit: permit,
        })
    }

    fn host(&self, target: &Target) -> Arc<Host> {
        let mut hosts = lock(&self.hosts);
        if let Some(host) = hosts.get(target) {
            return host.clone();
        }
        let host = Arc::new(Host {
            permits: Arc::new(Semaphore::new(self.transport.connections_max.max(1))),
            idle: Mutex::default(),
        });
        hosts.insert(target.clone(), host.clone());
        host
    }
}

impl Host {
    /// The connection that was used last: the others may then be idle long enough to be closed.
    fn take(&self, idle_max: Duration) -> Option<Idle> {
        let mut all = lock(&self.idle);
        while let Some(idle) = all.pop() {
            if !idle.sender.is_closed() && idle.since.elapsed() < idle_max {
                return Some(idle);
            }
        }
        None
    }
}

impl Lease {
    /// The request is over and was answered whole: the connection may carry another.
    pub(crate) fn done(self) {
        if self.keep && !self.sender.is_closed() {
            lock(&self.host.idle).push(Idle {
                sender: self.sender,
                number: self.number,
                since: Instant::now(),
            });
        }
    }
}

/// Closes what has been idle for too long, as long as there is a pool.
async fn sweep(pool: Weak<Pool>, idle_max: Duration) {
    loop {
        tokio::time::sleep((idle_max / 2).max(Duration::from_millis(50))).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        for host in lock(&pool.hosts).values() {
            lock(&host.idle)
                .retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < idle_max);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
