//! An HTTP server that responds correctly or with an injected fault.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A fault in one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Sends 200 and the whole object, whatever range was requested.
    NoRange,
    /// Sends 206 with a Content-Range that differs from the requested range.
    OtherRange,
    /// Sends 206 without a Content-Range.
    NoContentRange,
    /// Closes the connection after this many bytes of the body.
    Cut(usize),
    /// Stalls after this many bytes of the body.
    Stall(usize),
    /// Sends a chunked body that ends correctly but is shorter than the range.
    Short,
    /// Sends a chunked body that is longer than the range.
    Long,
    /// Stalls after one byte of the head.
    NoHead,
    /// Sends one byte of the body every 50 ms.
    Loris,
    /// Sends this status.
    Status(u16),
    /// Closes the connection without a response.
    Close,
    /// Redirects to another path on the same server, which returns the same object.
    Redirect,
    /// Redirects to another server.
    Elsewhere,
    /// Redirects to the requested URL itself, which causes an endless loop.
    Round,
    /// Replaces all objects from this response on, and honours preconditions.
    Change,
    /// Replaces all objects from this response on, but ignores preconditions.
    ChangeUnsaid,
    /// Sends bytes that are not HTTP.
    Garbage,
}

pub struct FaultyServer {
    pub addr: SocketAddr,
    shared: Arc<FaultyServerState>,
}

struct FaultyServerState {
    objects: Mutex<HashMap<String, Vec<u8>>>,
    faults: Mutex<VecDeque<Fault>>,
    /// The current version of all objects (initially 0), and whether preconditions are honoured.
    version: Mutex<(u8, bool)>,
    requests: AtomicUsize,
    accepted: AtomicUsize,
    etag: bool,
    delay: Mutex<Duration>,
    /// The `Date` field of all responses; `None` omits the field.
    date: Mutex<Option<&'static str>>,
    /// Number of requests that ask for an existing object and have no precondition.
    unconditional: AtomicUsize,
}

impl FaultyServer {
    /// Starts a server with these objects. If `etag` is true, responses contain an entity tag.
    pub fn new(objects: &[(&str, Vec<u8>)], etag: bool) -> FaultyServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let objects = objects
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), bytes.clone()));
        let shared = Arc::new(FaultyServerState {
            objects: Mutex::new(objects.collect()),
            faults: Mutex::default(),
            version: Mutex::new((0, true)),
            requests: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            etag,
            delay: Mutex::default(),
            date: Mutex::default(),
            unconditional: AtomicUsize::new(0),
        });
        let theirs = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                theirs.accepted.fetch_add(1, SeqCst);
                let shared = theirs.clone();
                std::thread::spawn(move || shared.serve_connection(stream));
            }
        });
        FaultyServer { addr, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// Sets the faults of the next responses, in order. Later responses are correct.
    pub fn set_faults(&self, faults: &[Fault]) {
        *self.shared.faults.lock().unwrap() = faults.iter().copied().collect();
    }

    pub fn faults_left(&self) -> usize {
        self.shared.faults.lock().unwrap().len()
    }

    /// Delays every response.
    pub fn set_delay(&self, delay: Duration) {
        *self.shared.delay.lock().unwrap() = delay;
    }

    /// Sends this `Date` with every response.
    pub fn set_date(&self, date: &'static str) {
        *self.shared.date.lock().unwrap() = Some(date);
    }

    /// Returns the number of requests without `If-Match` or `If-Unmodified-Since`.
    pub fn unconditional_requests(&self) -> usize {
        self.shared.unconditional.load(SeqCst)
    }

    pub fn request_count(&self) -> usize {
        self.shared.requests.load(SeqCst)
    }

    pub fn accepted_connections(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }

    /// Restores all objects and removes the remaining faults.
    pub fn restore_objects(&self) {
        self.set_faults(&[]);
        *self.shared.version.lock().unwrap() = (0, true);
    }
}

struct ParsedRequest {
    method: String,
    path: String,
    range: Option<(u64, u64)>,
    if_match: Option<String>,
    unmodified: Option<String>,
}

impl FaultyServerState {
    fn serve_connection(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some(request) = read_request(&mut reader) {
            self.requests.fetch_add(1, SeqCst);
            std::thread::sleep(*self.delay.lock().unwrap());
            let fault = self
                .faults
                .lock()
                .unwrap()
                .pop_front()
                .unwrap_or(Fault::None);
            if self.respond_to(&request, fault, &mut stream).is_none() {
                return;
            }
        }
    }

    /// Returns the header fields that identify a version, and `Date` if it is set.
    fn validator_fields(&self, tag: &str, date: &str) -> String {
        let mut head = format!("Last-Modified: {date}\r\n");
        if let Some(now) = *self.date.lock().unwrap() {
            head += &format!("Date: {now}\r\n");
        }
        if self.etag {
            head += &format!("ETag: {tag}\r\n");
        }
        head
    }

    /// Sends one response. Returns `None` if the connection must be closed.
    fn respond_to(&self, request: &ParsedRequest, fault: Fault, out: &mut TcpStream) -> Option<()> {
        if let Fault::Change | Fault::ChangeUnsaid = fault {
            let mut version = self.version.lock().unwrap();
            *version = (version.0 + 1, fault == Fault::Change);
        }
        let (version, honest) = *self.version.lock().unwrap();
        let path = request
            .path
            .strip_prefix("/elsewhere")
            .unwrap_or(&request.path);
        // Removes only one slash, because strict servers have no object at `//film.mp4`.
        let name = percent_decode(path.strip_prefix('/').unwrap_or(path));
        let bytes = self.objects.lock().unwrap().get(&name).cloned();
        let Some(mut bytes) = bytes else {
            return write_response(out, "404 Not Found", "", b"not here");
        };
        bytes
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_add(version));
        let tag = format!("\"v{version}-{}\"", bytes.len());
        let date = format!("Sat, 21 Nov 2026 10:00:0{version} GMT");
        let head = self.validator_fields(&tag, &date);
        if request.if_match.is_none() && request.unmodified.is_none() {
            self.unconditional.fetch_add(1, SeqCst);
        }
        if honest && request.expects_another_version(&tag, &date) {
            return write_response(out, "412 Precondition Failed", "", b"");
        }
        match fault {
            Fault::Close => return None,
            Fault::Garbage => {
                let _ = out.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n");
                return None;
            }
            Fault::Status(status) => {
                let xml = b"<Error><Code>AccessDenied</Code><Key>SECRET</Key></Error>";
                return write_response(out, &format!("{status} Injected"), "", xml);
            }
            Fault::NoHead => return send_and_hang(out, b"H"),
            Fault::Redirect if path == request.path => {
                let to = format!("Location: /elsewhere{}\r\n", request.path);
                return write_response(out, "302 Found", &to, b"");
            }
            Fault::Elsewhere => {
                return write_response(out, "302 Found", "Location: http://192.0.2.1/x\r\n", b"");
            }
            Fault::Round => {
                let to = format!("Location: {}\r\n", request.path);
                return write_response(out, "302 Found", &to, b"");
            }
            _ => {}
        }
        if request.method == "HEAD" {
            let head = format!("{head}Content-Length: {}\r\n", bytes.len());
            return out
                .write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes())
                .ok();
        }
        let len = bytes.len() as u64;
        let Some((first, last)) = request.range else {
            return write_response(out, "200 OK", &head, &bytes);
        };
        if first >= len {
            let head = format!("Content-Range: bytes */{len}\r\n");
            return write_response(out, "416 Range Not Satisfiable", &head, b"");
        }
        let last = last.min(len - 1);
        let body = &bytes[first as usize..=last as usize];
        let range = format!("{head}Content-Range: bytes {first}-{last}/{len}\r\n");
        write_range(out, fault, &head, &range, (first, last, len), body, &bytes)
    }
}

impl ParsedRequest {
    /// Returns whether a precondition of the request differs from `tag` or `date`.
    fn expects_another_version(&self, tag: &str, date: &str) -> bool {
        self.if_match.as_ref().is_some_and(|wanted| wanted != tag)
            || self
                .unmodified
                .as_ref()
                .is_some_and(|wanted| wanted != date)
    }
}

fn write_range(
    out: &mut TcpStream,
    fault: Fault,
    head: &str,
    range: &str,
    (first, last, len): (u64, u64, u64),
    body: &[u8],
    whole: &[u8],
) -> Option<()> {
    let started = |out: &mut TcpStream| {
        let head = format!(
            "HTTP/1.1 206 Partial\r\n{range}Content-Length: {}\r\n\r\n",
            body.len()
        );
        out.write_all(head.as_bytes()).ok()
    };
    let chunked = |out: &mut TcpStream, body: &[u8]| {
        let head = format!("HTTP/1.1 206 Partial\r\n{range}Transfer-Encoding: chunked\r\n\r\n");
        out.write_all(head.as_bytes()).ok()?;
        if !body.is_empty() {
            out.write_all(format!("{:x}\r\n", body.len()).as_bytes())
                .ok()?;
            out.write_all(body).ok()?;
            out.write_all(b"\r\n").ok()?;
        }
        out.write_all(b"0\r\n\r\n").ok()
    };
    match fault {
        Fault::NoRange => write_response(out, "200 OK", head, whole),
        Fault::OtherRange => {
            let other = format!(
                "{head}Content-Range: bytes {}-{}/{len}\r\n",
                first + 1,
                last + 1
            );
            write_response(out, "206 Partial", &other, body)
        }
        Fault::NoContentRange => write_response(out, "206 Partial", head, body),
        Fault::Cut(n) => {
            started(out)?;
            let _ = out.write_all(&body[..n.min(body.len())]);
            None
        }
        Fault::Stall(n) => {
            started(out)?;
            send_and_hang(out, &body[..n.min(body.len())])
        }
        Fault::Short => chunked(out, &body[..body.len() / 2]),
        Fault::Long => chunked(out, &[body, b"and more"].concat()),
        Fault::Loris => {
            started(out)?;
            for byte in body {
                out.write_all(&[*byte]).ok()?;
                std::thread::sleep(Duration::from_millis(50));
            }
            None
        }
        _ => write_response(out, "206 Partial", range, body),
    }
}

fn write_response(out: &mut TcpStream, status: &str, head: &str, body: &[u8]) -> Option<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n",
        body.len()
    );
    out.write_all(head.as_bytes()).ok()?;
    out.write_all(body).ok()
}

/// Sends `bytes`, and then nothing until the client closes the connection.
fn send_and_hang(out: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    out.write_all(bytes).ok()?;
    let mut rest = [0; 1024];
    while std::io::Read::read(out, &mut rest).is_ok_and(|n| n > 0) {}
    None
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<ParsedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let mut request = ParsedRequest {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        range: None,
        if_match: None,
        unmodified: None,
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Some(request);
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some((first.parse().ok()?, last.parse().unwrap_or(u64::MAX)));
            }
            "if-match" => request.if_match = Some(value.to_owned()),
            "if-unmodified-since" => request.unmodified = Some(value.replace("+0000", "GMT")),
            _ => {}
        }
    }
}

fn percent_decode(path: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                let hex = std::str::from_utf8(&hex).unwrap();
                out.push(u8::from_str_radix(hex, 16).unwrap());
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}
