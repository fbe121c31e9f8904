//! Who a client is, behind balancers and relays; and certificates that change.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Response;

use super::support::*;
use crate::config::{Common, Layers};
use crate::program::MAIN;
use crate::server::{Limits, Listen, Server, Shutdown, Tls};
use crate::{Body, Cidr, Trust};

fn behind(proxy: &[&str], forwarded: &[&str]) -> Running {
    let all = |list: &[&str]| list.iter().map(|n| Cidr::parse(n).unwrap()).collect();
    start_as(Listen {
        trust: Trust {
            proxy: all(proxy),
            forwarded: all(forwarded),
        },
        limits: Limits {
            header_timeout: Duration::from_millis(300),
            ..Limits::default()
        },
        ..Listen::default()
    })
}

/// 192.0.2.7:4660.
const HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x12\x34\0\x50";

fn ask(server: &Running, before: &[u8], lines: &str) -> String {
    let mut client = server.connect();
    client.bytes(before);
    client.send(&format!("GET /client HTTP/1.1\r\nHost: x\r\n{lines}\r\n"));
    let answer = client.read();
    assert_eq!(answer.status, 200);
    let again = client.get("/client");
    assert_eq!(again.status, 200, "the header comes once a connection");
    String::from_utf8(answer.body).unwrap()
}

#[test]
fn a_trusted_balancer_says_for_whom_it_connects() {
    let server = behind(&["127.0.0.0/8"], &[]);
    assert_eq!(ask(&server, HEADER, ""), "192.0.2.7:4660 192.0.2.7");
    let local = [&HEADER[..12], b"\x20\0\0\0"].concat();
    assert!(ask(&server, &local, "").ends_with(" 127.0.0.1"));
    // It must say so, and by and by.
    for before in [&b""[..], &HEADER[..20]] {
        let mut client = server.connect();
        client.bytes(before);
        if before.is_empty() {
            client.send("GET /client HTTP/1.1\r\nHost: x\r\n\r\n");
        }
        assert_eq!(client.rest(), b"", "{before:?}");
    }
}

#[test]
fn nobody_else_does() {
    let server = behind(&["10.0.0.0/8"], &["10.0.0.0/8"]);
    assert!(ask(&server, b"", "X-Forwarded-For: 192.0.2.7\r\n").ends_with(" 127.0.0.1"));
    let mut client = server.connect();
    client.bytes(HEADER);
    client.send("GET /client HTTP/1.1\r\nHost: x\r\n\r\n");
    let answer = String::from_utf8_lossy(&client.rest()).into_owned();
    assert!(!answer.contains("192.0.2.7"), "{answer}");
}

#[test]
fn a_trusted_relay_says_whom_it_forwards() {
    let server = behind(&["127.0.0.1"], &["127.0.0.0/8", "192.0.2.0/24"]);
    let lines = "X-Forwarded-For: 1.1.1.1, 198.51.100.9\r\n";
    assert_eq!(ask(&server, HEADER, lines), "192.0.2.7:4660 198.51.100.9");
}

pub type Made = rcgen::CertifiedKey<rcgen::KeyPair>;

pub fn made() -> Made {
    rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap()
}

pub fn tls(made: &Made) -> Tls {
    Tls {
        cert: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    }
}

pub type Stream = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

/// A connection by a client who believes this certificate alone.
pub fn trusting(address: SocketAddr, made: &Made) -> Stream {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    rustls::StreamOwned::new(session, TcpStream::connect(address).unwrap())
}

fn ask_encrypted(stream: &mut Stream) -> std::io::Result<usize> {
    stream.write_all(b"GET /full/3 HTTP/1.1\r\nHost: x\r\n\r\n")?;
    stream.read(&mut [0; 1000])
}

#[test]
fn a_new_certificate_is_for_new_connections_and_a_wrong_one_for_none() {
    let (old, new) = (made(), made());
    let server = start_with(Limits::default(), Some(tls(&old)));
    let certificates = server.certificates.clone().unwrap();
    let ask = |made: &Made| ask_encrypted(&mut trusting(server.address, made));
    let mut kept = trusting(server.address, &old);
    ask_encrypted(&mut kept).unwrap();
    let mixed = Tls {
        key: tls(&new).key,
        ..tls(&old)
    };
    assert!(certificates.replace(&mixed).is_err());
    ask(&old).unwrap();
    certificates.replace(&tls(&new)).unwrap();
    ask(&new).unwrap();
    assert!(ask(&old).is_err());
    ask_encrypted(&mut kept).unwrap();
}

#[test]
fn a_certificate_is_followed_by_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    let write = |made: &Made| {
        std::fs::write(&cert, tls(made).cert).unwrap();
        std::fs::write(&key, tls(made).key).unwrap();
    };
    let (old, new) = (made(), made());
    write(&old);
    let common = Common {
        tls: Some((cert.clone(), key.clone())),
        ..Common::new(&Layers::default()).unwrap()
    };
    let listen = Listen {
        addresses: vec!["127.0.0.1:0".into()],
        tls: common.read_tls().unwrap(),
        workers: 1,
        ..Listen::default()
    };
    let server = Server::bind(listen).unwrap();
    let mut running = crate::Running::new(Shutdown::new());
    running.follow_tls(&common, server.certificates()).unwrap();
    let answer = |_| |_, _| async { Response::new(Body::full("x")) };
    running.serve(MAIN, server, answer).unwrap();
    let address = running.addresses()[0];
    ask_encrypted(&mut trusting(address, &old)).unwrap();
    write(&new);
    let began = Instant::now();
    while ask_encrypted(&mut trusting(address, &new)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "not followed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(ask_encrypted(&mut trusting(address, &old)).is_err());
    running.shutdown().drain();
    running.join().unwrap();
}

#[test]
fn connections_can_be_looked_at() {
    let server = behind(&[], &[]);
    let mut clients: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.get("/full/3");
    }
    let (open, some) = server.connections.look(4);
    assert_eq!(open, 5);
    assert!((2..=4).contains(&some.len()), "{}", some.len());
    assert!(
        some.iter()
            .all(|one| one.tcp().is_some() && one.requests() == Some(1))
    );
    assert_eq!(server.connections.look(100).1.len(), 5);
}
