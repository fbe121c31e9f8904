//! A server in this process on a free port, and a client that reads responses from a raw stream.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use tokio::sync::Notify;

use crate::body::Incoming;
use crate::headers::SerializedFields;
use crate::metrics::Metrics;
use crate::server::{
    ConnectionInspector, CurrentCertificates, Limits, Server, ServerOptions, Shutdown, TlsIdentity,
};
use crate::{Body, Chunk, Conn};

/// A running server, which stops when this value is dropped.
pub struct TestServer {
    pub address: SocketAddr,
    pub shutdown: Shutdown,
    pub metrics: Metrics,
    pub gate: Arc<ResponseGate>,
    pub certificates: Option<CurrentCertificates>,
    pub connections: ConnectionInspector,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

/// Blocks requests for `/gate` until the test opens the gate, and reports that a request waits.
#[derive(Default)]
pub struct ResponseGate {
    pub open: Notify,
    pub reached: Notify,
    /// While a test holds this lock, the worker that serves `/hold` is blocked.
    pub worker: Mutex<()>,
    tickets: AtomicU64,
}

pub fn start_server(limits: Limits) -> TestServer {
    start_with(limits, None)
}

pub fn start_with(limits: Limits, tls: Option<TlsIdentity>) -> TestServer {
    start_as(ServerOptions {
        limits,
        tls,
        ..ServerOptions::default()
    })
}

pub fn start_as(listen: ServerOptions) -> TestServer {
    start_with_workers(2, listen)
}

pub fn start_with_workers(workers: usize, listen: ServerOptions) -> TestServer {
    let metrics = Metrics::new();
    let listen = ServerOptions {
        addresses: vec!["127.0.0.1:0".into()],
        workers,
        metrics: metrics.clone(),
        ..listen
    };
    let server = Server::bind(listen).unwrap();
    let (address, certificates) = (server.addresses()[0], server.certificates());
    let connections = server.connections();
    let (shutdown, gate) = (Shutdown::new(), Arc::new(ResponseGate::default()));
    let (theirs, held) = (shutdown.clone(), Arc::clone(&gate));
    let factory = move |_worker| {
        let gate = Arc::clone(&held);
        move |request, conn| handle_request(request, conn, Arc::clone(&gate))
    };
    let thread = std::thread::spawn(move || server.run(factory, theirs));
    TestServer {
        address,
        shutdown,
        metrics,
        gate,
        certificates,
        connections,
        thread: Some(thread),
    }
}

impl TestServer {
    pub fn connect(&self) -> TestClient {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        TestClient {
            stream: BufReader::new(stream),
        }
    }

    /// Waits until the server has exited.
    pub fn join(mut self) -> std::io::Result<()> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

/// Time limit for an event that a test waits for. A broken server then fails the test instead of
/// blocking it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Lets other tasks run until `is_met` returns true.
pub async fn wait_for_condition(condition: &str, is_met: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_met() {
        assert!(
            Instant::now() < end,
            "not met within {PATIENCE:?}: {condition}"
        );
        tokio::task::yield_now().await;
    }
}

/// Blocks this thread until a handler sends the notification.
pub fn wait_for_notification(notify: &tokio::sync::Notify) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(notify.notified());
}

/// Returns `len` bytes, each with a value that depends on its position.
pub fn test_pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Cuts the bytes into pieces. The sizes of the pieces are `sizes`, repeated as often as necessary.
pub fn cut_into_pieces(whole: &[u8], sizes: &[usize]) -> Vec<Bytes> {
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

/// Serves these paths. The sizes in `SIZE,SIZE…` are repeated until the body has `LEN` bytes.
///
/// - `/full/LEN`: one buffer
/// - `/pieces/LEN/SIZE,SIZE…`: many buffers in one chunk
/// - `/stream/LEN/SIZE,SIZE…`: a stream of chunks
/// - `/piped/LEN/SIZE,SIZE…`: a stream of chunks, with every second piece in a pipe
/// - `/unsized/LEN/SIZE,SIZE…`: a stream of chunks without a declared length
/// - `/gated/LEN`: one chunk, for which the source waits until the test opens the gate
/// - `/short`, `/long`: a stream that is shorter or longer than its declared length
/// - `/status/STATUS`: a response with this status
/// - `/fields`: several header fields
/// - `/written`: serialized header fields
/// - `/last`: a response with `Connection: close`
/// - `/relayed`: the received bytes of the request's body, and the status of its error
/// - `/gate`, `/hold`: a response that waits for the test
/// - `/ticket`: the number of earlier requests for `/ticket`
/// - `/conn`, `/client`: facts about the connection and the client
/// - `/panic`
async fn handle_request(
    request: Request<Incoming>,
    conn: Conn,
    gate: Arc<ResponseGate>,
) -> Response<Body> {
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
    let pieces = || cut_into_pieces(&test_pattern(len), &sizes);
    let total = len as u64;
    let body = match kind {
        "full" => Body::from_bytes(test_pattern(len)),
        "pieces" => Body::from_pieces(pieces()),
        "stream" => Body::sized_stream(total, PendingChunks::new(pieces())),
        "piped" => Body::sized_stream(total, PendingChunks::new(pipe_every_second(pieces()))),
        "unsized" => Body::unsized_stream(PendingChunks::new(pieces())),
        "gated" => Body::sized_stream(total, GatedChunk::new(test_pattern(len), gate)),
        "long" => Body::sized_stream(5, ten_digits()),
        "status" => {
            let status = StatusCode::from_u16(len as u16).unwrap();
            return make_response(status, &[("etag", "\"a\"")]);
        }
        "fields" => {
            let fields = [("x-a", "1"), ("X-b", ""), ("x-a", "2"), ("vary", "Origin")];
            return make_response(StatusCode::OK, &fields);
        }
        "written" => return make_serialized_response(),
        "last" => {
            return make_response(
                StatusCode::OK,
                &[("connection", "close"), ("date", "never")],
            );
        }
        "short" => Body::sized_stream(1000, ten_digits()),
        "gate" => {
            gate.reached.notify_one();
            gate.open.notified().await;
            Body::from_bytes("through")
        }
        "hold" => {
            gate.reached.notify_one();
            drop(gate.worker.lock());
            Body::from_bytes("released")
        }
        "relayed" => relay_after_gate(request.into_body(), &gate).await,
        "ticket" => Body::from_bytes(gate.tickets.fetch_add(1, Ordering::Relaxed).to_string()),
        "conn" => Body::from_bytes(format!(
            "{} {} {} {}",
            conn.effective_peer().ip(),
            conn.is_secure(),
            conn.request,
            conn.copies_bodies()
        )),
        "client" => Body::from_bytes(format!("{} {}", conn.effective_peer(), conn.client())),
        "panic" => panic!("requested by the test"),
        _ => {
            return crate::Error::new_client_error(StatusCode::NOT_FOUND, "nothing here")
                .to_response();
        }
    };
    Response::new(body)
}

/// Time in which a client must send the first bytes of a body for `/relayed`.
pub const RELAY_GRACE: Duration = Duration::from_millis(500);

/// Starts to relay a body, and reads the body after the test has opened the gate.
async fn relay_after_gate(incoming: Incoming, gate: &ResponseGate) -> Body {
    let (mut body, fault) = crate::body::relay_request_body(incoming, 1000, RELAY_GRACE).unwrap();
    gate.reached.notify_one();
    gate.open.notified().await;
    let mut received = 0;
    while let Some(Ok(chunk)) = body.next_chunk().await {
        received += chunk.len();
    }
    let status = fault.client_error().map(|error| error.status.as_u16());
    Body::from_bytes(format!("{received} {status:?}"))
}

fn ten_digits() -> PendingChunks {
    PendingChunks::new(vec![Bytes::from_static(b"0123456789")])
}

fn make_response(status: StatusCode, fields: &[(&'static str, &'static str)]) -> Response<Body> {
    let builder = Response::builder().status(status);
    let builder = fields.iter().fold(builder, |builder, (name, value)| {
        builder.header(*name, *value)
    });
    builder.body(Body::from_bytes("what it is")).unwrap()
}

/// Returns a response with serialized fields and another field.
fn make_serialized_response() -> Response<Body> {
    let mut response = make_response(StatusCode::OK, &[("etag", "\"a\""), ("x-a", "1")]);
    let map = std::mem::take(response.headers_mut());
    response
        .headers_mut()
        .insert("x-b", HeaderValue::from_static("2"));
    response.map(|body| body.with_serialized_fields(SerializedFields::new(map)))
}

/// Puts every second piece into a separate pipe.
fn pipe_every_second(pieces: Vec<Bytes>) -> Vec<Chunk> {
    use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
    let chunk = |(n, piece): (usize, Bytes)| {
        if n % 2 == 0 {
            return piece.into();
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        fcntl_setpipe_size(&write, 1 << 20).unwrap();
        std::fs::File::from(write).write_all(&piece).unwrap();
        Chunk::from_pipe(Arc::new(read), piece.len())
    };
    pieces.into_iter().enumerate().map(chunk).collect()
}

/// A stream of chunks that returns `Pending` once before each chunk.
struct PendingChunks {
    chunks: std::vec::IntoIter<Chunk>,
    waited: bool,
}

impl PendingChunks {
    fn new(chunks: Vec<impl Into<Chunk>>) -> PendingChunks {
        let chunks: Vec<Chunk> = chunks.into_iter().map(Into::into).collect();
        PendingChunks {
            chunks: chunks.into_iter(),
            waited: false,
        }
    }
}

impl futures_core::Stream for PendingChunks {
    type Item = Result<Chunk, crate::body::BodyError>;

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

/// A stream of one chunk, which waits until the test opens the gate.
struct GatedChunk {
    opened: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>,
    chunk: Option<Vec<u8>>,
}

impl GatedChunk {
    fn new(chunk: Vec<u8>, gate: Arc<ResponseGate>) -> GatedChunk {
        let wait = async move {
            gate.reached.notify_one();
            gate.open.notified().await;
        };
        GatedChunk {
            opened: Box::pin(wait),
            chunk: Some(chunk),
        }
    }
}

impl futures_core::Stream for GatedChunk {
    type Item = Result<Bytes, crate::body::BodyError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::ready!(self.opened.as_mut().poll(cx));
        std::task::Poll::Ready(self.chunk.take().map(|chunk| Ok(chunk.into())))
    }
}

/// A client's HTTP/1.1 connection.
pub struct TestClient {
    pub stream: BufReader<TcpStream>,
}

/// A response as read from the socket.
#[derive(Debug)]
pub struct ReceivedResponse {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl ReceivedResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl TestClient {
    /// Waits until a response starts.
    pub fn wait_for_bytes(&mut self) {
        assert!(!self.stream.fill_buf().unwrap().is_empty());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    pub fn send_text(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    pub fn get(&mut self, path: &str) -> ReceivedResponse {
        self.send_text(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.read_response()
    }

    pub fn read_response(&mut self) -> ReceivedResponse {
        let response = self.read_head();
        let len = response
            .header("content-length")
            .map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body).unwrap();
        ReceivedResponse { body, ..response }
    }

    pub fn read_head(&mut self) -> ReceivedResponse {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let count = self.stream.read_line(&mut head).unwrap();
            assert!(count > 0, "closed within a head: {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        ReceivedResponse {
            status,
            head,
            body: Vec::new(),
        }
    }

    /// Reads all bytes until the connection closes. A reset is treated as a close.
    pub fn read_rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }
}
