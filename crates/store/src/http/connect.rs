//! One connection: a socket, TLS where asked, HTTP/1.1 on it.

use super::pool::Guard;
use super::{Failed, Transport};
use http::Uri;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use object_store::client::HttpRequestBody;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, HandshakeKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Makes connections.
pub(crate) struct Connector {
    tls: Arc<ClientConfig>,
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
        Ok(Connector {
            tls: Arc::new(tls),
            timeout: transport.timeouts.connect,
        })
    }

    /// Opens a connection; `guard` lives as long as its socket does.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        guard: impl FnOnce() -> Guard,
    ) -> Result<SendRequest<HttpRequestBody>, Failed> {
        let connect = self.open(target, guard);
        let connected = tokio::time::timeout(self.timeout, connect).await;
        connected.unwrap_or(Err(Failed::ConnectTimeout))
    }

    async fn open(
        &self,
        target: &Target,
        guard: impl FnOnce() -> Guard,
    ) -> Result<SendRequest<HttpRequestBody>, Failed> {
        let failed = |error: std::io::Error| Failed::Connect(error.to_string());
        let socket = TcpStream::connect((target.host.as_str(), target.port));
        let socket = socket.await.map_err(failed)?;
        let guard = guard();
        socket.set_nodelay(true).map_err(failed)?;
        if !target.tls {
            return speak(socket, guard).await;
        }
        let name = ServerName::try_from(target.host.clone())
            .map_err(|_| Failed::Tls("the host's name is none that TLS knows".into()))?;
        let handshake = TlsConnector::from(self.tls.clone()).connect(name, socket);
        let stream = handshake
            .await
            .map_err(|error| Failed::Tls(error.to_string()))?;
        if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
            guard.resumed();
        }
        speak(stream, guard).await
    }
}

/// HTTP/1.1 on a stream, driven by a task of its own.
async fn speak<S>(stream: S, guard: Guard) -> Result<SendRequest<HttpRequestBody>, Failed>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = http1::Builder::new()
        .max_buf_size(READ_BUFFER_BYTES)
        .handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(|e| Failed::of_hyper(&e))?;
    tokio::spawn(async move {
        // What goes wrong is seen by whoever waits for the answer.
        let _ = connection.await;
        drop(guard);
    });
    Ok(sender)
}

/// Most bytes taken from a socket at once.
const READ_BUFFER_BYTES: usize = 512 << 10;

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
