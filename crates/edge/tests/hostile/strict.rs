//! An origin that reads each request to the end that its framing names, and notes it: what another
//! parser behind the edge would have seen.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub fn values(&self, name: &str) -> Vec<&str> {
        let lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let found = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).collect()
    }
}

pub struct Strict {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    faults: Arc<Mutex<Vec<String>>>,
}

impl Strict {
    /// Answers everything with its request line, to be kept for a minute.
    pub fn new() -> Strict {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let faults: Arc<Mutex<Vec<String>>> = Arc::default();
        let (all, wrong) = (seen.clone(), faults.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, wrong) = (all.clone(), wrong.clone());
                std::thread::spawn(move || {
                    while match answer(&stream, &all) {
                        Ok(more) => more.is_some(),
                        Err(fault) => {
                            wrong.lock().unwrap().push(fault);
                            false
                        }
                    } {}
                });
            }
        });
        Strict {
            address,
            seen,
            faults,
        }
    }

    /// What has come, of which nothing could be read in two ways.
    pub fn seen(&self) -> Vec<Seen> {
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "{faults:?}");
        self.seen.lock().unwrap().clone()
    }
}

/// One request; `None`: the edge has hung up.
fn answer(mut stream: &TcpStream, all: &Mutex<Vec<Seen>>) -> Result<Option<()>, String> {
    let Some(head) = until(stream, b"\r\n\r\n") else {
        return Ok(None);
    };
    let mut seen = Seen {
        head: String::from_utf8_lossy(&head).into_owned(),
        body: Vec::new(),
    };
    let (lengths, codings) = (
        seen.values("content-length"),
        seen.values("transfer-encoding"),
    );
    let body = match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Some(Vec::new()),
        ([len], []) => exactly(stream, len.parse().map_err(|_| seen.head.clone())?),
        ([], ["chunked"]) => chunks(stream)?,
        _ => return Err(format!("two ends: {}", seen.head)),
    };
    let Some(body) = body else {
        return Ok(None);
    };
    seen.body = body;
    let line = seen.line().to_owned();
    all.lock().unwrap().push(seen);
    let len = line.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {len}\r\n\r\n");
    Ok(stream.write_all((head + &line).as_bytes()).ok())
}

fn exactly(mut stream: &TcpStream, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn until(mut stream: &TcpStream, end: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(end) {
        stream.read_exact(&mut byte).ok()?;
        bytes.extend(byte);
    }
    Some(bytes)
}

/// No extensions, no white space, no trailers: nothing that two parsers could read in two ways.
fn chunks(stream: &TcpStream) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    while let Some(line) = until(stream, b"\r\n") {
        let text = String::from_utf8_lossy(&line);
        let len = usize::from_str_radix(text.trim_end_matches("\r\n"), 16);
        let len = len.map_err(|_| format!("no chunk: {text:?}"))?;
        let Some(chunk) = exactly(stream, len + 2) else {
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
