//! Opens and counts connections. This includes name resolution, the choice of a source address, and
//! the TLS handshake.

use super::connection_stream::ConnectionStream;
use super::tls_setup::TlsSetupError;
use super::{ClientSettings, FailureKind, HttpVersion, RequestFailure, http2_exchange, tls_setup};
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use url::Url;

/// Opens the connections of all clients of a run. Clones share the same state.
#[derive(Clone)]
pub struct Dialer(Arc<DialerState>);

struct DialerState {
    settings: ClientSettings,
    tls: Arc<rustls::ClientConfig>,
    names: Mutex<AddressCache>,
    turn: AtomicUsize,
    counts: ConnectionCounts,
}

/// Resolved addresses, by host and port.
type AddressCache = HashMap<(String, u16), Arc<[SocketAddr]>>;

/// Counters of a run's connections.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    opened: AtomicU64,
    closed: AtomicU64,
}

impl ConnectionCounts {
    /// Returns the number of connections opened.
    pub fn opened_total(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Returns the number of open connections.
    pub fn open_count(&self) -> u64 {
        let closed = self.closed.load(Ordering::Relaxed);
        self.opened_total().saturating_sub(closed)
    }
}

/// Counts a connection as closed when the guard is dropped.
pub(crate) struct ConnectionGuard(Arc<DialerState>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.counts.closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection ready for requests.
pub(crate) enum ClientConnection {
    /// An HTTP/1.1 connection, which serves one request at a time.
    Http1(ConnectionStream, ConnectionGuard),
    /// An HTTP/2 connection, which serves concurrent requests.
    Http2(http2_exchange::Http2Connection),
}

impl ClientConnection {
    /// Returns an idle connection, unless it can no longer be used: the server has closed the
    /// connection, or has sent bytes that would be taken as the next response.
    pub(crate) fn if_still_idle(mut self) -> Option<ClientConnection> {
        let is_idle = match &mut self {
            ClientConnection::Http1(stream, _) => stream.is_idle(),
            // The task of the connection reads all frames at once.
            ClientConnection::Http2(_) => true,
        };
        is_idle.then_some(self)
    }
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer")
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// Creates a dialer without connections.
    ///
    /// # Errors
    /// The certificate authorities cannot be used.
    pub fn new(settings: ClientSettings) -> Result<Dialer, TlsSetupError> {
        Ok(Dialer(Arc::new(DialerState {
            tls: tls_setup::build_tls_config(&settings)?,
            settings,
            names: Mutex::default(),
            turn: AtomicUsize::new(0),
            counts: ConnectionCounts::default(),
        })))
    }

    /// Returns the connection settings.
    pub fn settings(&self) -> &ClientSettings {
        &self.0.settings
    }

    /// Returns the connection counters.
    pub fn connection_counts(&self) -> &ConnectionCounts {
        &self.0.counts
    }

    /// Connects to a URL's host within the connect timeout.
    pub(crate) async fn connect_to_host(
        &self,
        url: &Url,
    ) -> Result<ClientConnection, RequestFailure> {
        let limit = self.0.settings.connect_timeout;
        match tokio::time::timeout(limit, self.connect_without_timeout(url)).await {
            Ok(link) => link,
            Err(_) => Err(FailureKind::ConnectTimeout.into()),
        }
    }

    async fn connect_without_timeout(&self, url: &Url) -> Result<ClientConnection, RequestFailure> {
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            other => {
                return Err(RequestFailure::new(
                    FailureKind::Url,
                    format_args!("scheme {other}"),
                ));
            }
        };
        let socket = self.connect_tcp(url).await?;
        let counted = ConnectionGuard(self.0.clone());
        self.0.counts.opened.fetch_add(1, Ordering::Relaxed);
        let stream = match secure {
            true => self.handshake_tls(socket, url).await?,
            false => ConnectionStream::Plain(socket),
        };
        Ok(match self.0.settings.version {
            HttpVersion::Http1 => ClientConnection::Http1(stream, counted),
            HttpVersion::Http2 => ClientConnection::Http2(
                http2_exchange::start_http2(stream, move || drop(counted)).await?,
            ),
        })
    }

    async fn handshake_tls(
        &self,
        socket: TcpStream,
        url: &Url,
    ) -> Result<ConnectionStream, RequestFailure> {
        let name = host_of(url)?.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name)
            .map_err(|error| RequestFailure::new(FailureKind::Url, error))?;
        let tls = TlsConnector::from(self.0.tls.clone())
            .connect(name, socket)
            .await
            .map_err(|error| {
                let failure = RequestFailure::from(error);
                match failure.fault {
                    FailureKind::Closed => RequestFailure::new(
                        FailureKind::Tls,
                        "connection closed during the handshake",
                    ),
                    _ => failure,
                }
            })?;
        if self.0.settings.version == HttpVersion::Http2
            && tls.get_ref().1.alpn_protocol() != Some(b"h2")
        {
            return Err(RequestFailure::new(
                FailureKind::Http2,
                "the server does not offer HTTP/2",
            ));
        }
        Ok(ConnectionStream::Tls(Box::new(tls)))
    }

    /// Opens a TCP connection. Tries the addresses of the host one after another, until a
    /// connection succeeds. Successive calls start with different addresses (round robin).
    async fn connect_tcp(&self, url: &Url) -> Result<TcpStream, RequestFailure> {
        let addresses = self.resolve_addresses(url).await?;
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        let mut last = RequestFailure::from(FailureKind::Dns);
        for number in 0..addresses.len() {
            let address = addresses[(turn + number) % addresses.len()];
            match self.connect_tcp_to_address(address, turn).await {
                Ok(socket) => return Ok(socket),
                Err(error) => last = RequestFailure::from(error),
            }
        }
        Err(last)
    }

    async fn connect_tcp_to_address(
        &self,
        address: SocketAddr,
        turn: usize,
    ) -> std::io::Result<TcpStream> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        let sources = &self.0.settings.sources;
        if !sources.is_empty() {
            socket.bind(SocketAddr::new(sources[turn % sources.len()], 0))?;
        }
        let socket = socket.connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    async fn resolve_addresses(&self, url: &Url) -> Result<Arc<[SocketAddr]>, RequestFailure> {
        let port = url.port_or_known_default().unwrap_or(80);
        let host = host_of(url)?;
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok([SocketAddr::new(address, port)].into());
        }
        let key = (host.to_owned(), port);
        let names = || self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.settings.lookup_once
            && let Some(known) = names().get(&key)
        {
            return Ok(known.clone());
        }
        let found = tokio::net::lookup_host((host, port)).await;
        let found = found.map_err(|error| RequestFailure::new(FailureKind::Dns, error))?;
        let found: Arc<[SocketAddr]> = found.collect();
        if found.is_empty() {
            return Err(FailureKind::Dns.into());
        }
        if self.0.settings.lookup_once {
            names().insert(key, found.clone());
        }
        Ok(found)
    }
}

fn host_of(url: &Url) -> Result<&str, RequestFailure> {
    url.host_str()
        .ok_or_else(|| RequestFailure::new(FailureKind::Url, "no host"))
}
