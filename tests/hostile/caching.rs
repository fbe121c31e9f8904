//! Tests whether the edge stores hostile responses of an origin (RFC 9111, RFC 9213).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::frames::StreamResult::Status;
use crate::frames::{self, DATA, END_HEADERS, HEADERS, PREFACE, SETTINGS};
use crate::targets::{AttackedEdges, TargetServer};

/// Method, path after the row's prefix, and an optional header field.
type RowRequest = (
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
);

/// A response of the origin, the consecutive requests of a client, and the expected results.
struct CachingRow {
    reason: &'static str,
    /// Header lines of the origin's response, and its body.
    response: (&'static str, &'static str),
    requests: &'static [RowRequest],
    statuses: &'static [u16],
    /// Expected number of requests that reach the origin.
    fetches: usize,
}

const GET: RowRequest = ("GET", "n", None);
const TWICE: &[RowRequest] = &[GET, GET];

/// Returns a row with two equal requests.
const fn twice(
    reason: &'static str,
    response: (&'static str, &'static str),
    fetches: usize,
) -> CachingRow {
    CachingRow {
        reason,
        response,
        requests: TWICE,
        statuses: &[200, 200],
        fetches,
    }
}

const fn row(
    reason: &'static str,
    response: (&'static str, &'static str),
    requests: &'static [RowRequest],
    statuses: &'static [u16],
    fetches: usize,
) -> CachingRow {
    CachingRow {
        reason,
        response,
        requests,
        statuses,
        fetches,
    }
}

const CHUNKS: &str = "2\r\nok\r\n0\r\n\r\n";
const STORED: (&str, &str) = ("Cache-Control: max-age=60\r\nContent-Length: 2", "ok");
const DATED: (&str, &str) = (
    "Cache-Control: max-age=60\r\nLast-Modified: Sat, 01 Jan 2000 00:00:00 GMT\r\nContent-Length: 2",
    "ok",
);

#[rustfmt::skip]
const ROWS: &[CachingRow] = &[
    twice("a lifetime", STORED, 1),
    twice("no lifetime", ("Content-Length: 2", "ok"), 2),
    twice("CDN-Cache-Control precedes Cache-Control", ("Cache-Control: no-store\r\nCDN-Cache-Control: max-age=10000\r\nContent-Length: 2", "ok"), 1),
    twice("a quoted number in CDN-Cache-Control is of the wrong type: the field is ignored", ("Cache-Control: no-store\r\nCDN-Cache-Control: max-age=\"10000\"\r\nContent-Length: 2", "ok"), 2),
    twice("a syntax error in CDN-Cache-Control: the field is ignored", ("Cache-Control: no-store\r\nCDN-Cache-Control: max-age=10000,\r\nContent-Length: 2", "ok"), 2),
    twice("chunks", ("Cache-Control: max-age=60\r\nTransfer-Encoding: chunked", CHUNKS), 1),
    row("a coding before the chunks", ("Cache-Control: max-age=60\r\nTransfer-Encoding: gzip, chunked", CHUNKS), TWICE, &[502, 502], 2),
    twice("a length beside the chunks: the chunks count", ("Cache-Control: max-age=60\r\nContent-Length: 12\r\nTransfer-Encoding: chunked", CHUNKS), 1),
    row("different lengths", ("Cache-Control: max-age=60\r\nContent-Length: 2\r\nContent-Length: 3", "ok!"), TWICE, &[502, 502], 2),
    twice("an Expires of another letter case", ("Expires: thu, 01 jan 2099 00:00:00 gmt\r\nContent-Length: 2", "ok"), 1),
    twice("an Expires of a wrong weekday", ("Expires: Mon, 01 Jan 2099 00:00:00 GMT\r\nContent-Length: 2", "ok"), 1),
    twice("an Expires on a day that does not exist has passed", ("Expires: Thu, 32 Jan 2099 00:00:00 GMT\r\nContent-Length: 2", "ok"), 2),
    row("If-Modified-Since of another letter case", DATED, &[GET, ("GET", "n", Some(("If-Modified-Since", "sat, 01 jan 2000 00:00:00 gmt")))], &[200, 304], 1),
    row("If-Modified-Since that is no date", DATED, &[GET, ("GET", "n", Some(("If-Modified-Since", "yesterday")))], &[200, 200], 1),
    row("an escape of an unreserved character", STORED, &[GET, ("GET", "%6e", None), ("GET", "%6E", None)], &[200, 200, 200], 1),
    row("an escape of a reserved character", STORED, &[("GET", "/", None), ("GET", "%2f", None)], &[200, 200], 2),
    row("a doubled slash is another path", STORED, &[GET, ("GET", "/n", None)], &[200, 200], 2),
    row("an unknown method invalidates", STORED, &[GET, ("BREW", "n", None), GET], &[200, 200, 200], 3),
    row("a cookie", STORED, &[("GET", "n", Some(("Cookie", "a=b"))), ("GET", "n", Some(("Cookie", "a=c"))), GET], &[200, 200, 200], 3),
    twice("a response that sets a cookie", ("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\nContent-Length: 2", "ok"), 2),
];

type RequestLines = Arc<Mutex<Vec<String>>>;

/// Starts an origin that closes the connection after each response. The number at the start of the
/// target selects the row whose response is sent.
fn start_origin() -> (SocketAddr, RequestLines) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let lines = RequestLines::default();
    let seen = lines.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let seen = seen.clone();
            std::thread::spawn(move || respond(stream, &seen));
        }
    });
    (address, lines)
}

fn respond(mut stream: TcpStream, seen: &RequestLines) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let line = String::from_utf8(head).ok()?.lines().next()?.to_owned();
    let number = line.split(['/', ' ']).nth(2)?.parse::<usize>();
    seen.lock().unwrap().push(line);
    let (fields, body) = ROWS.get(number.ok()?)?.response;
    let text = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).ok()
}

/// Sends the requests of a row, and describes the difference from the expected results.
fn check_row(
    target: &TargetServer,
    protocol: &str,
    number: usize,
    lines: &RequestLines,
) -> Option<String> {
    let row = &ROWS[number];
    let prefix = format!("/{number}/{}/{protocol}/", target.name.replace(' ', "-"));
    let mut statuses = Vec::new();
    for (method, path, field) in row.requests {
        let fields = Vec::from_iter(*field);
        statuses.push(target.request(protocol, method, &format!("{prefix}{path}"), &fields));
        while target.read_metric("headwater_cache_flights") > 0 {
            std::thread::yield_now();
        }
    }
    let lines = lines.lock().unwrap();
    let fetches = lines.iter().filter(|line| line.contains(&prefix)).count();
    let expected: Vec<_> = row.statuses.iter().copied().map(Status).collect();
    (statuses != expected || fetches != row.fetches).then(|| {
        let (name, reason) = (target.name, row.reason);
        format!("{name}, {protocol}: {reason}: {statuses:?}, {fetches} fetches")
    })
}

#[test]
fn hostile_responses_are_stored_only_as_they_permit() {
    let (origin, lines) = start_origin();
    let edges = AttackedEdges::start(origin, &["--cookies", "pass"]);
    let mut wrong = Vec::new();
    for target in &edges.servers {
        for protocol in ["http/1.1", "h2"] {
            let rows = 0..ROWS.len();
            wrong.extend(rows.filter_map(|number| check_row(target, protocol, number, &lines)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const BROKEN_UPLOADS: usize = 40;

/// By default, the edge takes an origin out of rotation after three consecutive failures.
#[test]
fn broken_uploads_do_not_count_against_an_origin() {
    let (origin, _) = start_origin();
    let edges = AttackedEdges::start(origin, &["--origin-retry-after", "60s"]);
    for target in &edges.servers {
        for _ in 0..BROKEN_UPLOADS {
            upload_broken_chunks(target);
            upload_less_than_declared(target);
        }
        for protocol in ["http/1.1", "h2"] {
            let found = target.request(protocol, "GET", "/0/n", &[]);
            assert_eq!(found, Status(200), "{}, {protocol}", target.name);
        }
        assert_eq!(target.read_metric("headwater_upstream_out_now"), 0);
    }
}

fn upload_broken_chunks(target: &TargetServer) {
    let mut stream = target.connect(b"http/1.1");
    let head = "POST /0/n HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream
        .write_all(format!("{head}3\r\nabc\r\nzz\r\n").as_bytes())
        .unwrap();
    stream.flush().unwrap();
    crate::targets::read_available(&mut stream);
}

/// HTTP/2 has no chunks. This upload is broken because it is shorter than its Content-Length.
fn upload_less_than_declared(target: &TargetServer) {
    let mut stream = target.connect(b"h2");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/0/n"),
        (":authority", "e"),
        ("content-length", "5"),
    ];
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| frames::encode_field(name, value))
        .collect();
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frames::encode_frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frames::encode_frame(HEADERS, END_HEADERS, 1, &block));
    bytes.extend(frames::encode_frame(DATA, frames::END_STREAM, 1, b"abc"));
    stream.write_all(&bytes).unwrap();
    stream.flush().unwrap();
    assert_ne!(frames::read_result(&mut stream), Status(200));
}
