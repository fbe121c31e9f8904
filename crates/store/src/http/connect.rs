//! One connection: a socket, TLS where asked, HTTP on it.

use super::pool::Guard;
use super::socket::{Counted, Socket};
use super::{Failed, Transport};
use http::Uri;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use object_store::client::HttpRequestBody;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, HandshakeKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What HTTP/2 is called where TLS ends on it (RFC 9113 section 3.2).
const H2: &[u8] = b"h2";
/// What a server may send of one answer, and of all on a connection, before any of it was taken.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
const FRAME_BYTES_MAX: u32 = 256 << 10;

/// A connection by what is spoken on it.
pub(crate) enum Spoken {
    /// HTTP/1.1.
    One(Counted),
    /// HTTP/2.
    Two(SendRequest<HttpRequestBody>),
}

/// Makes connections.
pub(crate) struct Connector {
    tls: Arc<ClientConfig>,
    /// The same, with HTTP/2 on offer.
    tls_shared: Arc<ClientConfig>,
    timeout: Duration,
}

impl Target {
    /// The server that a URL names. `None` for another scheme or without a host.
    pub(crate) fn of(uri: &Uri) -> Option<Target> {
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return None,
        };
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        Some(Target {
            tls,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
        })
    }
}

impl Connector {
    /// # Errors
    /// When `transport.ca` holds no certificate.
    pub(crate) fn new(transport: &Transport) -> Result<Connector, String> {
        let mut roots = rustls::RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        if let Some(pem) = &transport.ca {
            let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
                .collect::<Result<_, _>>()
                .map_err(|error| format!("the certificates to trust: {error}"))?;
            if found.is_empty() {
                return Err("the certificates to trust: no certificate in PEM is there".into());
            }
            for certificate in found {
                let added = roots.add(certificate);
                added.map_err(|error| format!("the certificates to trust: {error}"))?;
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?;
        let mut tls = config.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        if !transport.pooled {
            // A client that opens anew for each request has no session to resume, either.
            tls.resumption = Resumption::disabled();
        }
        let mut tls_shared = tls.clone();
        tls_shared.alpn_protocols.insert(0, H2.to_vec());
        Ok(Connector {
            tls: Arc::new(tls),
            tls_shared: Arc::new(tls_shared),
            timeout: transport.timeouts.connect,
        })
    }

    /// Opens a connection on which HTTP/1.1 is spoken; `guard` lives as long as its socket does.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        guard: impl FnOnce() -> Guard,
    ) -> Result<Counted, Failed> {
        let connect = self.open(target, &self.tls, guard);
        let connected = tokio::time::timeout(self.timeout, connect).await;
        connected.unwrap_or(Err(Failed::ConnectTimeout))
    }

    /// Opens one on which HTTP/2 is spoken if the server offers it (RFC 9113 section 3.2). It lives
    /// on the runtime that this is called on.
    pub(crate) async fn connect_shared(
        &self,
        target: &Target,
        guard: impl FnOnce() -> Guard,
    ) -> Result<Spoken, Failed> {
        let connect = async {
            let counted = self.open(target, &self.tls_shared, guard).await?;
            match &counted.stream {
                Either::Right(tls) if tls.get_ref().1.alpn_protocol() == Some(H2) => {
                    share(counted).await.map(Spoken::Two)
                }
                _ => Ok(Spoken::One(counted)),
            }
        };
        let connected = tokio::time::timeout(self.timeout, connect).await;
        connected.unwrap_or(Err(Failed::ConnectTimeout))
    }

    async fn open(
        &self,
        target: &Target,
        tls: &Arc<ClientConfig>,
        guard: impl FnOnce() -> Guard,
    ) -> Result<Counted, Failed> {
        let failed = |error: std::io::Error| Failed::Connect(error.to_string());
        let socket = TcpStream::connect((target.host.as_str(), target.port));
        let socket = socket.await.map_err(failed)?;
        let guard = guard();
        socket.set_nodelay(true).map_err(failed)?;
        let socket = Socket::new(socket);
        if !target.tls {
            return Ok(Counted {
                stream: Either::Left(socket),
                guard,
            });
        }
        let name = ServerName::try_from(target.host.clone())
            .map_err(|_| Failed::Tls("the host's name is none that TLS knows".into()))?;
        let handshake = TlsConnector::from(tls.clone()).connect(name, socket);
        let stream = handshake
            .await
            .map_err(|error| Failed::Tls(error.to_string()))?;
        if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
            guard.resumed();
        }
        Ok(Counted {
            stream: Either::Right(Box::new(stream)),
            guard,
        })
    }
}

/// HTTP/2 on a connection, driven by a task of its own.
async fn share(counted: Counted) -> Result<SendRequest<HttpRequestBody>, Failed> {
    let handshake = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .handshake(TokioIo::new(counted.stream));
    let (sender, connection) = handshake.await.map_err(|e| Failed::of_hyper(&e))?;
    let guard = counted.guard;
    tokio::spawn(async move {
        // What goes wrong is seen by whoever waits for an answer.
        let _ = connection.await;
        drop(guard);
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        for (url, tls, host, port) in [
            ("http://a/x", false, "a", 80),
            ("https://a.b:9000/x?y", true, "a.b", 9000),
            ("https://[::1]:1/", true, "::1", 1),
        ] {
            let target = Target::of(&url.parse().unwrap()).unwrap();
            assert_eq!(
                (target.tls, target.host.as_str(), target.port),
                (tls, host, port)
            );
        }
        assert_eq!(Target::of(&"ftp://a/".parse().unwrap()), None);
        assert_eq!(Target::of(&"/path".parse().unwrap()), None);
    }
}
