//! An in-memory connection, whose input is given in advance and whose output is collected.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use net::Body;

/// One end of the connection.
pub struct Wire {
    input: Vec<u8>,
    read_len: usize,
    written: Arc<Mutex<Vec<u8>>>,
    /// Whether input is available only after a request head has been written.
    after_head: bool,
}

impl Wire {
    /// Returns a connection with this input, and its output buffer. With `after_head`, the input is
    /// available only after a request head, so that the input can be a response.
    pub fn new(input: &[u8], after_head: bool) -> (Wire, Arc<Mutex<Vec<u8>>>) {
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let wire = Wire {
            input: input.to_vec(),
            read_len: 0,
            written: written.clone(),
            after_head,
        };
        (wire, written)
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let has_request =
            || contains_end(&self.written.lock().unwrap_or_else(PoisonError::into_inner));
        if self.after_head && !has_request() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let rest = self.input.get(self.read_len..).unwrap_or(&[]);
        let now = rest.len().min(into.remaining());
        into.put_slice(rest.get(..now).unwrap_or(&[]));
        self.read_len += now;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Runs a future to completion, without sockets or a clock.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// Returns the bytes that a server sends to a client for a response. The connection ends after the
/// response.
pub fn bytes_sent_for(response: Response<Body>, to_head: bool) -> Vec<u8> {
    let method = if to_head { "HEAD" } else { "GET" };
    let request = format!("{method} / HTTP/1.1\r\nHost: edge\r\nConnection: close\r\n\r\n");
    let (wire, written) = Wire::new(request.as_bytes(), false);
    let response = Mutex::new(Some(response));
    let service = service_fn(|_: Request<hyper::body::Incoming>| {
        let response = response.lock().unwrap().take().expect("one request");
        async { Ok::<_, Infallible>(response) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    let connection = builder.half_close(true).serve_connection(wire, service);
    // Ignores errors, because a truncated body ends the connection.
    let _ = run(connection);
    let written = written.lock().unwrap();
    written.clone()
}

fn contains_end(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|four| four == b"\r\n\r\n")
}

/// A strictly parsed message: first line, header lines, and all bytes after them.
pub struct Message<'a> {
    pub first: &'a str,
    pub lines: Vec<(&'a str, &'a [u8])>,
    pub rest: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses a message. Panics if a strict parser would not accept the message.
    pub fn parse(bytes: &'a [u8]) -> Message<'a> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, rest) = bytes.split_at(end.expect("a head"));
        let mut lines = split_lines(head);
        let first = std::str::from_utf8(lines.remove(0)).expect("a first line in UTF-8");
        let lines = lines.into_iter().map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').expect("a name");
            let name = std::str::from_utf8(&line[..colon]).expect("a name in UTF-8");
            let token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            assert!(!name.is_empty() && name.bytes().all(token), "{name:?}");
            let value = line[colon + 1..].trim_ascii();
            assert!(!value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')));
            (name, value)
        });
        Message {
            first,
            lines: lines.collect(),
            rest: &rest[4..],
        }
    }

    /// Returns the body of a response, or None if the body is incomplete. The body ends after its
    /// declared length, after the last chunk, or with the connection.
    pub fn body(&self) -> Option<Vec<u8>> {
        let (lengths, codings) = (self.all("content-length"), self.all("transfer-encoding"));
        match (&lengths[..], &codings[..]) {
            ([], []) => Some(self.rest.to_vec()),
            ([len], []) => {
                let len = std::str::from_utf8(len).unwrap().parse::<u64>().unwrap();
                let received = self.rest.len() as u64;
                assert!(received <= len, "more bytes than declared");
                (received == len).then(|| self.rest.to_vec())
            }
            ([], [coding]) if coding == b"chunked" => join_chunks(self.rest),
            _ => panic!("two body lengths"),
        }
    }

    /// Returns all values of a header.
    pub fn all(&self, name: &str) -> Vec<&'a [u8]> {
        let same = |line: &&(&str, &[u8])| line.0.eq_ignore_ascii_case(name);
        self.lines.iter().filter(same).map(|line| line.1).collect()
    }
}

/// Joins the chunks of a body. Returns `None` if a chunk is missing or incomplete.
fn join_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let len = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let chunk = rest.get(end + 2..end + 2 + len)?;
        let after = rest.get(end + 2 + len..)?.strip_prefix(b"\r\n")?;
        whole.extend_from_slice(chunk);
        if len == 0 {
            assert!(after.is_empty(), "more bytes than declared");
            return Some(whole);
        }
        rest = after;
    }
}

fn split_lines(head: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = head;
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    lines
}
