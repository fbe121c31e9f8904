//! Tests hostile HTTP/1.1 requests: framing, heads and targets (RFC 9112).

use crate::targets::{AttackedServers, ByteStream, read_available};

/// A request, and the expected statuses of `serve` and of the edge.
pub struct HostileRequest {
    pub text: String,
    pub serve: u16,
    pub edge: u16,
    pub reason: &'static str,
}

/// Bytes that follow each request with a body. No server may parse these bytes as a request.
const HIDDEN: &str = "GET /evil HTTP/1.1\r\nHost: evil\r\n\r\n";

/// Requests whose end is ambiguous, so that two parsers could disagree. A row contains header
/// fields, the start of the body, the expected status and the reason.
#[rustfmt::skip]
const FRAMINGS: &[(&str, &str, u16, &str)] = &[
    ("Content-Length: 41\r\nTransfer-Encoding: chunked", "0\r\n\r\n", 400, "two lengths"),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n", 400, "two lengths, other order"),
    ("Content-Length: 0\r\nTransfer-Encoding: chunked", "0\r\n\r\n", 400, "a length of zero is one, too"),
    ("Transfer-Encoding: gzip, chunked", "0\r\n\r\n", 501, "a coding that is not implemented"),
    ("Transfer-Encoding: identity, chunked", "0\r\n\r\n", 501, "a coding that no longer exists"),
    ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", "0\r\n\r\n", 501, "codings in two fields"),
    ("Transfer-Encoding: chunked, chunked", "0\r\n\r\n", 501, "chunks within chunks"),
    ("Transfer-Encoding: xchunked", "0\r\n\r\n", 400, "the last coding is not chunked"),
    ("Transfer-Encoding: chunked, identity", "0\r\n\r\n", 400, "the last coding is not chunked"),
    ("Transfer-Encoding: \"chunked\"", "0\r\n\r\n", 400, "codings are tokens"),
    ("Transfer-Encoding: \u{b}chunked", "0\r\n\r\n", 400, "a vertical tab is no white space"),
    ("Transfer-Encoding : chunked", "0\r\n\r\n", 400, "white space before the colon"),
    ("X: y\r\n Transfer-Encoding: chunked", "0\r\n\r\n", 400, "a continued line"),
    ("X: y\rTransfer-Encoding: chunked", "0\r\n\r\n", 400, "a line break of CR alone"),
    ("Content-Length: 0\r\nContent-Length: 36", "", 400, "different lengths"),
    ("Content-Length: 0, 36", "", 400, "a list of lengths"),
    ("Content-Length: +0", "", 400, "a sign"),
    ("Content-Length: -1", "", 400, "a negative length"),
    ("Content-Length: 0x24", "", 400, "not decimal"),
    ("Content-Length: 1 0", "", 400, "two numbers"),
    ("Content-Length: ", "", 400, "no number"),
    ("Content-Length: 18446744073709551652", "", 400, "a length beyond 2^64"),
    ("Content-Length : 0", "", 400, "white space before the colon"),
];

/// Invalid bodies after a valid head. `serve` does not read the bodies, and responds with 405.
#[rustfmt::skip]
const CHUNKS: &[(&str, &str)] = &[
    ("-1\r\n\r\n", "a negative size"),
    ("0x0\r\n\r\n", "not hexadecimal"),
    ("FFFFFFFFFFFFFFFF1\r\n\r\n", "a size beyond 2^64"),
    ("1\r\nxy0\r\n\r\n", "a chunk longer than its size"),
    ("zz\r\n", "no size"),
];

/// Invalid heads.
#[rustfmt::skip]
const HEADS: &[(&str, u16, &str)] = &[
    ("GET /a\0b HTTP/1.1\r\nHost: e\r\n\r\n", 400, "NUL in the target"),
    ("GET /a\r\nX: y HTTP/1.1\r\nHost: e\r\n\r\n", 400, "a line break in the target"),
    ("GET /a HTTP/1.1\r\nHost: e\r\nX: a\0b\r\n\r\n", 400, "NUL in a value"),
    ("GET /a HTTP/1.1\r\nHost: e\r\nX: a\rSet-Cookie: b\r\n\r\n", 400, "CR in a value"),
    ("GET /a HTTP/1.1\r\nHost: e\r\nX\0Y: a\r\n\r\n", 400, "NUL in a name"),
    ("GET /a HTTP/1.1\r\nHost: e\r\nX y: a\r\n\r\n", 400, "a space in a name"),
    ("GET /a HTTP/1.1\r\nHost: e\r\n: a\r\n\r\n", 400, "no name"),
    ("GET /a HTTP/1.1\r\nHost: e\r\nX\r\n\r\n", 400, "no colon"),
    ("GET /a HTTP/1.1\r\n Host: e\r\n\r\n", 400, "a space before the first name"),
    ("GET /a HTTP/1.1\r\n\r\n", 400, "no Host"),
    ("GET http://e/a HTTP/1.1\r\n\r\n", 400, "no Host beside an absolute target"),
    ("GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "two Hosts"),
    ("GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "a path in the Host"),
    ("GET /a HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "a space in the Host"),
    ("GET a HTTP/1.1\r\nHost: e\r\n\r\n", 400, "a target that is no path"),
    ("POST /a HTTP/1.0\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0 has no chunks"),
    ("GET /a HTTP/9.9\r\nHost: e\r\n\r\n", 400, "an unknown version"),
    ("GET /a http/1.1\r\nHost: e\r\n\r\n", 400, "a version in lower case"),
    ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\r\n\r\n", 400, "a TLS handshake"),
    ("PRI * HTTP/2.0\r\n\r\nnot two", 400, "a broken HTTP/2 preface"),
    ("TRACE /a HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n", 405, "a method that returns the request"),
];

/// Targets outside of the served folder, with the status of `serve`. The edge forwards these
/// targets, because only an origin can judge them.
const TRAVERSALS: &[(&str, u16)] = &[
    ("/../secret", 400),
    ("/%2e%2e/secret", 400),
    ("/..%2fsecret", 400),
    ("/films/../../secret", 400),
    ("/.%2e/%2e./secret", 400),
    ("/..%5csecret", 404),
    ("/secret%00.mp4", 400),
    ("//secret", 400),
    ("/%c0%ae%c0%ae/secret", 400),
    ("/%252e%252e/secret", 404),
];

/// Targets that are absolute URLs, with the status of `serve`. HTTP/2 cannot transmit such targets.
const URLS: &[(&str, u16, &str)] = &[
    ("http://e/film.bin", 200, "a URL"),
    ("https://e/film.bin", 200, "a URL of another scheme"),
    ("http://e//film.bin", 400, "a URL with an empty segment"),
    (
        "https://e//secret",
        400,
        "a URL of another scheme with an empty segment",
    ),
];

/// Returns a request to which both servers respond with the same status.
fn same(text: String, status: u16, reason: &'static str) -> HostileRequest {
    HostileRequest {
        text,
        serve: status,
        edge: status,
        reason,
    }
}

pub fn list_requests() -> Vec<HostileRequest> {
    let mut requests = Vec::new();
    for (fields, start, status, reason) in FRAMINGS {
        for method in ["POST", "GET"] {
            let head = format!("{method} /a HTTP/1.1\r\nHost: e\r\n{fields}\r\n\r\n");
            requests.push(same(format!("{head}{start}{HIDDEN}"), *status, reason));
        }
    }
    for (chunks, reason) in CHUNKS {
        let head = "POST /a HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n";
        requests.push(HostileRequest {
            text: format!("{head}{chunks}{HIDDEN}"),
            serve: 405,
            edge: 400,
            reason,
        });
    }
    for (text, status, reason) in HEADS {
        requests.push(same((*text).to_owned(), *status, reason));
    }
    let outside = TRAVERSALS
        .iter()
        .map(|(target, status)| (*target, *status, "a path outside of the folder"));
    for (target, status, reason) in outside.chain(URLS.iter().copied()) {
        requests.push(HostileRequest {
            text: format!("GET {target} HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n"),
            serve: status,
            edge: 200,
            reason,
        });
    }
    requests.push(HostileRequest {
        text: "CONNECT e:80 HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n".into(),
        serve: 400,
        edge: 405,
        reason: "a method that opens a tunnel",
    });
    requests.extend(list_oversized_requests());
    requests
}

/// Returns requests at and above the limits of targets and fields.
fn list_oversized_requests() -> Vec<HostileRequest> {
    let get = |target: &str, fields: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: e\r\nConnection: close\r\n{fields}\r\n")
    };
    let long = "a".repeat(70_000);
    let many: String = (0..2000).map(|n| format!("X-{n}: y\r\n")).collect();
    let ranges = vec!["0-0"; 1000].join(",");
    vec![
        same(
            get(&format!("/{}", &long[..9000]), ""),
            414,
            "a target above the limit",
        ),
        same(
            get("/film.bin", &format!("X: {long}\r\n")),
            431,
            "a header above the limit",
        ),
        same(
            get("/film.bin", &format!("{long}: y\r\n")),
            431,
            "a name above the limit",
        ),
        same(get("/film.bin", &many), 431, "too many fields"),
        same(
            get("/film.bin", &format!("Range: bytes={ranges}\r\n")),
            200,
            "a thousand ranges",
        ),
        same(
            get("/film.bin", "Upgrade: websocket\r\n"),
            200,
            "an upgrade is not offered",
        ),
    ]
}

#[test]
fn hostile_http1_requests_get_the_expected_status() {
    let attacked = AttackedServers::start(&["--header-timeout", "300ms"]);
    let mut wrong = Vec::new();
    for target in &attacked.servers {
        for request in list_requests() {
            let expected = if target.is_edge {
                request.edge
            } else {
                request.serve
            };
            let response = send_request(&mut *target.connect(b"http/1.1"), &request.text);
            let status = parse_status(&response);
            let is_single = response.matches("HTTP/1.1 ").count() <= 1;
            if status != Some(expected) || !is_single {
                wrong.push(format!(
                    "{}: {}: {:.100?}: expected {expected}: {response:.100?}",
                    target.name, request.reason, request.text
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    attacked.assert_unharmed();
}

/// Writes a request, and returns all bytes that arrive until the server closes the connection.
pub fn send_request(stream: &mut dyn ByteStream, text: &str) -> String {
    // Ignores errors, because the server may refuse the request and close the connection before it
    // has read everything.
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
    read_available(stream)
}

pub fn parse_status(response: &str) -> Option<u16> {
    response.split(' ').nth(1)?.parse().ok()
}
