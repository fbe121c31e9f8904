//! Opening a connection: names, TCP, TLS, HTTP/1.1.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;

use super::Authorities;
use super::socket::Socket;
use crate::Body;

/// Where to connect to, and how.
pub(super) struct Connect {
    authority: String,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    /// Asks the task that drives it to let go of its socket.
    release: Option<oneshot::Sender<oneshot::Sender<(Socket, Bytes)>>>,
    head_bytes_max: usize,
    /// Whose runtime its task lives on.
    pub(super) worker: usize,
}

/// A connection without HTTP.
#[derive(Debug)]
pub(super) struct Released {
    pub(super) socket: Socket,
    /// What HTTP had read and not looked at.
    pub(super) unread: Bytes,
    pub(super) head_bytes_max: usize,
    pub(super) worker: usize,
}

impl Connection {
    /// HTTP over an open socket, driven by a task of its own. Bytes of a head are bounded.
    pub(super) async fn over(socket: Socket, head_bytes_max: usize) -> io::Result<Connection> {
        let handshake = Builder::new()
            .max_header_size(head_bytes_max)
            .handshake(TokioIo::new(socket));
        let (sender, connection) = handshake.await.map_err(io::Error::other)?;
        let (release, asked) = oneshot::channel();
        tokio::spawn(drive(connection, asked));
        Ok(Connection {
            sender,
            release: Some(release),
            head_bytes_max,
            worker: 0,
        })
    }

    /// Takes the socket from HTTP, which may be in the middle of an answer's body. `None` if the
    /// connection has just ended, as the body will say; and the second time.
    pub(super) async fn release(&mut self) -> Option<Released> {
        let (give, given) = oneshot::channel();
        self.release.take()?.send(give).ok()?;
        let (socket, unread) = given.await.ok()?;
        Some(Released {
            socket,
            unread,
            head_bytes_max: self.head_bytes_max,
            worker: self.worker,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// A request that cannot have reached the server comes back with the error.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, (hyper::Error, Option<Request<Body>>)> {
        // The task may not have noticed yet that the last answer is over.
        if let Err(error) = self.sender.ready().await {
            return Err((error, Some(request)));
        }
        let sent = self.sender.try_send_request(request).await;
        sent.map_err(|mut failed| {
            let unsent = failed.take_message();
            (failed.into_error(), unsent)
        })
    }
}

impl Connect {
    pub(super) fn new(url: &Uri, authorities: &Authorities) -> io::Result<Connect> {
        let wrong =
            |what: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{url}: {what}"));
        let secure = match url.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => {
                return Err(wrong(
                    "a server is http://HOST[:PORT] or https://HOST[:PORT]",
                ));
            }
        };
        let authority = url.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("user names are not sent"));
        }
        if !matches!(
            url.path_and_query().map(|p| p.as_str()),
            None | Some("/" | "")
        ) {
            return Err(wrong("a server has no path; take it away"));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority
            .port_u16()
            .unwrap_or(if secure { 443 } else { 80 });
        let tls = if secure {
            let name = ServerName::try_from(host.clone()).map_err(|_| wrong("no name for TLS"))?;
            Some((connector(authorities)?, name))
        } else {
            None
        };
        Ok(Connect {
            authority: authority.to_string(),
            host,
            port,
            tls,
        })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) async fn connect(&self, head_bytes_max: usize) -> io::Result<Connection> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Connection::over(stream.into(), head_bytes_max).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await?;
                Connection::over(stream.into(), head_bytes_max).await
            }
        }
    }
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.authority)
    }
}

/// Runs until the connection ends, or its socket is asked for.
async fn drive(
    mut connection: hyper::client::conn::http1::Connection<TokioIo<Socket>, Body>,
    mut asked: oneshot::Receiver<oneshot::Sender<(Socket, Bytes)>>,
) {
    let ended = tokio::select! {
        biased;
        Ok(give) = &mut asked => {
            let parts = connection.into_parts();
            // Whoever asked may be gone: so is the connection, then.
            let _ = give.send((parts.io.into_inner(), parts.read_buf));
            return;
        }
        ended = &mut connection => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection to a server behind us ended");
    }
}

fn connector(authorities: &Authorities) -> io::Result<TlsConnector> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(authorities.roots()?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
