//! Tests client addresses behind proxies, and certificates that are replaced.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Response;

use super::support::*;
use crate::config::{CommonSettings, SettingLayers};
use crate::lifecycle::MAIN;
use crate::server::{Limits, Server, ServerOptions, Shutdown, TlsIdentity};
use crate::{Body, Cidr, TrustedNetworks};

fn start_behind_proxy(proxy: &[&str], forwarded: &[&str]) -> TestServer {
    let all = |list: &[&str]| {
        list.iter()
            .map(|n| Cidr::parse_network(n).unwrap())
            .collect()
    };
    start_as(ServerOptions {
        trust: TrustedNetworks {
            proxy: all(proxy),
            forwarded: all(forwarded),
        },
        limits: Limits {
            header_timeout: Duration::from_millis(300),
            ..Limits::default()
        },
        ..ServerOptions::default()
    })
}

/// A PROXY header with the client address 192.0.2.7:4660.
const HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x12\x34\0\x50";

fn request_client_address(server: &TestServer, before: &[u8], lines: &str) -> String {
    let mut client = server.connect();
    client.send_bytes(before);
    client.send_text(&format!("GET /client HTTP/1.1\r\nHost: x\r\n{lines}\r\n"));
    let response = client.read_response();
    assert_eq!(response.status, 200);
    let again = client.get("/client");
    assert_eq!(again.status, 200, "the header is sent once per connection");
    String::from_utf8(response.body).unwrap()
}

#[test]
fn a_trusted_proxy_names_its_client_in_a_proxy_header() {
    let server = start_behind_proxy(&["127.0.0.0/8"], &[]);
    assert_eq!(
        request_client_address(&server, HEADER, ""),
        "192.0.2.7:4660 192.0.2.7"
    );
    let local = [&HEADER[..12], b"\x20\0\0\0"].concat();
    assert!(request_client_address(&server, &local, "").ends_with(" 127.0.0.1"));
    // The server closes a connection whose header is missing or incomplete.
    for before in [&b""[..], &HEADER[..20]] {
        let mut client = server.connect();
        client.send_bytes(before);
        if before.is_empty() {
            client.send_text("GET /client HTTP/1.1\r\nHost: x\r\n\r\n");
        }
        assert_eq!(client.read_rest(), b"", "{before:?}");
    }
}

#[test]
fn an_untrusted_peer_cannot_name_a_client() {
    let server = start_behind_proxy(&["10.0.0.0/8"], &["10.0.0.0/8"]);
    assert!(
        request_client_address(&server, b"", "X-Forwarded-For: 192.0.2.7\r\n")
            .ends_with(" 127.0.0.1")
    );
    let mut client = server.connect();
    client.send_bytes(HEADER);
    client.send_text("GET /client HTTP/1.1\r\nHost: x\r\n\r\n");
    let response = String::from_utf8_lossy(&client.read_rest()).into_owned();
    assert!(!response.contains("192.0.2.7"), "{response}");
}

#[test]
fn a_trusted_proxy_names_its_client_in_x_forwarded_for() {
    let server = start_behind_proxy(&["127.0.0.1"], &["127.0.0.0/8", "192.0.2.0/24"]);
    let lines = "X-Forwarded-For: 1.1.1.1, 198.51.100.9\r\n";
    assert_eq!(
        request_client_address(&server, HEADER, lines),
        "192.0.2.7:4660 198.51.100.9"
    );
}

pub type TestCertificate = rcgen::CertifiedKey<rcgen::KeyPair>;

pub fn make_certificate() -> TestCertificate {
    rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap()
}

pub fn tls_identity(made: &TestCertificate) -> TlsIdentity {
    TlsIdentity {
        cert: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
        client_ca: None,
    }
}

pub type TlsClientStream = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

/// Connects as a client that trusts only this certificate.
pub fn connect_trusting(address: SocketAddr, made: &TestCertificate) -> TlsClientStream {
    let name = "localhost".try_into().unwrap();
    let session = rustls::ClientConnection::new(trusting_config(made, &[]), name).unwrap();
    rustls::StreamOwned::new(session, TcpStream::connect(address).unwrap())
}

/// Returns the configuration of a client that trusts only this certificate and offers these ALPN
/// protocols.
pub fn trusting_config(made: &TestCertificate, protocols: &[&[u8]]) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

fn ask_encrypted(stream: &mut TlsClientStream) -> std::io::Result<usize> {
    stream.write_all(b"GET /full/3 HTTP/1.1\r\nHost: x\r\n\r\n")?;
    stream.read(&mut [0; 1000])
}

#[test]
fn a_new_certificate_is_for_new_connections_and_a_wrong_one_for_none() {
    let (old, new) = (make_certificate(), make_certificate());
    let server = start_with(Limits::default(), Some(tls_identity(&old)));
    let certificates = server.certificates.clone().unwrap();
    let request =
        |made: &TestCertificate| ask_encrypted(&mut connect_trusting(server.address, made));
    let mut open = connect_trusting(server.address, &old);
    ask_encrypted(&mut open).unwrap();
    let mixed = TlsIdentity {
        key: tls_identity(&new).key,
        ..tls_identity(&old)
    };
    assert!(certificates.replace_certificates(&mixed).is_err());
    request(&old).unwrap();
    certificates
        .replace_certificates(&tls_identity(&new))
        .unwrap();
    request(&new).unwrap();
    assert!(request(&old).is_err());
    ask_encrypted(&mut open).unwrap();
}

#[test]
fn a_certificate_is_followed_by_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    let write = |made: &TestCertificate| {
        std::fs::write(&cert, tls_identity(made).cert).unwrap();
        std::fs::write(&key, tls_identity(made).key).unwrap();
    };
    let (old, new) = (make_certificate(), make_certificate());
    write(&old);
    let common = CommonSettings {
        tls: Some((cert.clone(), key.clone())),
        ..CommonSettings::new(&SettingLayers::default()).unwrap()
    };
    let listen = ServerOptions {
        addresses: vec!["127.0.0.1:0".into()],
        tls: common.read_tls().unwrap(),
        workers: 1,
        ..ServerOptions::default()
    };
    let server = Server::bind(listen).unwrap();
    let mut running = crate::RunningProgram::new(Shutdown::new());
    running
        .watch_tls_files(&common, server.certificates())
        .unwrap();
    let response = |_| |_, _| async { Response::new(Body::from_bytes("x")) };
    running.start_server(MAIN, server, response).unwrap();
    let address = running.main_addresses()[0];
    ask_encrypted(&mut connect_trusting(address, &old)).unwrap();
    write(&new);
    let start = Instant::now();
    while ask_encrypted(&mut connect_trusting(address, &new)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(30), "not followed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(ask_encrypted(&mut connect_trusting(address, &old)).is_err());
    running.shutdown().drain();
    running.join().unwrap();
}

#[test]
fn open_connections_can_be_listed() {
    let server = start_behind_proxy(&[], &[]);
    let mut clients: Vec<TestClient> = (0..5).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.get("/full/3");
    }
    let (open, some) = server.connections.list_connections(4);
    assert_eq!(open, 5);
    assert!((2..=4).contains(&some.len()), "{}", some.len());
    assert!(
        some.iter()
            .all(|one| one.tcp_info().is_some() && one.request_count() == Some(1))
    );
    assert_eq!(server.connections.list_connections(100).1.len(), 5);
}
