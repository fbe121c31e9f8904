//! Sends one request of a client, and records everything that the client observes.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::plan::{PlannedRequest, RequestKind};
use crate::resource::Resource;

/// Read timeout of the client. The edge's timeouts are much shorter, so a request that reaches this
/// timeout hangs.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A request and its result.
#[derive(Debug)]
pub struct ClientExchange {
    pub request: PlannedRequest,
    pub start: Instant,
    pub end: Instant,
    pub result: ExchangeEnd,
}

#[derive(Debug)]
pub enum ExchangeEnd {
    NotConnected,
    /// The connection closed before the end of the head.
    Closed,
    /// The head did not arrive before the read timeout.
    Hanging,
    Response(ObservedResponse),
}

#[derive(Debug)]
pub struct ObservedResponse {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body is complete according to its framing.
    pub is_complete: bool,
    /// The rest of the body did not arrive before the read timeout.
    pub is_hanging: bool,
}

impl ObservedResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }
}

/// Sends a request and reads its response.
pub fn run_exchange(
    edge: SocketAddr,
    resource: &Resource,
    request: &PlannedRequest,
) -> ClientExchange {
    let start = Instant::now();
    let result = match TcpStream::connect(edge) {
        Ok(stream) => exchange(stream, resource, request),
        Err(_) => ExchangeEnd::NotConnected,
    };
    ClientExchange {
        request: request.clone(),
        start,
        end: Instant::now(),
        result,
    }
}

fn exchange(stream: TcpStream, resource: &Resource, request: &PlannedRequest) -> ExchangeEnd {
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    let mut stream = BufReader::new(stream);
    let text = format_request(resource, request);
    if stream.get_mut().write_all(text.as_bytes()).is_err() {
        return ExchangeEnd::Closed;
    }
    match read_response(&mut stream, request.kind) {
        Ok(response) => ExchangeEnd::Response(response),
        Err(error) if is_timeout(&error) => ExchangeEnd::Hanging,
        Err(_) => ExchangeEnd::Closed,
    }
}

fn format_request(resource: &Resource, request: &PlannedRequest) -> String {
    let method = match request.kind {
        RequestKind::Head => "HEAD",
        RequestKind::BrokenUpload => "POST",
        _ => "GET",
    };
    let line = match request.kind {
        RequestKind::Range(first, last) => format!("Range: bytes={first}-{last}\r\n"),
        RequestKind::IfNoneMatch(version) => format!("If-None-Match: \"{version}\"\r\n"),
        RequestKind::MaxStale => "Cache-Control: max-stale\r\n".to_owned(),
        RequestKind::BrokenUpload => "Transfer-Encoding: chunked\r\n".to_owned(),
        _ => String::new(),
    };
    let body = if method == "POST" { "zz\r\n" } else { "" };
    format!(
        "{method} {} HTTP/1.1\r\nHost: e\r\nAccept-Language: {}\r\n{line}\r\n{body}",
        resource.path, request.language
    )
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn read_response(
    stream: &mut BufReader<TcpStream>,
    kind: RequestKind,
) -> std::io::Result<ObservedResponse> {
    let (mut status, mut headers) = (0, Vec::new());
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match (line.trim_end(), line.split_once(": ")) {
            ("", _) => break,
            (line, _) if status == 0 => {
                status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap();
            }
            (_, Some((name, value))) => {
                headers.push((name.to_lowercase(), value.trim().to_owned()));
            }
            _ => {}
        }
    }
    let mut response = ObservedResponse {
        status,
        headers,
        body: Vec::new(),
        is_complete: false,
        is_hanging: false,
    };
    let mut body = Vec::new();
    let read = read_body(stream, &response, kind, &mut body);
    response.is_complete = matches!(read, Ok(true));
    response.is_hanging = read.is_err_and(|error| is_timeout(&error));
    response.body = body;
    Ok(response)
}

/// Reads the body, or a part of the body if the client disconnects early. Returns whether the body
/// is complete according to its framing.
fn read_body(
    stream: &mut BufReader<TcpStream>,
    response: &ObservedResponse,
    kind: RequestKind,
    body: &mut Vec<u8>,
) -> std::io::Result<bool> {
    if kind == RequestKind::Head || matches!(response.status, 204 | 304) {
        return Ok(true);
    }
    if let RequestKind::Disconnect(bytes) = kind {
        // Reads no byte of a chunked body, because this client does not decode chunks.
        let len = response.number("content-length").unwrap_or_default();
        let wanted = (bytes as u64).min(len);
        stream.take(wanted).read_to_end(body)?;
        return Ok(wanted == len && len > 0);
    }
    if let Some(len) = response.number("content-length") {
        while (body.len() as u64) < len {
            read_some(stream, len - body.len() as u64, kind, body)?;
        }
        return Ok(true);
    }
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16);
        let Ok(size) = size else {
            return Ok(false);
        };
        let end = body.len() as u64 + size;
        while (body.len() as u64) < end {
            read_some(stream, end - body.len() as u64, kind, body)?;
        }
        stream.read_exact(&mut [0; 2])?;
        if size == 0 {
            return Ok(true);
        }
    }
}

/// Reads between one byte and `bytes_max` bytes.
fn read_some(
    stream: &mut BufReader<TcpStream>,
    bytes_max: u64,
    kind: RequestKind,
    body: &mut Vec<u8>,
) -> std::io::Result<()> {
    if kind == RequestKind::Slow {
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut buffer = [0; 16 << 10];
    let len = usize::try_from(bytes_max).unwrap().min(buffer.len());
    match stream.read(&mut buffer[..len])? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        count => {
            body.extend(&buffer[..count]);
            Ok(())
        }
    }
}
