//! Making connections: names, source addresses, TLS, counters.

use super::stream::Stream;
use super::{Failure, Fault, Settings, Version, h2, tls};
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use url::Url;

/// What all clients of a run share; clones are the same.
#[derive(Clone)]
pub struct Dialer(Arc<Shared>);

struct Shared {
    settings: Settings,
    tls: Arc<rustls::ClientConfig>,
    names: Mutex<Names>,
    turn: AtomicUsize,
    counts: Connections,
}

/// Addresses by host and port.
type Names = HashMap<(String, u16), Arc<[SocketAddr]>>;

/// Connections of a run.
#[derive(Debug, Default)]
pub struct Connections {
    opened: AtomicU64,
    closed: AtomicU64,
}

impl Connections {
    /// Connections that were made.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        let closed = self.closed.load(Ordering::Relaxed);
        self.opened().saturating_sub(closed)
    }
}

/// Counts its connection as closed when it is dropped.
pub(crate) struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counts.closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection that is ready for exchanges.
pub(crate) enum Link {
    /// HTTP/1.1: one exchange at a time.
    Http1(Stream, Counted),
    /// HTTP/2: many.
    Http2(h2::Shared),
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer")
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// A dialer without connections yet.
    ///
    /// # Errors
    /// What is wrong with the certificates of authorities.
    pub fn new(settings: Settings) -> Result<Dialer, String> {
        Ok(Dialer(Arc::new(Shared {
            tls: tls::config(&settings)?,
            settings,
            names: Mutex::default(),
            turn: AtomicUsize::new(0),
            counts: Connections::default(),
        })))
    }

    /// How it connects.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// How many connections there were and are.
    pub fn connections(&self) -> &Connections {
        &self.0.counts
    }

    /// Connects to a URL's host, within the connect timeout.
    pub(crate) async fn connect(&self, url: &Url) -> Result<Link, Failure> {
        let limit = self.0.settings.connect_timeout;
        match tokio::time::timeout(limit, self.connect_unbounded(url)).await {
            Ok(link) => link,
            Err(_) => Err(Fault::ConnectTimeout.into()),
        }
    }

    async fn connect_unbounded(&self, url: &Url) -> Result<Link, Failure> {
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(Failure::new(Fault::Url, format_args!("scheme {other}"))),
        };
        let socket = self.tcp(url).await?;
        let counted = Counted(self.0.clone());
        self.0.counts.opened.fetch_add(1, Ordering::Relaxed);
        let stream = match secure {
            true => self.secure(socket, url).await?,
            false => Stream::Plain(socket),
        };
        Ok(match self.0.settings.version {
            Version::Http1 => Link::Http1(stream, counted),
            Version::Http2 => Link::Http2(h2::begin(stream, move || drop(counted)).await?),
        })
    }

    async fn secure(&self, socket: TcpStream, url: &Url) -> Result<Stream, Failure> {
        let name = host(url)?.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|error| Failure::new(Fault::Url, error))?;
        let tls = TlsConnector::from(self.0.tls.clone())
            .connect(name, socket)
            .await
            .map_err(|error| {
                let failure = Failure::from(error);
                match failure.fault {
                    Fault::Closed => Failure::new(Fault::Tls, "closed in the handshake"),
                    _ => failure,
                }
            })?;
        if self.0.settings.version == Version::Http2
            && tls.get_ref().1.alpn_protocol() != Some(b"h2")
        {
            return Err(Failure::new(
                Fault::Http2,
                "the server does not offer HTTP/2",
            ));
        }
        Ok(Stream::Tls(Box::new(tls)))
    }

    /// A connected socket: all of the host's addresses are tried, beginning with another each time.
    async fn tcp(&self, url: &Url) -> Result<TcpStream, Failure> {
        let addresses = self.addresses(url).await?;
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        let mut last = Failure::from(Fault::Dns);
        for number in 0..addresses.len() {
            let address = addresses[(turn + number) % addresses.len()];
            match self.tcp_to(address, turn).await {
                Ok(socket) => return Ok(socket),
                Err(error) => last = Failure::from(error),
            }
        }
        Err(last)
    }

    async fn tcp_to(&self, address: SocketAddr, turn: usize) -> std::io::Result<TcpStream> {
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

    async fn addresses(&self, url: &Url) -> Result<Arc<[SocketAddr]>, Failure> {
        let port = url.port_or_known_default().unwrap_or(80);
        let host = host(url)?;
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
        let found = found.map_err(|error| Failure::new(Fault::Dns, error))?;
        let found: Arc<[SocketAddr]> = found.collect();
        if found.is_empty() {
            return Err(Fault::Dns.into());
        }
        if self.0.settings.lookup_once {
            names().insert(key, found.clone());
        }
        Ok(found)
    }
}

fn host(url: &Url) -> Result<&str, Failure> {
    url.host_str()
        .ok_or_else(|| Failure::new(Fault::Url, "it names no host"))
}
