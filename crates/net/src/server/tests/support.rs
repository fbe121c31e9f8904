//! A server in this process on a free port, and a client that reads answers off a raw stream.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use tokio::sync::Notify;

use crate::body::Incoming;
use crate::headers::Fields;
use crate::metrics::Metrics;
use crate::server::{Certificates, Connections, Limits, Listen, Server, Shutdown, Tls};
use crate::{Body, Chunk, Conn};

/// A running server; dropping it stops it.
pub struct Running {
    pub address: SocketAddr,
    pub shutdown: Shutdown,
    pub metrics: Metrics,
    pub gate: Arc<Gate>,
    pub certificates: Option<Certificates>,
    pub connections: Connections,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

/// Holds `/gate` back until it is opened, and says that somebody waits.
#[derive(Default)]
pub struct Gate {
    pub open: Notify,
    pub reached: Notify,
}

pub fn start(limits: Limits) -> Running {
    start_with(limits, None)
}

pub fn start_with(limits: Limits, tls: Option<Tls>) -> Running {
    start_as(Listen {
        limits,
        tls,
        ..Listen::default()
    })
}

pub fn start_as(listen: Listen) -> Running {
    let metrics = Metrics::new();
    let listen = Listen {
        addresses: vec!["127.0.0.1:0".into()],
        workers: 2,
        metrics: metrics.clone(),
        ..listen
    };
    let server = Server::bind(listen).unwrap();
    let (address, certificates) = (server.addresses()[0], server.certificates());
    let connections = server.connections();
    let (shutdown, gate) = (Shutdown::new(), Arc::new(Gate::default()));
    let (theirs, held) = (shutdown.clone(), Arc::clone(&gate));
    let factory = move |_worker| {
        let gate = Arc::clone(&held);
        move |request, conn| answer(request, conn, Arc::clone(&gate))
    };
    let thread = std::thread::spawn(move || server.run(factory, theirs));
    Running {
        address,
        shutdown,
        metrics,
        gate,
        certificates,
        connections,
        thread: Some(thread),
    }
}

impl Running {
    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        // Only so that a broken server fails the test instead of hanging it.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Client {
            stream: BufReader::new(stream),
        }
    }

    /// Waits until the server has ended by itself.
    pub fn join(mut self) -> std::io::Result<()> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

/// `len` bytes that differ by place.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// The same cut into pieces of these sizes, one after the other, again and again.
pub fn cut(whole: &[u8], sizes: &[usize]) -> Vec<Bytes> {
    let mut rest = Bytes::copy_from_slice(whole);
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        pieces.push(rest.split_to((*size).min(rest.len())));
    }
    pieces
}

/// `/pieces/LEN/SIZE,SIZE…`, `/stream/LEN/SIZE,SIZE…`, `/piped/LEN/SIZE,SIZE…` (a stream, every second
/// piece of which is in a pipe), `/unsized/LEN/SIZE,SIZE…` (a stream of unknown length), `/short` and
/// `/long` (a stream that ends early, and late), `/status/STATUS`, `/fields`, `/last` (that says so),
/// `/gate`, `/conn`, `/full/LEN`, `/panic`.
async fn answer(request: Request<Incoming>, conn: Conn, gate: Arc<Gate>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let mut parts = path.split('/').skip(1);
    let kind = parts.next().unwrap_or_default();
    let len: usize = parts.next().and_then(|len| len.parse().ok()).unwrap_or(0);
    let sizes: Vec<usize> = parts
        .next()
        .unwrap_or("1000")
        .split(',')
        .map(|size| size.parse().unwrap())
        .collect();
    let body = match kind {
        "full" => Body::full(pattern(len)),
        "pieces" => Body::pieces(cut(&pattern(len), &sizes)),
        "stream" => Body::stream(len as u64, Steps::new(cut(&pattern(len), &sizes))),
        "piped" => Body::stream(len as u64, Steps::new(piped(cut(&pattern(len), &sizes)))),
        "unsized" => Body::unsized_stream(Steps::new(cut(&pattern(len), &sizes))),
        "long" => Body::stream(5, Steps::new(vec![Bytes::from_static(b"0123456789")])),
        "status" => {
            let status = StatusCode::from_u16(len as u16).unwrap();
            return made(status, &[("etag", "\"a\"")]);
        }
        "fields" => {
            let fields = [("x-a", "1"), ("X-b", ""), ("x-a", "2"), ("vary", "Origin")];
            return made(StatusCode::OK, &fields);
        }
        "written" => {
            let mut response = made(StatusCode::OK, &[("etag", "\"a\""), ("x-a", "1")]);
            let map = std::mem::take(response.headers_mut());
            response
                .headers_mut()
                .insert("x-b", HeaderValue::from_static("2"));
            return response.map(|body| body.with_fields(Fields::new(map)));
        }
        "last" => {
            return made(
                StatusCode::OK,
                &[("connection", "close"), ("date", "never")],
            );
        }
        "short" => Body::stream(1000, Steps::new(vec![Bytes::from_static(b"0123456789")])),
        "gate" => {
            gate.reached.notify_one();
            gate.open.notified().await;
            Body::full("through")
        }
        "conn" => Body::full(format!(
            "{} {} {} {}",
            conn.peer().ip(),
            conn.secure(),
            conn.request,
            conn.touches_bytes(request.version())
        )),
        "client" => Body::full(format!("{} {}", conn.peer(), conn.client())),
        "panic" => panic!("as asked"),
        _ => return crate::Error::client(StatusCode::NOT_FOUND, "nothing here").response(),
    };
    Response::new(body)
}

fn made(status: StatusCode, fields: &[(&'static str, &'static str)]) -> Response<Body> {
    let made = Response::builder().status(status);
    let made = fields
        .iter()
        .fold(made, |made, (name, value)| made.header(*name, *value));
    made.body(Body::full("what it is")).unwrap()
}

/// Every second piece in a pipe of its own.
fn piped(pieces: Vec<Bytes>) -> Vec<Chunk> {
    use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
    let chunk = |(n, piece): (usize, Bytes)| {
        if n % 2 == 0 {
            return piece.into();
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        fcntl_setpipe_size(&write, 1 << 20).unwrap();
        std::fs::File::from(write).write_all(&piece).unwrap();
        Chunk::piped(Arc::new(read), piece.len())
    };
    pieces.into_iter().enumerate().map(chunk).collect()
}

/// A stream of chunks, each pending once before it comes.
struct Steps {
    chunks: std::vec::IntoIter<Chunk>,
    waited: bool,
}

impl Steps {
    fn new(chunks: Vec<impl Into<Chunk>>) -> Steps {
        let chunks: Vec<Chunk> = chunks.into_iter().map(Into::into).collect();
        Steps {
            chunks: chunks.into_iter(),
            waited: false,
        }
    }
}

impl futures_core::Stream for Steps {
    type Item = Result<Chunk, crate::body::Cut>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.waited = !self.waited;
        if self.waited {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(self.chunks.next().map(Ok))
    }
}

/// One HTTP/1.1 connection.
pub struct Client {
    pub stream: BufReader<TcpStream>,
}

/// An answer as read off the wire.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Client {
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    pub fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.read()
    }

    pub fn read(&mut self) -> Answer {
        let answer = self.read_head();
        let len = answer
            .header("content-length")
            .map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body).unwrap();
        Answer { body, ..answer }
    }

    pub fn read_head(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let count = self.stream.read_line(&mut head).unwrap();
            assert!(count > 0, "closed within a head: {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head,
            body: Vec::new(),
        }
    }

    /// Everything until the end; a reset counts as the end.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }
}
