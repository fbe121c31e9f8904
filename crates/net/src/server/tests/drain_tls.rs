//! Drains while a TLS handshake is in progress.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConnection, Stream};

use super::relayed::{make_certificate, tls_identity, trusting_config};
use super::support::*;
use crate::server::{Limits, ServerOptions};

/// The HTTP/2 connection preface, an empty SETTINGS frame, and a HEADERS frame that ends stream 1
/// (RFC 9113 sections 3.4 and 4.1). The request is `GET https://x/`, encoded with indexes of the
/// static table (RFC 7541 appendix A).
const HTTP2_REQUEST: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x00\x04\x00\x00\x00\x00\x00\
    \x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x87\x84\x41\x01x";
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;

/// A client that performs the steps of a TLS handshake separately.
struct SteppedTlsClient {
    tls: ClientConnection,
    socket: TcpStream,
}

impl SteppedTlsClient {
    /// Sends ClientHello, and waits for the server's handshake messages. The client's remaining
    /// handshake messages are not sent.
    fn start_handshake(server: &TestServer, config: Arc<rustls::ClientConfig>) -> SteppedTlsClient {
        let socket = TcpStream::connect(server.address).unwrap();
        let timeout = Some(Duration::from_secs(60));
        socket.set_read_timeout(timeout).unwrap();
        let tls = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
        let mut client = SteppedTlsClient { tls, socket };
        client.tls.write_tls(&mut client.socket).unwrap();
        while client.tls.is_handshaking() {
            client.receive_records();
        }
        client
    }

    fn receive_records(&mut self) {
        assert!(
            self.tls.read_tls(&mut self.socket).unwrap() > 0,
            "the server closed the connection"
        );
        self.tls.process_new_packets().unwrap();
    }

    /// Sends the client's remaining handshake messages, and waits until the server has processed
    /// them.
    fn finish_handshake(&mut self) {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket).unwrap();
        }
        // The server sends session tickets after its handshake is complete (RFC 8446 section
        // 4.6.1).
        while self.tls.tls13_tickets_received() == 0 {
            self.receive_records();
        }
    }

    fn stream(&mut self) -> Stream<'_, ClientConnection, TcpStream> {
        Stream::new(&mut self.tls, &mut self.socket)
    }

    /// Reads an HTTP/2 frame. Returns the type, the stream identifier and the payload of the frame.
    fn read_frame(&mut self) -> std::io::Result<(u8, u32, Vec<u8>)> {
        let mut stream = self.stream();
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [len @ .., kind, _flags, s0, s1, s2, s3] = head;
        let len = len
            .iter()
            .fold(0, |len, byte| len << 8 | usize::from(*byte));
        let mut payload = vec![0; len];
        stream.read_exact(&mut payload)?;
        Ok((kind, u32::from_be_bytes([s0, s1, s2, s3]), payload))
    }
}

/// Regression: a draining server closed a connection during its TLS handshake, because the server
/// counted the time since the start of the connection as idle time. A busy server may need longer
/// for a handshake than the allowed idle time.
#[test]
fn a_slow_tls_handshake_before_a_hand_over_still_gets_http2_responses() {
    let made = make_certificate();
    let listen = ServerOptions {
        tls: Some(tls_identity(&made)),
        limits: Limits {
            header_timeout: Duration::from_secs(600),
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let server = start_with_workers(1, listen);
    let mut slow = SteppedTlsClient::start_handshake(&server, trusting_config(&made, &[b"h2"]));
    let mut idle = SteppedTlsClient::start_handshake(&server, trusting_config(&made, &[]));
    idle.finish_handshake();
    let request = b"GET /full/3 HTTP/1.1\r\nHost: x\r\n\r\n";
    idle.stream().write_all(request).unwrap();
    assert!(idle.stream().read(&mut [0; 1000]).unwrap() > 0);
    server.shutdown.hand_over();
    // The server closes the idle connection after the allowed idle time. By then, the slow
    // connection has sent no bytes for an even longer time.
    while idle.stream().read(&mut [0; 1000]).unwrap() > 0 {}
    slow.finish_handshake();
    slow.stream().write_all(HTTP2_REQUEST).unwrap();
    let (mut has_response, mut last_accepted) = (false, None);
    while !has_response || last_accepted.is_none() {
        let (kind, stream, payload) = slow
            .read_frame()
            .expect("a response and an announced close");
        match kind {
            HEADERS => {
                assert_eq!(stream, 1);
                has_response = true;
            }
            GOAWAY => last_accepted = payload.get(..4).map(<[u8]>::to_vec),
            _ => {}
        }
    }
    // The first of two GOAWAY frames contains the highest stream identifier and thus accepts all
    // requests that are on their way (RFC 9113 section 6.8).
    assert_eq!(
        last_accepted.as_deref(),
        Some(&[0x7f, 0xff, 0xff, 0xff][..])
    );
}
