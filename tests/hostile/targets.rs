//! The attacked servers: `serve` and `edge`, each with and without TLS.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::frames::{self, StreamResult};
use crate::strict::StrictOrigin;
use crate::support::{HeadwaterServer, TempFolder};

/// Modification time of the film, since 1970. The date is Sat, 01 Jan 2000 00:00:00 GMT.
const FILM_DATE: Duration = Duration::from_secs(946_684_800);

/// A connection to a server, encrypted or not.
pub trait ByteStream: Read + Write {}

impl<T: Read + Write> ByteStream for T {}

/// A running server, and how to connect to it.
pub struct TargetServer {
    pub name: &'static str,
    pub is_edge: bool,
    /// The certificate, if the server uses TLS.
    certificate: Option<Vec<u8>>,
    server: HeadwaterServer,
}

/// All servers, and the origin behind the edges.
pub struct AttackedServers {
    pub servers: Vec<TargetServer>,
    pub origin: StrictOrigin,
    _folder: TempFolder,
}

/// A self-signed certificate, and the flags that name its files.
struct TestCertificate {
    pem: Vec<u8>,
    flags: [String; 4],
}

impl TestCertificate {
    fn new(folder: &TempFolder) -> TestCertificate {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let pem = made.cert.pem().into_bytes();
        let cert = folder.write_file("cert.pem", &pem);
        let key = folder.write_file("key.pem", made.signing_key.serialize_pem().as_bytes());
        let path = |path: &std::path::Path| path.display().to_string();
        let flags = [
            "--tls-cert".into(),
            path(&cert),
            "--tls-key".into(),
            path(&key),
        ];
        TestCertificate { pem, flags }
    }
}

/// Starts a program of `headwater` twice, without TLS and with TLS.
fn start_pair(
    program: &str,
    names: [&'static str; 2],
    flags: &[&str],
    certificate: &TestCertificate,
) -> [TargetServer; 2] {
    let tls: Vec<&str> = certificate.flags.iter().map(String::as_str).collect();
    [(names[0], None), (names[1], Some(certificate))].map(|(name, secure)| {
        let tls = secure.map_or(&[][..], |_| &tls);
        TargetServer {
            name,
            is_edge: program == "edge",
            certificate: secure.map(|certificate| certificate.pem.clone()),
            server: HeadwaterServer::start_program(program, &[flags, tls].concat()),
        }
    })
}

/// Edges with and without TLS.
pub struct AttackedEdges {
    pub servers: [TargetServer; 2],
    _folder: TempFolder,
}

impl AttackedEdges {
    /// Starts edges in front of this origin, with further flags.
    pub fn start(origin: SocketAddr, flags: &[&str]) -> AttackedEdges {
        let folder = TempFolder::new();
        let certificate = TestCertificate::new(&folder);
        AttackedEdges {
            servers: start_edge_pair(origin, flags, &certificate),
            _folder: folder,
        }
    }
}

fn start_edge_pair(
    origin: SocketAddr,
    flags: &[&str],
    certificate: &TestCertificate,
) -> [TargetServer; 2] {
    let url = format!("http://{origin}");
    let flags = [&["--origin", url.as_str()][..], flags].concat();
    start_pair("edge", ["edge", "edge over TLS"], &flags, certificate)
}

impl AttackedServers {
    /// Starts the servers with further flags.
    pub fn start(flags: &[&str]) -> AttackedServers {
        let folder = TempFolder::new();
        write_library(&folder);
        let certificate = TestCertificate::new(&folder);
        let films = folder.0.join("films").display().to_string();
        let origin = StrictOrigin::new();
        let own = [&[films.as_str()][..], flags].concat();
        let names = ["serve", "serve over TLS"];
        let mut servers = Vec::from(start_pair("serve", names, &own, &certificate));
        servers.extend(start_edge_pair(origin.address, flags, &certificate));
        AttackedServers {
            servers,
            origin,
            _folder: folder,
        }
    }

    /// Checks that each server still runs and serves, and that the origin has parsed no hidden
    /// request.
    pub fn assert_unharmed(mut self) {
        for target in &mut self.servers {
            assert!(target.server.is_alive(), "{}", target.name);
            let mut stream = target.connect(b"http/1.1");
            let request = b"GET /film.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            stream.write_all(request).unwrap();
            let response = read_available(&mut stream);
            assert!(response.starts_with("HTTP/1.1 200"), "{}", target.name);
        }
        for request in self.origin.parsed_requests() {
            let line = request.request_line();
            assert!(!line.contains("evil"), "{line}");
        }
    }
}

/// Writes a library with a film that was modified on [`FILM_DATE`]. Also writes a secret file
/// outside of the library.
pub fn write_library(folder: &TempFolder) {
    let film = folder.write_file("films/film.bin", &[7; 1000]);
    let film = std::fs::File::options().write(true).open(film).unwrap();
    film.set_modified(SystemTime::UNIX_EPOCH + FILM_DATE)
        .unwrap();
    folder.write_file("secret", b"secret");
}

impl TargetServer {
    /// Sends a request over `http/1.1` or `h2` on a new connection.
    pub fn request(
        &self,
        protocol: &str,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> StreamResult {
        let mut stream = self.connect(protocol.as_bytes());
        if protocol == "h2" {
            return request_over_http2(&mut stream, method, path, fields);
        }
        request_over_http1(&mut stream, method, path, fields)
    }

    /// Requests the metrics on the main port. Returns the value of one metric, or 0 if the server
    /// does not report this metric.
    pub fn read_metric(&self, line: &str) -> u64 {
        let mut stream = self.connect(b"http/1.1");
        let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let text = read_available(&mut stream);
        let value = text
            .lines()
            .find_map(|row| row.strip_prefix(line)?.strip_prefix(' '));
        value.map_or(0, |value| value.trim().parse().unwrap())
    }

    pub fn peak_memory_bytes(&self) -> u64 {
        self.server.peak_memory_bytes()
    }

    /// Opens a connection for this ALPN protocol. A write fails after one second if the server does
    /// not read.
    pub fn connect(&self, protocol: &[u8]) -> Box<dyn ByteStream> {
        let stream = self.server.connect();
        stream
            .set_write_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        let Some(certificate) = &self.certificate else {
            return Box::new(stream);
        };
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(certificate).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        Box::new(StreamOwned::new(connection, stream))
    }
}

/// Reads until the server closes the connection.
pub fn read_available(stream: &mut dyn ByteStream) -> String {
    let mut bytes = Vec::new();
    // Ignores errors, because a reset also ends the connection.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends one request over HTTP/1.1 and asks the server to close the connection afterwards.
pub fn request_over_http1(
    stream: &mut dyn ByteStream,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> StreamResult {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: e\r\nConnection: close\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    let _ = stream.write_all((head + "\r\n").as_bytes());
    let _ = stream.flush();
    let response = read_available(stream);
    crate::http1::parse_status(&response).map_or(StreamResult::Refused, StreamResult::Status)
}

/// Sends one request over HTTP/2.
pub fn request_over_http2(
    stream: &mut dyn ByteStream,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> StreamResult {
    let lower: Vec<(String, &str)> = fields
        .iter()
        .map(|(name, value)| (name.to_lowercase(), *value))
        .collect();
    let usual = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "e"),
    ];
    let more = lower.iter().map(|(name, value)| (name.as_str(), *value));
    let all: Vec<(&str, &str)> = usual.into_iter().chain(more).collect();
    frames::request_on_stream(stream, &all)
}
