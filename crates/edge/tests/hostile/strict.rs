//! An origin with a strict HTTP parser. The origin reads each request up to the end that its
//! framing declares, and records the request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A recorded request.
#[derive(Debug, Clone)]
pub struct ParsedRequest {
    pub head: String,
    pub body: Vec<u8>,
}

impl ParsedRequest {
    pub fn request_line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub fn header_values(&self, name: &str) -> Vec<&str> {
        let lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let found = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).collect()
    }
}

pub struct StrictOrigin {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<ParsedRequest>>>,
    faults: Arc<Mutex<Vec<String>>>,
}

impl StrictOrigin {
    /// Starts an origin whose response body is the request line. Responses are cacheable for one
    /// minute.
    pub fn new() -> StrictOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<ParsedRequest>>> = Arc::default();
        let faults: Arc<Mutex<Vec<String>>> = Arc::default();
        let (all, wrong) = (seen.clone(), faults.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, wrong) = (all.clone(), wrong.clone());
                std::thread::spawn(move || {
                    while match serve_request(&stream, &all) {
                        Ok(more) => more.is_some(),
                        Err(fault) => {
                            wrong.lock().unwrap().push(fault);
                            false
                        }
                    } {}
                });
            }
        });
        StrictOrigin {
            address,
            seen,
            faults,
        }
    }

    /// Returns the recorded requests. Panics if the framing of a request was ambiguous.
    pub fn parsed_requests(&self) -> Vec<ParsedRequest> {
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "{faults:?}");
        self.seen.lock().unwrap().clone()
    }
}

/// Serves one request. Returns `None` when the edge closed the connection.
fn serve_request(
    mut stream: &TcpStream,
    all: &Mutex<Vec<ParsedRequest>>,
) -> Result<Option<()>, String> {
    let Some(head) = read_until(stream, b"\r\n\r\n") else {
        return Ok(None);
    };
    let mut seen = ParsedRequest {
        head: String::from_utf8_lossy(&head).into_owned(),
        body: Vec::new(),
    };
    let (lengths, codings) = (
        seen.header_values("content-length"),
        seen.header_values("transfer-encoding"),
    );
    let body = match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Some(Vec::new()),
        ([len], []) => read_exactly(stream, len.parse().map_err(|_| seen.head.clone())?),
        ([], ["chunked"]) => read_chunks(stream)?,
        _ => return Err(format!("two ends: {}", seen.head)),
    };
    let Some(body) = body else {
        return Ok(None);
    };
    seen.body = body;
    let line = seen.request_line().to_owned();
    all.lock().unwrap().push(seen);
    let len = line.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {len}\r\n\r\n");
    Ok(stream.write_all((head + &line).as_bytes()).ok())
}

fn read_exactly(mut stream: &TcpStream, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn read_until(mut stream: &TcpStream, end: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(end) {
        stream.read_exact(&mut byte).ok()?;
        bytes.extend(byte);
    }
    Some(bytes)
}

/// Decodes chunks strictly. Extensions, white space and trailers are errors, because parsers may
/// disagree about them.
fn read_chunks(stream: &TcpStream) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    while let Some(line) = read_until(stream, b"\r\n") {
        let text = String::from_utf8_lossy(&line);
        let len = usize::from_str_radix(text.trim_end_matches("\r\n"), 16);
        let len = len.map_err(|_| format!("no chunk: {text:?}"))?;
        let Some(chunk) = read_exactly(stream, len + 2) else {
            break;
        };
        if !chunk.ends_with(b"\r\n") {
            return Err(format!("no end of a chunk: {chunk:?}"));
        }
        if len == 0 {
            return Ok(Some(body));
        }
        body.extend(&chunk[..len]);
    }
    Ok(None)
}
