//! Opens connections: resolves names, connects over TCP, and performs the TLS handshake.

use crate::{
    ClientCertificate, ClientStream, ConnectError, ConnectionCounts, ConnectionGuard,
    DetachableSocket, ServerAddress,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;

/// Opens connections within a timeout, and counts these connections.
#[derive(Debug, Clone)]
pub struct Connector {
    tls: Arc<ClientConfig>,
    timeout: Duration,
    counts: Arc<ConnectionCounts>,
}

/// A new connection before the first request.
#[derive(Debug)]
pub struct OpenedStream {
    /// The stream, unencrypted or over TLS.
    pub stream: ClientStream,
    /// Counts the connection as open. The guard must live as long as the stream.
    pub guard: ConnectionGuard,
}

impl Connector {
    /// Creates a connector. `timeout` covers name resolution, TCP and TLS together.
    pub fn new(
        tls: Arc<ClientConfig>,
        timeout: Duration,
        counts: Arc<ConnectionCounts>,
    ) -> Connector {
        Connector {
            tls,
            timeout,
            counts,
        }
    }

    /// Presents this certificate to servers that request a client certificate.
    #[must_use]
    pub fn with_certificate(self, certificate: ClientCertificate) -> Connector {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.client_auth_cert_resolver = Arc::new(certificate);
        Connector {
            tls: Arc::new(tls),
            ..self
        }
    }

    /// Returns the counts of the connections that this connector opened.
    pub fn counts(&self) -> &Arc<ConnectionCounts> {
        &self.counts
    }

    /// Opens a connection, which then belongs to the current runtime.
    ///
    /// # Errors
    /// When TCP or TLS fails, or the timeout elapses.
    pub async fn connect(&self, address: &ServerAddress) -> Result<OpenedStream, ConnectError> {
        self.connect_to(address, None).await
    }

    /// Opens a connection. If `at` is given, connects to this address instead of resolving the
    /// server's name. TLS verifies the server's name in both cases.
    ///
    /// # Errors
    /// When TCP or TLS fails, or the timeout elapses.
    pub async fn connect_to(
        &self,
        address: &ServerAddress,
        at: Option<SocketAddr>,
    ) -> Result<OpenedStream, ConnectError> {
        let opened = tokio::time::timeout(self.timeout, self.open_stream(address, at)).await;
        opened.unwrap_or(Err(ConnectError::TimedOut))
    }

    async fn open_stream(
        &self,
        address: &ServerAddress,
        at: Option<SocketAddr>,
    ) -> Result<OpenedStream, ConnectError> {
        let socket = match at {
            Some(at) => TcpStream::connect(at).await,
            None => TcpStream::connect((address.host.as_str(), address.port)).await,
        };
        let socket = socket.map_err(ConnectError::Tcp)?;
        let guard = ConnectionGuard::new(&self.counts);
        socket.set_nodelay(true).map_err(ConnectError::Tcp)?;
        let socket = DetachableSocket::new(socket);
        if !address.is_tls {
            let stream = Either::Left(socket);
            return Ok(OpenedStream { stream, guard });
        }
        let name = ServerName::try_from(address.host.clone()).map_err(|_| {
            ConnectError::Tls(io::Error::other("the host name is not valid for TLS"))
        })?;
        let handshake = TlsConnector::from(self.tls.clone()).connect(name, socket);
        let stream = handshake.await.map_err(ConnectError::Tls)?;
        if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
            guard.record_resumption();
        }
        let stream = Either::Right(Box::new(stream));
        Ok(OpenedStream { stream, guard })
    }
}

impl OpenedStream {
    /// Returns whether the server chose HTTP/2.
    pub fn is_http2(&self) -> bool {
        match &self.stream {
            Either::Left(_) => false,
            Either::Right(tls) => tls.get_ref().1.alpn_protocol() == Some(crate::ALPN_HTTP2),
        }
    }
}
