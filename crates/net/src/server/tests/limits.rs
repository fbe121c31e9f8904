use std::time::Duration;

use super::support::*;
use crate::server::Limits;

const SHORT: Duration = Duration::from_millis(40);

pub fn cut_count(server: &TestServer, reason: &str) -> Option<String> {
    let name = format!("headwater_connections_cut_total{{reason=\"{reason}\"}} ");
    let text = server.metrics.encode_text().unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix(&name).map(str::to_owned))
}

#[test]
fn a_header_that_never_ends_is_cut() {
    let server = start_server(Limits {
        header_timeout: SHORT,
        ..Limits::default()
    });
    let mut client = server.connect();
    assert_eq!(client.get("/full/5").status, 200);
    client.send_text("GET /full/5 HTTP/1.1\r\nHost:");
    assert_eq!(client.read_rest(), b"");
    assert_eq!(cut_count(&server, "header").as_deref(), Some("1"));
    let mut silent = server.connect();
    assert_eq!(
        silent.read_rest(),
        b"",
        "so is a connection that sends nothing"
    );
}

/// Regression: the worker tried to accept again and again, and enforced no timeout meanwhile.
///
/// The limit on descriptors applies to the whole process, so the test runs again in a child process.
#[test]
fn timeouts_are_enforced_while_no_descriptor_is_left() {
    const INSIDE: &str = "HEADWATER_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(INSIDE).is_none() {
        let name = "server::tests::limits::timeouts_are_enforced_while_no_descriptor_is_left";
        let mut inside = std::process::Command::new(std::env::current_exe().unwrap());
        inside
            .args(["--exact", name, "--nocapture"])
            .env(INSIDE, "1");
        let output = inside.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{output:?}"
        );
        return;
    }
    let limits = Limits {
        header_timeout: SHORT,
        ..Limits::default()
    };
    let listen = crate::ServerOptions {
        limits,
        ..crate::ServerOptions::default()
    };
    let server = start_with_workers(1, listen);
    let mut client = server.connect();
    assert_eq!(client.get("/full/5").status, 200);
    let waiting = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    forbid_new_descriptors();
    waiting.connect(&server.address.into()).unwrap();
    client.send_text("GET /full/5 HTTP/1.1\r\nHost:");
    assert_eq!(client.read_rest(), b"");
    assert_eq!(cut_count(&server, "header").as_deref(), Some("1"));
}

/// Lowers the limit on descriptors to the number of the next descriptor.
fn forbid_new_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    use std::os::fd::AsRawFd;
    let next = std::fs::File::open("/dev/null").unwrap().as_raw_fd();
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = u64::try_from(next).ok();
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(std::fs::File::open("/dev/null").is_err());
}

#[test]
fn an_idle_connection_is_closed() {
    let server = start_server(Limits {
        idle_timeout: SHORT,
        ..Limits::default()
    });
    let mut client = server.connect();
    assert_eq!(client.get("/full/5").status, 200);
    assert_eq!(client.read_rest(), b"");
    assert_eq!(cut_count(&server, "header").as_deref(), Some("0"));
}

#[test]
fn a_client_that_reads_nothing_is_cut_and_a_slow_handler_is_not() {
    let limits = Limits {
        stall_timeout: SHORT,
        header_timeout: SHORT,
        idle_timeout: SHORT,
        ..Limits::default()
    };
    let server = start_server(limits);
    let mut waiting = server.connect();
    waiting.send_text("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut client = server.connect();
    // The response is longer than the buffers of the sockets.
    client.send_text("GET /pieces/30000000/65536 HTTP/1.1\r\nHost: x\r\n\r\n");
    while cut_count(&server, "stalled").is_none() {
        std::thread::yield_now();
    }
    assert!(client.read_rest().len() < 30_000_000);
    server.gate.open.notify_one();
    assert_eq!(waiting.read_response().body, b"through");
}

#[test]
fn headers_too_long_or_too_many_are_refused_with_an_answer() {
    let server = start_server(Limits {
        header_bytes_max: 16_384,
        ..Limits::default()
    });
    let cases = [
        (
            format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(9000)),
            414,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n",
                "b".repeat(1_000_000)
            ),
            431,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
                "A: b\r\n".repeat(1000)
            ),
            431,
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(90)),
            404,
        ),
    ];
    for (request, status) in cases {
        let mut client = server.connect();
        client.send_text(&request);
        assert_eq!(client.read_head().status, status, "{}", &request[..40]);
    }
}

#[test]
fn a_16_kb_target_is_refused_by_default() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    let response = client.get(&format!("/{}", "a".repeat(16_384)));
    assert_eq!(response.status, 414);
    let reason = response.header("headwater-error").unwrap();
    assert_eq!(
        reason,
        "client; the target has 16385 bytes, the limit is 8192"
    );
}

#[test]
fn a_connection_above_the_limit_gets_503() {
    let server = start_server(Limits {
        connections_max: 2,
        ..Limits::default()
    });
    let mut held = [server.connect(), server.connect()];
    for client in &mut held {
        assert_eq!(client.get("/full/1").status, 200);
    }
    let mut refused = server.connect();
    assert_eq!(refused.read_head().status, 503);
    assert!(refused.read_rest().is_empty());
    drop(held);
    // The server needs some time to notice that the clients have disconnected.
    while server.connect().get_or_refused("/full/1") != 200 {
        std::thread::yield_now();
    }
}

impl TestClient {
    fn get_or_refused(&mut self, path: &str) -> u16 {
        use std::io::Write;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        // Ignores an error, because the server may already have refused and closed the connection.
        let _ = self.stream.get_mut().write_all(request.as_bytes());
        self.read_head().status
    }
}

/// Requests one body on each of `streams` HTTP/2 streams. Each stream has a flow-control window of
/// `window` bytes.
pub fn request_with_window(server: &TestServer, streams: u32, window: u8) -> std::net::TcpStream {
    use std::io::Write;
    let mut stream = connect_with_window(server, window);
    for n in 0..streams {
        let request = http2_request_frame(2 * n + 1, "GET", "/pieces/1000000/100");
        stream.write_all(&request).unwrap();
    }
    stream
}

/// Opens an HTTP/2 connection whose streams have a flow-control window of `window` bytes.
pub fn connect_with_window(server: &TestServer, window: u8) -> std::net::TcpStream {
    use std::io::Write;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(http2_frame(4, 0, 0, &[0, 4, 0, 0, 0, window]));
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&bytes).unwrap();
    stream
}

/// Returns the frame of a request without a body.
pub fn http2_request_frame(stream: u32, method: &str, path: &str) -> Vec<u8> {
    let mut head = vec![0x86];
    // Literal fields with the indexed names `:method`, `:path` and `:authority` (RFC 7541).
    for (name, value) in [(0x02, method), (0x04, path), (0x01, "x")] {
        head.extend([name, u8::try_from(value.len()).unwrap()]);
        head.extend(value.as_bytes());
    }
    http2_frame(1, 0x5, stream, &head)
}

fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, u8::try_from(payload.len()).unwrap(), kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[test]
fn a_stream_below_the_minimum_rate_is_cut_while_memory_is_short() {
    use std::io::Write;
    let min_rate = crate::MinRate {
        bytes_per_s: 1024,
        window: Duration::from_millis(100),
    };
    let limits = Limits {
        min_rate,
        ..Limits::default()
    };
    let server = start_as(crate::ServerOptions {
        limits,
        send_memory_bytes: Some(64 << 10),
        ..crate::ServerOptions::default()
    });
    let mut stream = request_with_window(&server, 8, 1);
    let cut = "headwater_connections_cut_total{reason=\"slow\"} 1";
    // The client extends the window of the first stream byte by byte, so this stream never stalls.
    let grant = [0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    while !server.metrics.encode_text().unwrap().contains(cut) {
        // Ignores an error, because the server may already have cut the connection.
        let _ = stream.write_all(&grant);
        std::thread::yield_now();
    }
    while !server
        .metrics
        .encode_text()
        .unwrap()
        .contains("headwater_send_memory_bytes 0\n")
    {
        std::thread::yield_now();
    }
}

#[test]
fn requests_above_the_rate_of_an_address_get_429() {
    let server = start_server(Limits {
        requests_per_address_max: 1,
        request_burst: Duration::from_secs(3),
        ..Limits::default()
    });
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/full/5").status, 200);
    }
    let response = loop {
        let response = client.get("/full/5");
        if response.status == 429 {
            break response;
        }
    };
    assert_eq!(response.header("retry-after"), Some("1"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("connection"), None, "it stays open");
    let reason = response.header("headwater-error").unwrap();
    assert_eq!(
        reason,
        "client; more than 1 requests per second from one address"
    );
    let text = server.metrics.encode_text().unwrap();
    let line = "headwater_requests_refused_total{limit=\"address\"} 1";
    assert!(text.contains(line), "{text}");
}

#[test]
fn requests_above_the_rate_of_a_network_get_429() {
    let trust = crate::TrustedNetworks {
        forwarded: vec![crate::Cidr::parse_network("127.0.0.0/8").unwrap()],
        ..crate::TrustedNetworks::default()
    };
    let server = start_as(crate::ServerOptions {
        limits: Limits {
            requests_per_network_max: 1,
            request_burst: Duration::from_secs(60),
            ..Limits::default()
        },
        trust,
        ..crate::ServerOptions::default()
    });
    let mut client = server.connect();
    let mut status_for = |line: &str| {
        client.send_text(&format!("GET /full/5 HTTP/1.1\r\nHost: x\r\n{line}\r\n"));
        client.read_response().status
    };
    let statuses: Vec<u16> = (0..200)
        .map(|n| status_for(&format!("X-Forwarded-For: 192.0.2.{n}\r\n")))
        .collect();
    assert!(statuses[..60].iter().all(|status| *status == 200));
    assert!(statuses.contains(&429));
    assert_eq!(status_for("X-Forwarded-For: 198.51.100.1\r\n"), 200);
    // The proxy's own address represents many clients, so the server does not limit its rate.
    assert!((0..200).all(|_| status_for("") == 200));
}
