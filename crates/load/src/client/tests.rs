//! Tests the client against servers with scripted responses.

#[path = "../../tests/rate/head.rs"]
mod head;
mod redirects;
mod reuse;

use super::*;
use head::head;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Starts a server that runs `script` on every connection until the test ends.
fn start_server(script: impl Fn(TcpStream) + Send + Sync + 'static) -> (Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = url_of(listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, script) = (count.clone(), Arc::new(script));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let (socket, script) = (socket.unwrap(), script.clone());
            std::thread::spawn(move || script(socket));
        }
    });
    (url, count)
}

fn url_of(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/")).unwrap()
}

/// Starts a server that sends the same response to every request.
fn always_respond(response: impl Into<Vec<u8>>) -> (Url, Arc<AtomicUsize>) {
    let response = response.into();
    start_server(move |mut socket| {
        while head(&mut socket).is_some() {
            if socket.write_all(&response).is_err() {
                return;
            }
        }
    })
}

/// Starts a server that sends one response on each connection, and then closes the connection.
fn respond_once(response: impl Into<Vec<u8>>) -> (Url, Arc<AtomicUsize>) {
    let response = response.into();
    start_server(move |mut socket| {
        head(&mut socket);
        let _ = socket.write_all(&response);
    })
}

fn test_settings() -> ClientSettings {
    ClientSettings {
        timeout: Duration::from_secs(5),
        ..ClientSettings::default()
    }
}

fn send_all(settings: ClientSettings, requests: &[ClientRequest]) -> Vec<RequestOutcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = HttpClient::new(&Dialer::new(settings).unwrap());
        let mut outcomes = Vec::new();
        for request in requests {
            outcomes.push(client.execute_request(request).await);
        }
        outcomes
    })
}

fn send_one(request: ClientRequest) -> RequestOutcome {
    send_all(test_settings(), &[request]).remove(0)
}

#[test]
fn bodies_are_counted_stored_and_checked_in_every_framing() {
    let body: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let whole = |head: &str| [head.as_bytes(), &body].concat();
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(70_001) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend([chunk, b"\r\n"].concat());
    }
    chunked.extend(b"0\r\n\r\n");
    let mut digest = BodyDigest::default();
    digest.hash_bytes(&body);
    let check = ExpectedBody {
        length: Some(body.len() as u64),
        sha256: Some(digest.into_sha256()),
    };
    let interim = format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{length}");
    for (name, (url, _)) in [
        ("length", always_respond(whole(&length))),
        ("interim", always_respond(whole(&interim))),
        ("chunked", always_respond(chunked)),
        ("close", respond_once(whole("HTTP/1.1 200 OK\r\n\r\n"))),
    ] {
        let plain = ClientRequest::new(url);
        let kept = plain.clone().keep_body(1 << 20);
        let checked = ClientRequest {
            check: Some(check),
            ..plain.clone()
        };
        let wrong = ClientRequest {
            check: Some(ExpectedBody {
                length: Some(1),
                sha256: None,
            }),
            ..plain.clone()
        };
        let requested = [
            plain.clone(),
            plain.clone(),
            kept,
            checked,
            wrong,
            plain.keep_body(10),
        ];
        let outcomes = send_all(test_settings(), &requested);
        let faults: Vec<_> = outcomes.iter().map(|outcome| outcome.fault).collect();
        let expected = [
            None,
            None,
            None,
            None,
            Some(FailureKind::WrongLength),
            Some(FailureKind::TooLong),
        ];
        assert_eq!(faults, expected, "{name}");
        for outcome in &outcomes[..5] {
            assert_eq!(
                (outcome.status, outcome.body_bytes),
                (200, body.len() as u64),
                "{name}"
            );
            let (sent, first) = (outcome.sent.unwrap(), outcome.first_byte.unwrap());
            assert!(outcome.due <= sent && sent <= first && first <= outcome.last_byte);
        }
        assert!(outcomes[0].body.is_empty(), "{name}");
        assert_eq!(outcomes[2].body, body, "{name}");
    }
}

#[test]
fn idle_connections_are_reused_and_replaced_when_closed() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let (kept, kept_count) = always_respond(response);
    let (fickle, fickle_count) = respond_once(response);
    for (url, count, connections) in [(kept, kept_count, 1), (fickle, fickle_count, 3)] {
        let outcomes = send_all(test_settings(), &vec![ClientRequest::new(url.clone()); 3]);
        assert!(
            outcomes.iter().all(RequestOutcome::is_success),
            "{outcomes:?}"
        );
        assert_eq!(count.load(Ordering::SeqCst), connections);
        let each = ClientSettings {
            keep_alive: false,
            ..test_settings()
        };
        assert!(
            send_all(each, &vec![ClientRequest::new(url); 3])
                .iter()
                .all(RequestOutcome::is_success)
        );
        assert_eq!(count.load(Ordering::SeqCst), connections + 3);
    }
}

/// Regression: bytes that the kernel discarded were not counted if the response was cut.
#[test]
fn a_cut_body_is_counted() {
    let mut response = b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n".to_vec();
    response.resize(response.len() + 700_000, 0);
    let (url, _) = respond_once(response);
    let outcome = &send_all(test_settings(), &[ClientRequest::new(url)])[0];
    assert_eq!(
        (outcome.fault, outcome.status, outcome.body_bytes),
        (Some(FailureKind::Truncated), 200, 700_000)
    );
}

/// Regression: a timeout discarded the status and the number of bytes.
#[test]
fn a_body_that_times_out_is_counted() {
    let (url, _) = start_server(|mut socket| {
        head(&mut socket);
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234")
            .unwrap();
        head(&mut socket);
    });
    let settings = ClientSettings {
        timeout: Duration::from_millis(500),
        ..test_settings()
    };
    let outcome = &send_all(settings, &[ClientRequest::new(url)])[0];
    assert_eq!(
        (outcome.fault, outcome.status, outcome.body_bytes),
        (Some(FailureKind::BodyTimeout), 200, 4)
    );
}

// The function is long because it lists all servers with their expected failure kinds.
#[allow(clippy::too_many_lines)]
#[test]
fn each_misbehaviour_has_its_failure_kind() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let reset = start_server(|mut socket| {
        head(&mut socket);
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n123")
            .unwrap();
        let linger = Some(Duration::ZERO);
        socket2::SockRef::from(&socket).set_linger(linger).unwrap();
    });
    let endless = start_server(|mut socket| {
        head(&mut socket);
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        while socket.write_all(&[0; 65536]).is_ok() {}
    });
    let silent = start_server(|mut socket| while head(&mut socket).is_some() {});
    let stuck = start_server(|mut socket| {
        head(&mut socket);
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1")
            .unwrap();
        head(&mut socket);
    });
    let half = start_server(|mut socket| {
        head(&mut socket);
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
    });
    let impatient = ClientSettings {
        timeout: Duration::from_millis(300),
        body_max: 1 << 20,
        ..test_settings()
    };
    for (name, (url, _), expected) in [
        (
            "cut",
            respond_once(format!("{ok}Content-Length: 9\r\n\r\n12345")),
            FailureKind::Truncated,
        ),
        (
            "cut chunk",
            respond_once(format!("{ok}Transfer-Encoding: chunked\r\n\r\n9\r\n12")),
            FailureKind::Truncated,
        ),
        (
            "bad chunk",
            respond_once(format!("{ok}Transfer-Encoding: chunked\r\n\r\nxyz")),
            FailureKind::Chunk,
        ),
        (
            "nonsense",
            respond_once("hello there\r\n\r\n"),
            FailureKind::Head,
        ),
        ("nothing", respond_once(""), FailureKind::Closed),
        ("half a head", half, FailureKind::Closed),
        (
            "long head",
            respond_once(format!("{ok}X: {}", "y".repeat(100_000))),
            FailureKind::HeadTooLong,
        ),
        (
            "too long",
            respond_once(format!("{ok}Content-Length: 9999999\r\n\r\n")),
            FailureKind::TooLong,
        ),
        (
            "interim without end",
            respond_once("HTTP/1.1 100 Go on\r\n\r\n".repeat(100)),
            FailureKind::Head,
        ),
        ("reset", reset, FailureKind::Reset),
        ("endless", endless, FailureKind::TooLong),
        ("silent", silent, FailureKind::Timeout),
        ("stuck", stuck, FailureKind::BodyTimeout),
        (
            "circle",
            always_respond("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
            FailureKind::Redirects,
        ),
        (
            "scheme",
            (Url::parse("ftp://127.0.0.1/").unwrap(), Arc::default()),
            FailureKind::Url,
        ),
        (
            "name",
            (
                Url::parse("http://no-such-host.invalid/").unwrap(),
                Arc::default(),
            ),
            FailureKind::Dns,
        ),
    ] {
        let settings = match expected {
            FailureKind::Timeout | FailureKind::BodyTimeout | FailureKind::TooLong => {
                impatient.clone()
            }
            _ => test_settings(),
        };
        let outcome = send_all(settings, &[ClientRequest::new(url)]).remove(0);
        assert_eq!(outcome.fault, Some(expected), "{name}: {outcome:?}");
    }
}

#[test]
fn a_closed_port_is_reported_as_refused() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let outcome = send_one(ClientRequest::new(url_of(address)));
    assert_eq!(
        (outcome.fault, outcome.sent, outcome.status),
        (Some(FailureKind::Refused), None, 0)
    );
}

#[test]
fn redirects_are_followed() {
    let (url, _) = start_server(|mut socket| {
        while let Some(text) = head(&mut socket) {
            let response = match text.split_whitespace().nth(1) {
                Some("/a/b") => {
                    "HTTP/1.1 301 Moved\r\nLocation: ../c?d\r\nContent-Length: 0\r\n\r\n"
                }
                Some("/c?d") => "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.",
                _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            };
            socket.write_all(response.as_bytes()).unwrap();
        }
    });
    let outcome = send_one(ClientRequest::new(url.join("/a/b").unwrap()));
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!((outcome.url.path(), outcome.redirects), ("/c", 1));
}

#[test]
fn requests_contain_the_given_fields() {
    let (url, _) = start_server(|mut socket| {
        while let Some(text) = head(&mut socket) {
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            socket.write_all(response.as_bytes()).unwrap();
        }
    });
    let mut request = ClientRequest::new(url.join("/p?q=1").unwrap())
        .with_range(5..10)
        .keep_body(1000);
    assert!(request.add_header("X-One", "1"));
    assert!(!request.add_header("X-Two", "a\r\nb"));
    let text = String::from_utf8(send_one(request).body).unwrap();
    let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let expected = format!(
        "GET /p?q=1 HTTP/1.1\r\nHost: {host}\r\nrange: bytes=5-9\r\nx-one: 1\r\n\
         User-Agent: headwater-load/{}\r\nAccept: */*\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(text, expected);
}
