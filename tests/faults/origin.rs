//! An origin that fails as the seed determines, and records what it has sent.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::random::SeededRandom;
use crate::resource::{CachingPolicy, Resource};

/// A response with status 200, 206 or 304 whose head was sent.
#[derive(Debug, Clone)]
pub struct SentResponse {
    pub path: String,
    pub language: String,
    pub version: u64,
    pub at: Instant,
}

/// A fault, and the period in which a client may notice the fault.
#[derive(Debug, Clone)]
pub struct InjectedFault {
    pub path: String,
    pub start: Instant,
    pub end: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OriginFault {
    CloseBeforeHead,
    InvalidHead,
    ServerError,
    CloseInBody,
    StallBeforeHead,
    StallInBody,
    InvalidChunk,
    /// A 304 with the tag of the current version, whatever tag the request contains.
    NotModified,
}

/// The list contains each stall once and each other fault twice. Stalls are rarer because each
/// stall lasts as long as a timeout of the edge.
const FAULTS: [OriginFault; 14] = [
    OriginFault::CloseBeforeHead,
    OriginFault::CloseBeforeHead,
    OriginFault::InvalidHead,
    OriginFault::ServerError,
    OriginFault::CloseInBody,
    OriginFault::InvalidChunk,
    OriginFault::NotModified,
    OriginFault::InvalidHead,
    OriginFault::ServerError,
    OriginFault::CloseInBody,
    OriginFault::StallBeforeHead,
    OriginFault::StallInBody,
    OriginFault::InvalidChunk,
    OriginFault::NotModified,
];

/// The origin of a run.
pub struct FaultyOrigin {
    pub address: SocketAddr,
    pub state: Arc<OriginState>,
}

pub struct OriginState {
    seed: u64,
    fault_percent: u64,
    resources: Vec<Resource>,
    records: Mutex<OriginRecords>,
}

#[derive(Default)]
struct OriginRecords {
    versions: HashMap<String, u64>,
    requests: HashMap<String, u64>,
    sent: Vec<SentResponse>,
    faults: Vec<InjectedFault>,
    serials: u64,
}

/// A parsed request of the edge.
struct OriginRequest {
    method: String,
    path: String,
    head: String,
}

impl OriginRequest {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

impl FaultyOrigin {
    pub fn start(seed: u64, resources: &[Resource], fault_percent: u64) -> FaultyOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(OriginState {
            seed,
            fault_percent,
            resources: resources.to_vec(),
            records: Mutex::default(),
        });
        let theirs = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = theirs.clone();
                std::thread::spawn(move || while state.serve_request(&stream).is_some() {});
            }
        });
        FaultyOrigin { address, state }
    }
}

impl OriginState {
    /// Replaces a resource with its next version.
    pub fn replace(&self, path: &str) {
        let mut records = self.records.lock().unwrap();
        *records.versions.entry(path.to_owned()).or_default() += 1;
    }

    pub fn current_version(&self, path: &str) -> u64 {
        let records = self.records.lock().unwrap();
        records.versions.get(path).copied().unwrap_or_default()
    }

    /// Returns the times at which this version was sent, or was confirmed by a 304.
    pub fn times_sent(&self, path: &str, language: &str, version: u64) -> Vec<Instant> {
        let records = self.records.lock().unwrap();
        let sent = records.sent.iter().filter(|sent| {
            sent.path == path && sent.language == language && sent.version == version
        });
        sent.map(|sent| sent.at).collect()
    }

    /// Returns whether a client could notice a fault of this resource between these times.
    pub fn has_fault(&self, path: &str, start: Instant, end: Instant) -> bool {
        let records = self.records.lock().unwrap();
        let mut faults = records.faults.iter();
        faults.any(|fault| fault.path == path && fault.start <= end && fault.end >= start)
    }

    fn serve_request(&self, stream: &TcpStream) -> Option<()> {
        let request = read_request(stream)?;
        let resource = self.resources.iter().find(|one| one.path == request.path);
        let Some(resource) =
            resource.filter(|_| ["GET", "HEAD"].contains(&request.method.as_str()))
        else {
            return serve_other(stream, &request);
        };
        let fault = self.choose_fault(&request.path);
        let start = Instant::now();
        if fault.is_some() {
            self.record_fault(&request.path, start, start + Duration::from_secs(60));
        }
        let served = self.respond(stream, &request, resource, fault);
        if fault.is_some() {
            self.record_fault(&request.path, start, Instant::now());
        }
        served
    }

    fn choose_fault(&self, path: &str) -> Option<OriginFault> {
        let mut records = self.records.lock().unwrap();
        let count = records.requests.entry(path.to_owned()).or_default();
        *count += 1;
        let mut random = SeededRandom::for_name(self.seed, path, *count);
        random
            .has_chance(self.fault_percent)
            .then(|| random.pick(&FAULTS))
    }

    /// Records a fault, and removes any provisional record of the same fault. Both records have the
    /// same resource and start, but the provisional record has a later end.
    fn record_fault(&self, path: &str, start: Instant, end: Instant) {
        let mut records = self.records.lock().unwrap();
        records
            .faults
            .retain(|fault| fault.start != start || fault.path != path);
        let path = path.to_owned();
        records.faults.push(InjectedFault { path, start, end });
    }

    fn respond(
        &self,
        mut stream: &TcpStream,
        request: &OriginRequest,
        resource: &Resource,
        fault: Option<OriginFault>,
    ) -> Option<()> {
        match fault {
            Some(OriginFault::CloseBeforeHead) => return None,
            Some(OriginFault::InvalidHead) => {
                let _ = stream.write_all(b"HTTP/1.1 OK 200\r\n\r\n");
                return None;
            }
            Some(OriginFault::ServerError) => {
                let text = "HTTP/1.1 500 X\r\nContent-Length: 6\r\n\r\nfailed";
                return stream.write_all(text.as_bytes()).ok();
            }
            Some(OriginFault::StallBeforeHead) => return wait_for_hangup(stream),
            _ => {}
        }
        let language = match resource.policy {
            CachingPolicy::Varying => request.header("accept-language").unwrap_or("none"),
            _ => "all",
        };
        let version = self.current_version(&resource.path);
        let tag = format!("\"{version}\"");
        let named = request.header("if-none-match");
        let is_known = named == Some(&tag) || fault == Some(OriginFault::NotModified);
        let mut head = self.format_head(resource, language, version);
        if is_known && named.is_some() {
            self.record_sent(resource, language, version);
            let text = format!("HTTP/1.1 304 X\r\n{head}\r\n");
            return stream.write_all(text.as_bytes()).ok();
        }
        let whole = resource.body(language, version);
        let mut body = &whole[..];
        let mut status = 200;
        if let Some((first, last)) = requested_range(request, &tag, body.len()) {
            status = 206;
            head += &format!("Content-Range: bytes {first}-{last}/{}\r\n", body.len());
            body = &whole[first..=last];
        }
        self.record_sent(resource, language, version);
        if request.method == "HEAD" {
            let text = format!(
                "HTTP/1.1 200 X\r\n{head}Content-Length: {}\r\n\r\n",
                body.len()
            );
            return stream.write_all(text.as_bytes()).ok();
        }
        send_body(stream, status, &head, body, fault)
    }

    /// Returns the end-to-end header lines.
    fn format_head(&self, resource: &Resource, language: &str, version: u64) -> String {
        let mut records = self.records.lock().unwrap();
        records.serials += 1;
        let mut head = resource.policy.response_lines().to_owned();
        head += &format!(
            "X-Version: {version}\r\nX-Language: {language}\r\nX-Serial: {}\r\n",
            records.serials
        );
        if resource.policy.has_validator() {
            head += &format!("ETag: \"{version}\"\r\n");
        }
        head
    }

    fn record_sent(&self, resource: &Resource, language: &str, version: u64) {
        self.records.lock().unwrap().sent.push(SentResponse {
            path: resource.path.clone(),
            language: language.to_owned(),
            version,
            at: Instant::now(),
        });
    }
}

/// Sends the head, and then the body in two halves. A fault in the body occurs after the first
/// half.
fn send_body(
    mut stream: &TcpStream,
    status: u16,
    head: &str,
    body: &[u8],
    fault: Option<OriginFault>,
) -> Option<()> {
    let is_chunked = body.len().is_multiple_of(3) || fault == Some(OriginFault::InvalidChunk);
    let framing = match is_chunked && status == 200 && body.len() < 1_000_000 {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", body.len()),
    };
    let is_chunked = framing.starts_with('T');
    let head = format!("HTTP/1.1 {status} X\r\n{head}{framing}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let (sent, rest) = body.split_at(body.len() / 2);
    for half in [sent, rest] {
        if is_chunked {
            write!(stream, "{:x}\r\n", half.len()).ok()?;
        }
        stream.write_all(half).ok()?;
        if is_chunked {
            stream.write_all(b"\r\n").ok()?;
        }
        match fault {
            Some(OriginFault::CloseInBody) => return None,
            Some(OriginFault::StallInBody) => return wait_for_hangup(stream),
            Some(OriginFault::InvalidChunk) if is_chunked => {
                let _ = stream.write_all(b"zz\r\n");
                return None;
            }
            _ => {}
        }
    }
    if is_chunked {
        stream.write_all(b"0\r\n\r\n").ok()?;
    }
    Some(())
}

/// Responds to uploads and unknown targets.
fn serve_other(mut stream: &TcpStream, request: &OriginRequest) -> Option<()> {
    let status = if request.method == "POST" { 204 } else { 404 };
    let text = format!("HTTP/1.1 {status} X\r\nCache-Control: no-store\r\n\r\n");
    stream.write_all(text.as_bytes()).ok()?;
    // Ends the connection, because the body of the request was not read.
    None
}

/// Waits until the edge closes the connection.
fn wait_for_hangup(mut stream: &TcpStream) -> Option<()> {
    let _ = stream.read(&mut [0; 64]);
    None
}

/// Returns the offsets of the first and last byte of the requested range, unless `If-Range` names
/// another version.
fn requested_range(request: &OriginRequest, tag: &str, len: usize) -> Option<(usize, usize)> {
    if request.header("if-range").is_some_and(|named| named != tag) {
        return None;
    }
    let range = request.header("range")?.strip_prefix("bytes=")?;
    let (first, last) = range.split_once('-')?;
    let last = last.parse().unwrap_or(len - 1).min(len - 1);
    let first = first.parse().ok().filter(|first| *first <= last)?;
    Some((first, last))
}

fn read_request(mut stream: &TcpStream) -> Option<OriginRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.split(' ');
    Some(OriginRequest {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        head,
    })
}
