//! A pool of connections to the storage. The number of connections to each address is bounded.

use super::http2::{NegotiatedConnection, SharedConnection, StreamOrNewConnection, negotiate};
use super::pooled_connection::{ConnectionOrStream, PooledConnection};
use super::{TransportError, TransportOptions};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use upstream::{
    ALPN_HTTP1, ALPN_HTTP2, Connection, ConnectionCounts, Connector, IdleConnections, OpenedStream,
    ReadBuffers, ServerAddress, TrustedAuthorities, client_config,
};

/// Interval between two checks of idle connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// All connections of a library to its storage.
pub(crate) struct ConnectionPool {
    connector: Connector,
    /// Opens connections that also offer HTTP/2.
    http2_connector: Connector,
    options: TransportOptions,
    buffers: Arc<ReadBuffers>,
    hosts: Mutex<HashMap<ServerAddress, Arc<HostConnections>>>,
    /// The runtime that drives shared connections.
    handle: Handle,
}

/// The connections to one address.
pub(super) struct HostConnections {
    permits: Arc<Semaphore>,
    pub(super) idle: IdleConnections,
    pub(super) http2: SharedConnection,
}

impl ConnectionPool {
    /// Creates an empty pool. Must be called within a Tokio runtime.
    pub(crate) fn new(
        options: TransportOptions,
        counts: Arc<ConnectionCounts>,
    ) -> Result<Arc<ConnectionPool>, String> {
        let invalid = |error| format!("invalid certificate authorities: {error}");
        let authorities = match &options.ca {
            Some(pem) => TrustedAuthorities::public_and_pem(pem).map_err(invalid)?,
            None => TrustedAuthorities::Public,
        };
        let connector = |protocols: &[&[u8]]| {
            // If connections are not reused, TLS sessions are not resumed either.
            let tls = client_config(&authorities, protocols, options.pooled).map_err(invalid)?;
            let timeout = options.timeouts.connect;
            Ok::<_, String>(Connector::new(tls, timeout, counts.clone()))
        };
        let pool = Arc::new(ConnectionPool {
            connector: connector(&[ALPN_HTTP1])?,
            http2_connector: connector(&[ALPN_HTTP2, ALPN_HTTP1])?,
            options,
            buffers: Arc::default(),
            hosts: Mutex::default(),
            handle: Handle::current(),
        });
        tokio::spawn(sweep_idle(Arc::downgrade(&pool), pool.options.idle));
        Ok(pool)
    }

    pub(crate) fn options(&self) -> &TransportOptions {
        &self.options
    }

    /// Returns a pooled, shared or new connection for one request. `failed` is the number of a
    /// reused connection on which the request has failed. The request then gets a new connection,
    /// or a shared connection that is newer than the failed connection.
    pub(crate) async fn acquire(
        self: &Arc<ConnectionPool>,
        address: &ServerAddress,
        failed: Option<u64>,
    ) -> Result<PooledConnection, TransportError> {
        let host = self.host_connections(address);
        let wait = host.permits.clone().acquire_owned();
        let permit = tokio::time::timeout(self.options.timeouts.connect, wait).await;
        // The semaphore is never closed, so a failure is a timeout.
        let Ok(Ok(permit)) = permit else {
            return Err(TransportError::PoolExhausted);
        };
        let pooled = self.options.pooled;
        let found =
            if self.options.http2 && pooled && address.is_tls && host.http2.can_negotiate_http2() {
                let opening = self.open_and_negotiate(address);
                let acquiring = host.http2.acquire(failed, opening);
                // The timeout also limits the wait for another request that opens the connection.
                let acquired = tokio::time::timeout(self.options.timeouts.connect, acquiring).await;
                match acquired.map_err(|_| TransportError::ConnectTimeout)?? {
                    StreamOrNewConnection::Http1(opened) => self.wrap_http1_connection(opened),
                    StreamOrNewConnection::Http2(stream, id, reused) => {
                        (ConnectionOrStream::Http2(stream), id, reused)
                    }
                }
            } else if pooled
                && failed.is_none()
                && let Some(connection) = host.idle.take_connection()
            {
                let id = connection.id();
                (ConnectionOrStream::Http1(Box::new(connection)), id, true)
            } else {
                let opened = self.connector.connect(address).await?;
                self.wrap_http1_connection(opened)
            };
        if found.2 {
            self.connector.counts().record_reuse();
        }
        Ok(PooledConnection::new(found, &host, permit))
    }

    /// Wraps a new HTTP/1.1 connection, which concurrent requests do not share.
    fn wrap_http1_connection(&self, opened: OpenedStream) -> (ConnectionOrStream, u64, bool) {
        let connection = Connection::new(opened, self.buffers.clone());
        let id = connection.id();
        (ConnectionOrStream::Http1(Box::new(connection)), id, false)
    }

    /// Opens a connection with HTTP/2, or with HTTP/1.1 if the server does not offer HTTP/2.
    async fn open_and_negotiate(
        &self,
        address: &ServerAddress,
    ) -> Result<NegotiatedConnection, TransportError> {
        let (connector, address) = (self.http2_connector.clone(), address.clone());
        // Opens the connection on the pool's runtime, because other requests on the connection may
        // outlive the runtime of the first request.
        let opening = self.handle.spawn(async move {
            let opened = connector.connect(&address).await?;
            negotiate(opened).await
        });
        let ended = |_| {
            Err(TransportError::Connect(
                "the storage threads have exited".into(),
            ))
        };
        opening.await.unwrap_or_else(ended)
    }

    fn host_connections(&self, address: &ServerAddress) -> Arc<HostConnections> {
        let mut hosts = lock_table(&self.hosts);
        if let Some(host) = hosts.get(address) {
            return host.clone();
        }
        let host = Arc::new(HostConnections {
            permits: Arc::new(Semaphore::new(self.options.connections_max.max(1))),
            // The permits already limit the number of connections, so idle connections need no
            // limit.
            idle: IdleConnections::for_all_runtimes(self.options.idle, usize::MAX),
            http2: SharedConnection::default(),
        });
        hosts.insert(address.clone(), host.clone());
        host
    }
}

/// Closes connections that have been idle for too long, and connections that the server has closed.
/// Returns after the pool has been dropped.
async fn sweep_idle(pool: Weak<ConnectionPool>, idle_max: Duration) {
    let interval = (idle_max / 2).clamp(Duration::from_millis(50), SWEEP_INTERVAL);
    loop {
        tokio::time::sleep(interval).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        for host in lock_table(&pool.hosts).values() {
            host.http2.close_if_idle(idle_max);
            host.idle.sweep();
        }
    }
}

fn lock_table<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::StorageTimeouts;
    use std::future::pending;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn waiting_for_a_connection_that_another_request_opens_times_out() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let options = TransportOptions {
            http2: true,
            timeouts: StorageTimeouts {
                connect: Duration::from_millis(10),
                ..StorageTimeouts::default()
            },
            ..TransportOptions::default()
        };
        let pool = ConnectionPool::new(options, Arc::default()).unwrap();
        let address = ServerAddress::from_uri(&"https://127.0.0.1:1/".parse().unwrap()).unwrap();
        let host = pool.host_connections(&address);
        let mut other = pin!(host.http2.acquire(None, pending()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(other.as_mut().poll(&mut cx).is_pending());
        let acquired = runtime.block_on(pool.acquire(&address, None));
        assert!(matches!(acquired, Err(TransportError::ConnectTimeout)));
    }
}
