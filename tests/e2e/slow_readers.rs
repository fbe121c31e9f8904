//! Clients that request much and read nothing must not exhaust the server's memory.
//!
//! Most tests attack servers with `--send-memory 32MiB`. Three of these tests limit the growth of
//! the servers' peak memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{HeadwaterServer, TempFolder};

const SEND_MEMORY: &str = "32MiB";
/// Maximum growth of a server's peak memory: the budget of 32 MiB and another 256 MiB.
const GROWTH_BYTES_MAX: u64 = (32 + 256) << 20;
const FILM_BYTES: usize = 16 << 20;
const STREAMS: usize = 100;

const TARGET: &str = "/film.bin";

/// A library with a film, and a certificate in PEM.
struct AttackSetup {
    folder: TempFolder,
    certificate: Vec<u8>,
    tls_flags: Vec<String>,
}

impl AttackSetup {
    fn new() -> AttackSetup {
        let folder = TempFolder::new();
        let film: Vec<u8> = (0..FILM_BYTES).map(|at| (at / 3 % 251) as u8).collect();
        folder.write_file("films/film.bin", &film);
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let certificate = made.cert.pem().into_bytes();
        let cert = folder.write_file("cert.pem", &certificate);
        let key = folder.write_file("key.pem", made.signing_key.serialize_pem().as_bytes());
        let flag = |name: &str, path: &std::path::Path| [name.into(), path.display().to_string()];
        AttackSetup {
            tls_flags: [flag("--tls-cert", &cert), flag("--tls-key", &key)].concat(),
            folder,
            certificate,
        }
    }

    fn films(&self) -> String {
        self.folder.0.join("films").display().to_string()
    }

    fn start_origin(&self, flags: &[String]) -> HeadwaterServer {
        let films = self.films();
        let mut all = vec![films.as_str(), "--send-memory", SEND_MEMORY];
        all.extend(flags.iter().map(String::as_str));
        HeadwaterServer::serve(&all)
    }

    /// Starts an edge that has the film on disk but not in memory.
    fn start_edge(&self, origin: &HeadwaterServer, flags: &[String]) -> HeadwaterServer {
        let (url, disk) = (origin.url(""), self.folder.0.join("disk"));
        let disk = disk.display().to_string();
        let own = ["--origin", &url, "--disk-dir", &disk];
        let mut filling = HeadwaterServer::start_program("edge", &own);
        assert_eq!(filling.get_body(TARGET).len(), FILM_BYTES);
        assert_eq!(filling.terminate(), Some(0));
        let records = self.records().display().to_string();
        let mut all = own.to_vec();
        all.extend(["--send-memory", SEND_MEMORY, "--records", &records]);
        all.extend(flags.iter().map(String::as_str));
        HeadwaterServer::start_program("edge", &all)
    }

    /// The records of the attacked edge.
    fn records(&self) -> std::path::PathBuf {
        self.folder.0.join("records.jsonl")
    }

    /// Stops the edge after an attack, and checks that the edge served the film from disk. An
    /// attack on bytes that are already in memory would prove less.
    fn assert_disk_hits(&self, edge: &mut HeadwaterServer) {
        assert_eq!(edge.terminate(), Some(0));
        let records = std::fs::read_to_string(self.records()).unwrap();
        let lines = records.lines().filter(|line| line.contains(TARGET));
        let (from_disk, others): (Vec<_>, Vec<_>) =
            lines.partition(|line| line.contains(r#""disk""#));
        let (from_disk, others) = (from_disk.len(), others.len());
        assert!(
            from_disk > others / 10,
            "{from_disk} of disk, {others} others"
        );
    }

    fn connect_tls(&self, server: &HeadwaterServer, protocol: &[u8]) -> TlsStream {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(&self.certificate).unwrap();
        roots.add(certificate).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(connection, server.connect())
    }
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns requests for the film on [`STREAMS`] streams of one HTTP/2 connection. The window of
/// each stream is zero, so the server cannot send a byte of any body.
fn requests_without_window() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113 section 6.5.2).
    bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    // `:method` and `:scheme` are indexed fields. `:path` and `:authority` are literals (RFC 7541
    // section 6).
    let mut head = vec![0x82, 0x86, 0x04, TARGET.len() as u8];
    head.extend(TARGET.as_bytes());
    head.extend([0x01, 9]);
    head.extend(b"localhost");
    for n in 0..STREAMS {
        // The flags are END_STREAM and END_HEADERS.
        bytes.extend(frame(1, 0x5, 2 * n as u32 + 1, &head));
    }
    bytes
}

/// Reads until every stream has its response head.
fn read_heads(stream: &mut impl Read) {
    let mut heads = 0;
    while heads < STREAMS {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; len as usize];
        stream.read_exact(&mut payload).unwrap();
        heads += usize::from(head[3] == 1);
    }
}

/// Attacks over connections without TLS. The connections stay open until the result is dropped.
fn attack_over_h2c(server: &HeadwaterServer, connections: usize) -> Vec<TcpStream> {
    let attack = |_| {
        let mut stream = server.connect();
        stream.write_all(&requests_without_window()).unwrap();
        read_heads(&mut stream);
        stream
    };
    (0..connections).map(attack).collect()
}

fn attack_over_tls(
    setup: &AttackSetup,
    server: &HeadwaterServer,
    connections: usize,
) -> Vec<TlsStream> {
    let attack = |_| {
        let mut stream = setup.connect_tls(server, b"h2");
        stream.write_all(&requests_without_window()).unwrap();
        read_heads(&mut stream);
        stream
    };
    (0..connections).map(attack).collect()
}

/// Requests the film over HTTP/1.1 with TLS, and reads only the first byte of each response.
fn attack_over_http1(
    setup: &AttackSetup,
    server: &HeadwaterServer,
    connections: usize,
) -> Vec<TlsStream> {
    let request = format!("GET {TARGET} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let attack = |_| {
        let mut stream = setup.connect_tls(server, b"http/1.1");
        stream.write_all(request.as_bytes()).unwrap();
        stream.flush().unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        stream
    };
    (0..connections).map(attack).collect()
}

/// Runs an attack and returns by how much the server's peak memory has grown.
fn growth_under<T>(server: &HeadwaterServer, attack: impl FnOnce() -> T) -> u64 {
    let before = server.peak_memory_bytes();
    let open = attack();
    let growth = server.peak_memory_bytes().saturating_sub(before);
    drop(open);
    growth
}

fn assert_bounded(what: &str, growth: u64) {
    assert!(growth < GROWTH_BYTES_MAX, "{what}: {} MiB", growth >> 20);
}

#[test]
fn h2c_streams_without_a_window_hold_little_memory() {
    let setup = AttackSetup::new();
    let origin = setup.start_origin(&[]);
    let mut edge = setup.start_edge(&origin, &[]);
    for (name, server) in [("origin", &origin), ("edge", &edge)] {
        let growth = growth_under(server, || attack_over_h2c(server, 5));
        assert_bounded(name, growth);
    }
    setup.assert_disk_hits(&mut edge);
}

#[test]
fn tls_streams_without_a_window_hold_little_memory() {
    let setup = AttackSetup::new();
    let plain = setup.start_origin(&[]);
    let origin = setup.start_origin(&setup.tls_flags);
    let mut edge = setup.start_edge(&plain, &setup.tls_flags);
    for (name, server) in [("origin", &origin), ("edge", &edge)] {
        let growth = growth_under(server, || attack_over_tls(&setup, server, 30));
        assert_bounded(name, growth);
    }
    setup.assert_disk_hits(&mut edge);
}

#[test]
fn tls_clients_that_do_not_read_hold_little_memory() {
    let setup = AttackSetup::new();
    let plain = setup.start_origin(&[]);
    let origin = setup.start_origin(&setup.tls_flags);
    let mut edge = setup.start_edge(&plain, &setup.tls_flags);
    for (name, server) in [("origin", &origin), ("edge", &edge)] {
        let growth = growth_under(server, || attack_over_http1(&setup, server, 200));
        assert_bounded(name, growth);
    }
    setup.assert_disk_hits(&mut edge);
}

/// While the budget is used up, requests whose responses need copies get 503. Other requests are
/// served.
#[test]
fn a_used_up_budget_is_answered_with_503() {
    let setup = AttackSetup::new();
    let films = setup.films();
    let server = HeadwaterServer::serve(&[&films, "--send-memory", "1MiB"]);
    let open = attack_over_h2c(&server, 1);
    // The fast path does not handle requests with a body, so this response needs a copy.
    let request = format!(
        "GET {TARGET} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
    );
    let refused = server.send_raw(request.as_bytes(), false).unwrap();
    assert_eq!(refused.status, 503, "{}", refused.error_reason());
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.error_reason().contains("send-memory"));
    // The kernel sends this response from the page cache, so no copy is needed.
    let mut stream = server.connect();
    let plain = format!("GET {TARGET} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(plain.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let metrics = server.get_text("/metrics");
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    assert!(value("headwater_send_memory_refused_total") > Some(0));
    assert!(value("headwater_send_memory_bytes") > Some(0));
    assert_eq!(value("headwater_send_memory_limit_bytes"), Some(1 << 20));
    drop(open);
    // A connection that closes releases its part of the budget.
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while server.send_raw(request.as_bytes(), false).unwrap().status != 200 {
        assert!(std::time::Instant::now() < deadline, "still used up");
    }
}

/// Repeatedly permits one more byte on the first stream of each connection, until the server cuts a
/// slow connection.
fn drip_until_cut(server: &HeadwaterServer) {
    // Each connection holds a little less than `connection-send-buffer`. Together, the connections
    // exceed 80 % of the budget.
    let mut open = attack_over_h2c(server, 12);
    let grant = frame(8, 0, 1, &[0, 0, 0, 1]);
    let cut = |reason: &str| {
        let name = format!("headwater_connections_cut_total{{reason=\"{reason}\"}} ");
        let metrics = server.get_text("/metrics");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
        value.map_or(0, |value| value.parse::<u64>().unwrap())
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while cut("slow") == 0 {
        assert!(std::time::Instant::now() < deadline, "no stream was cut");
        for stream in &mut open {
            // Ignores errors, because the server may have cut this connection a moment ago.
            let _ = stream.write_all(&grant);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(cut("stalled"), 0);
}

/// The client permits one more byte about every 100 ms, so the stream never reaches the stall
/// timeout. The server measures the rate of the stream over 30 seconds.
#[test]
fn streams_below_the_minimum_rate_are_cut_while_memory_is_short() {
    let setup = AttackSetup::new();
    let flags = ["--stall-timeout", "600s"].map(str::to_owned);
    let origin = setup.start_origin(&flags);
    let mut edge = setup.start_edge(&origin, &flags);
    std::thread::scope(|scope| {
        scope.spawn(|| drip_until_cut(&origin));
        scope.spawn(|| drip_until_cut(&edge));
    });
    setup.assert_disk_hits(&mut edge);
}
