//! The client against servers that answer, and misbehave, by script.

#[path = "../../tests/rate/head.rs"]
mod head;

use super::*;
use head::head;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server that lets `script` play every connection; it ends with its test.
fn server(script: impl Fn(TcpStream) + Send + Sync + 'static) -> (Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = at(listener.local_addr().unwrap());
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

fn at(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/")).unwrap()
}

/// A server that gives every request the same answer.
fn always(answer: impl Into<Vec<u8>>) -> (Url, Arc<AtomicUsize>) {
    let answer = answer.into();
    server(move |mut socket| {
        while head(&mut socket).is_some() {
            if socket.write_all(&answer).is_err() {
                return;
            }
        }
    })
}

/// A server that gives each connection one answer, and closes it.
fn once(answer: impl Into<Vec<u8>>) -> (Url, Arc<AtomicUsize>) {
    let answer = answer.into();
    server(move |mut socket| {
        head(&mut socket);
        let _ = socket.write_all(&answer);
    })
}

fn settings() -> Settings {
    Settings {
        timeout: Duration::from_secs(5),
        ..Settings::default()
    }
}

fn asks(settings: Settings, requests: &[Request]) -> Vec<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = Client::new(&Dialer::new(settings).unwrap());
        let mut outcomes = Vec::new();
        for request in requests {
            outcomes.push(client.get(request).await);
        }
        outcomes
    })
}

fn ask(request: Request) -> Outcome {
    asks(settings(), &[request]).remove(0)
}

#[test]
fn bodies_are_counted_kept_and_checked_in_every_framing() {
    let body: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let whole = |head: &str| [head.as_bytes(), &body].concat();
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(70_001) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend([chunk, b"\r\n"].concat());
    }
    chunked.extend(b"0\r\n\r\n");
    let mut digest = Digest::default();
    digest.update(&body);
    let check = Check {
        length: Some(body.len() as u64),
        sha256: Some(digest.finish()),
    };
    let interim = format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{length}");
    for (name, (url, _)) in [
        ("length", always(whole(&length))),
        ("interim", always(whole(&interim))),
        ("chunked", always(chunked)),
        ("close", once(whole("HTTP/1.1 200 OK\r\n\r\n"))),
    ] {
        let plain = Request::new(url);
        let kept = plain.clone().keep(1 << 20);
        let checked = Request {
            check: Some(check),
            ..plain.clone()
        };
        let wrong = Request {
            check: Some(Check {
                length: Some(1),
                sha256: None,
            }),
            ..plain.clone()
        };
        let asked = [
            plain.clone(),
            plain.clone(),
            kept,
            checked,
            wrong,
            plain.keep(10),
        ];
        let outcomes = asks(settings(), &asked);
        let faults: Vec<_> = outcomes.iter().map(|outcome| outcome.fault).collect();
        let expected = [
            None,
            None,
            None,
            None,
            Some(Fault::WrongLength),
            Some(Fault::TooLong),
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
fn connections_are_kept_and_made_anew_when_the_server_lets_go() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let (kept, kept_count) = always(answer);
    let (fickle, fickle_count) = once(answer);
    for (url, count, connections) in [(kept, kept_count, 1), (fickle, fickle_count, 3)] {
        let outcomes = asks(settings(), &vec![Request::new(url.clone()); 3]);
        assert!(outcomes.iter().all(Outcome::ok), "{outcomes:?}");
        assert_eq!(count.load(Ordering::SeqCst), connections);
        let each = Settings {
            keep_alive: false,
            ..settings()
        };
        assert!(
            asks(each, &vec![Request::new(url); 3])
                .iter()
                .all(Outcome::ok)
        );
        assert_eq!(count.load(Ordering::SeqCst), connections + 3);
    }
}

// One list of servers and what each is called.
#[allow(clippy::too_many_lines)]
#[test]
fn misbehaviour_has_its_kind() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let reset = server(|mut socket| {
        head(&mut socket);
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n123")
            .unwrap();
        let linger = Some(Duration::ZERO);
        socket2::SockRef::from(&socket).set_linger(linger).unwrap();
    });
    let endless = server(|mut socket| {
        head(&mut socket);
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        while socket.write_all(&[0; 65536]).is_ok() {}
    });
    let silent = server(|mut socket| while head(&mut socket).is_some() {});
    let stuck = server(|mut socket| {
        head(&mut socket);
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1")
            .unwrap();
        head(&mut socket);
    });
    let half = server(|mut socket| {
        head(&mut socket);
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
    });
    let impatient = Settings {
        timeout: Duration::from_millis(300),
        body_max: 1 << 20,
        ..settings()
    };
    for (name, (url, _), expected) in [
        (
            "cut",
            once(format!("{ok}Content-Length: 9\r\n\r\n12345")),
            Fault::Truncated,
        ),
        (
            "cut chunk",
            once(format!("{ok}Transfer-Encoding: chunked\r\n\r\n9\r\n12")),
            Fault::Truncated,
        ),
        (
            "bad chunk",
            once(format!("{ok}Transfer-Encoding: chunked\r\n\r\nxyz")),
            Fault::Chunk,
        ),
        ("nonsense", once("hello there\r\n\r\n"), Fault::Head),
        ("nothing", once(""), Fault::Closed),
        ("half a head", half, Fault::Closed),
        (
            "long head",
            once(format!("{ok}X: {}", "y".repeat(100_000))),
            Fault::HeadTooLong,
        ),
        (
            "too long",
            once(format!("{ok}Content-Length: 9999999\r\n\r\n")),
            Fault::TooLong,
        ),
        (
            "interim without end",
            once("HTTP/1.1 100 Go on\r\n\r\n".repeat(100)),
            Fault::Head,
        ),
        ("reset", reset, Fault::Reset),
        ("endless", endless, Fault::TooLong),
        ("silent", silent, Fault::Timeout),
        ("stuck", stuck, Fault::BodyTimeout),
        (
            "circle",
            always("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
            Fault::Redirects,
        ),
        (
            "scheme",
            (Url::parse("ftp://127.0.0.1/").unwrap(), Arc::default()),
            Fault::Url,
        ),
        (
            "name",
            (
                Url::parse("http://no-such-host.invalid/").unwrap(),
                Arc::default(),
            ),
            Fault::Dns,
        ),
    ] {
        let settings = match expected {
            Fault::Timeout | Fault::BodyTimeout | Fault::TooLong => impatient.clone(),
            _ => settings(),
        };
        let outcome = asks(settings, &[Request::new(url)]).remove(0);
        assert_eq!(outcome.fault, Some(expected), "{name}: {outcome:?}");
    }
}

#[test]
fn nobody_there_is_refused() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let outcome = ask(Request::new(at(address)));
    assert_eq!(
        (outcome.fault, outcome.sent, outcome.status),
        (Some(Fault::Refused), None, 0)
    );
}

#[test]
fn redirects_are_followed() {
    let (url, _) = server(|mut socket| {
        while let Some(text) = head(&mut socket) {
            let answer = match text.split_whitespace().nth(1) {
                Some("/a/b") => {
                    "HTTP/1.1 301 Moved\r\nLocation: ../c?d\r\nContent-Length: 0\r\n\r\n"
                }
                Some("/c?d") => "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.",
                _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            };
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    let outcome = ask(Request::new(url.join("/a/b").unwrap()));
    assert!(outcome.ok(), "{outcome:?}");
    assert_eq!((outcome.url.path(), outcome.redirects), ("/c", 1));
}

#[test]
fn requests_say_what_they_are_told() {
    let (url, _) = server(|mut socket| {
        while let Some(text) = head(&mut socket) {
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut request = Request::new(url.join("/p?q=1").unwrap())
        .range(5..10)
        .keep(1000);
    assert!(request.header("X-One", "1"));
    assert!(!request.header("X-Two", "a\r\nb"));
    let text = String::from_utf8(ask(request).body).unwrap();
    let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let expected = format!(
        "GET /p?q=1 HTTP/1.1\r\nHost: {host}\r\nrange: bytes=5-9\r\nx-one: 1\r\n\
         User-Agent: headwater-load/{}\r\nAccept: */*\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(text, expected);
}
