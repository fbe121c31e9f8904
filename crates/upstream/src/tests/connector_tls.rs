//! Tests the connector with a real TLS server.

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tokio::io::AsyncReadExt;

use super::*;

/// Starts a TLS server that sends one byte to each of two clients. Returns the server's address and
/// certificate.
fn start_tls_server(protocol: &[u8]) -> (ServerAddress, TrustedAuthorities) {
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
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ServerAddress {
        is_tls: true,
        host: "localhost".into(),
        port: listener.local_addr().unwrap().port(),
    };
    std::thread::spawn(move || {
        for socket in listener.incoming().take(2) {
            let tls = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(tls, socket.unwrap());
            stream.write_all(b"x").unwrap();
        }
    });
    (address, TrustedAuthorities::Private(vec![certificate]))
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
