//! Who a client is, behind balancers and relays; and certificates that change.

use std::sync::Arc;

use super::support::*;
use crate::server::{Limits, Listen, Tls};
use crate::{Cidr, Trust};

fn behind(proxy: &[&str], forwarded: &[&str]) -> Running {
    let all = |list: &[&str]| list.iter().map(|n| Cidr::parse(n).unwrap()).collect();
    start_as(Listen {
        trust: Trust {
            proxy: all(proxy),
            forwarded: all(forwarded),
        },
        limits: Limits {
            header_timeout: std::time::Duration::from_millis(300),
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

#[test]
fn a_new_certificate_is_for_new_connections_and_a_wrong_one_for_none() {
    let made = || rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (old, new) = (made(), made());
    let tls = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| Tls {
        cert: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    };
    let server = start_with(Limits::default(), Some(tls(&old)));
    let certificates = server.certificates.clone().unwrap();
    let trusting = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| {
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
        let socket = std::net::TcpStream::connect(server.address).unwrap();
        rustls::StreamOwned::new(session, socket)
    };
    let ask = |stream: &mut rustls::StreamOwned<_, std::net::TcpStream>| {
        use std::io::{Read, Write};
        stream.write_all(b"GET /full/3 HTTP/1.1\r\nHost: x\r\n\r\n")?;
        stream.read(&mut [0; 1000])
    };
    let mut kept = trusting(&old);
    ask(&mut kept).unwrap();
    let mixed = Tls {
        key: tls(&new).key,
        ..tls(&old)
    };
    assert!(certificates.replace(&mixed).is_err());
    ask(&mut trusting(&old)).unwrap();
    certificates.replace(&tls(&new)).unwrap();
    ask(&mut trusting(&new)).unwrap();
    assert!(ask(&mut trusting(&old)).is_err());
    ask(&mut kept).unwrap();
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
