//! Tests the connector with a real TLS server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tokio::io::AsyncReadExt;

use super::*;

/// A listener for TLS connections, with the settings of the server.
struct TlsListener {
    listener: TcpListener,
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl TlsListener {
    fn bind(protocol: &[u8]) -> TlsListener {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsListener {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            config: Arc::new(config),
            certificate,
        }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn authorities(&self) -> TrustedAuthorities {
        TrustedAuthorities::Private(vec![self.certificate.clone()])
    }

    fn accept(&self) -> StreamOwned<ServerConnection, TcpStream> {
        let (socket, _) = self.listener.accept().unwrap();
        // Otherwise a second record waits until the client acknowledges the first.
        socket.set_nodelay(true).unwrap();
        StreamOwned::new(ServerConnection::new(self.config.clone()).unwrap(), socket)
    }
}

/// Starts a TLS server that sends one byte to each of two clients. Returns the server's address and
/// certificate.
fn start_tls_server(protocol: &[u8]) -> (ServerAddress, TrustedAuthorities) {
    let server = TlsListener::bind(protocol);
    let address = ServerAddress {
        is_tls: true,
        host: "localhost".into(),
        port: server.port(),
    };
    let authorities = server.authorities();
    std::thread::spawn(move || {
        for _ in 0..2 {
            server.accept().write_all(b"x").unwrap();
        }
    });
    (address, authorities)
}

fn read_request_head(stream: &mut impl Read) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

/// Requests the body `abc` three times from a TLS server that responds twice on its first connection
/// and once on its second. After the first response, the server sends `surplus` in a TLS record of
/// its own. Returns which responses came on a reused connection.
fn reuse_after_surplus(surplus: &'static [u8]) -> Vec<bool> {
    let server = TlsListener::bind(ALPN_HTTP1);
    let url = format!("https://localhost:{}", server.port())
        .parse()
        .unwrap();
    let limits = UpstreamLimits::default();
    let client = UpstreamClient::new(&url, 1, limits, &server.authorities()).unwrap();
    let idle = Arc::new(Barrier::new(2));
    let client_idle = idle.clone();
    std::thread::spawn(move || {
        let mut first = server.accept();
        read_request_head(&mut first);
        first.write_all(OK.as_bytes()).unwrap();
        idle.wait();
        first.write_all(surplus).unwrap();
        idle.wait();
        if surplus.is_empty() {
            read_request_head(&mut first);
            first.write_all(OK.as_bytes()).unwrap();
            drop(first);
        }
        loop {
            let mut next = server.accept();
            read_request_head(&mut next);
            next.write_all(OK.as_bytes()).unwrap();
        }
    });
    block_on(async {
        let mut reuse = Vec::new();
        for n in 0..3 {
            let mut response = client.send_repeatable(0, &get_request("/")).await.unwrap();
            reuse.push(response.timing.is_reused);
            assert_eq!(read_body(&mut response).await.unwrap(), b"abc");
            drop(response);
            if n == 0 {
                client_idle.wait();
                client_idle.wait();
            }
            // After the first response without a surplus, the idle connection stays open.
            if n > 0 || !surplus.is_empty() {
                wait_until_idle_is_closed(&client).await;
            }
        }
        reuse
    })
}

/// Waits until the runtime has noticed that idle connections are closed or have received data.
async fn wait_until_idle_is_closed(client: &UpstreamClient) {
    let end = Instant::now() + Duration::from_secs(60);
    while client.idle_connections_of_worker(0).has_open_connection() {
        assert!(Instant::now() < end, "an idle connection is still open");
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_tls_connection_is_reused_until_the_server_closes_it() {
    assert_eq!(reuse_after_surplus(b""), [false, true, false]);
}

/// Bytes after a response were once the response to the next request. Over TLS, unread bytes were
/// allowed, because they may be session tickets.
#[test]
fn bytes_after_a_response_over_tls_are_not_the_next_response() {
    let forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    assert_eq!(reuse_after_surplus(forged), [false, false, false]);
}

/// Mutation testing showed that no other test checks the connection counts.
#[test]
fn resumed_and_open_tls_connections_are_counted() {
    for (protocol, is_http2) in [(ALPN_HTTP2, true), (ALPN_HTTP1, false)] {
        let (address, authorities) = start_tls_server(protocol);
        let config = client_config(&authorities, &[ALPN_HTTP2, ALPN_HTTP1], true).unwrap();
        let counts = Arc::new(ConnectionCounts::default());
        let connector = Connector::new(config, Duration::from_secs(60), counts.clone());
        block_on(async {
            for resumed in [0, 1] {
                let mut opened = connector.connect(&address).await.unwrap();
                assert_eq!(opened.is_http2(), is_http2);
                // Reads the byte, so that the client also receives the session ticket, which
                // arrives before the byte. The next connection needs this ticket.
                assert_eq!(opened.stream.read_u8().await.unwrap(), b'x');
                assert_eq!(
                    (counts.opened_count(), counts.resumed_count()),
                    (resumed + 1, resumed)
                );
                assert_eq!((counts.open_count(), counts.closed_count()), (1, resumed));
            }
        });
        assert_eq!((counts.open_count(), counts.closed_count()), (0, 2));
    }
}

/// Mutation testing showed that no other test fails if `is_empty` always returns `false`.
#[test]
fn body_data_is_empty_without_bytes() {
    for (data, len) in [
        (BodyData::Bytes(bytes::Bytes::new()), 0),
        (BodyData::Bytes(bytes::Bytes::from_static(b"abc")), 3),
        (BodyData::Spliced(0), 0),
        (BodyData::Spliced(7), 7),
    ] {
        assert_eq!((data.len(), data.is_empty()), (len, len == 0));
    }
}
