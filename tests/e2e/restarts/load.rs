//! Clients over HTTP/1.1 and HTTP/2 that send requests without a pause and check every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

pub const TARGETS: [&str; 3] = ["/small.bin", "/medium.bin", "/large.bin"];

const STREAMS: usize = 4;

/// Returns the body of a target. Each target has a different body.
pub fn make_body(target: &str) -> Vec<u8> {
    let len = match target {
        "/small.bin" => 100,
        "/medium.bin" => 50_000,
        _ => 700_000,
    };
    let pattern = (0..len).map(|at| (at / 7 % 251) as u8 ^ target.len() as u8);
    pattern.collect()
}

/// Counts of responses and failures.
#[derive(Debug, Default)]
pub struct LoadCounts {
    http1: AtomicU64,
    http2: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
    wrong: AtomicU64,
}

impl LoadCounts {
    pub fn http1(&self) -> u64 {
        self.http1.load(Relaxed)
    }

    pub fn http2(&self) -> u64 {
        self.http2.load(Relaxed)
    }

    /// Returns the numbers of refused connections, truncated responses and wrong responses.
    pub fn failures(&self) -> (u64, u64, u64) {
        let load = |count: &AtomicU64| count.load(Relaxed);
        (load(&self.refused), load(&self.cut), load(&self.wrong))
    }

    fn count_response(&self, of: &AtomicU64, target: &str, status: u16, body: &[u8]) {
        of.fetch_add(1, Relaxed);
        if status != 200 || body != make_body(target) {
            self.wrong.fetch_add(1, Relaxed);
        }
    }

    fn count_cut(&self, cause: &dyn std::fmt::Display) {
        eprintln!("cut: {cause}");
        self.cut.fetch_add(1, Relaxed);
    }

    fn count_refused(&self, cause: &dyn std::fmt::Display) {
        eprintln!("refused: {cause}");
        self.refused.fetch_add(1, Relaxed);
    }
}

#[derive(Default)]
struct LoadState {
    counts: LoadCounts,
    stop: AtomicBool,
}

/// Clients that run until they are stopped.
pub struct RunningLoad {
    state: Arc<LoadState>,
    threads: Vec<JoinHandle<()>>,
}

impl RunningLoad {
    pub fn start(address: SocketAddr) -> RunningLoad {
        let state = Arc::new(LoadState::default());
        let start = |client: fn(&LoadState, SocketAddr)| {
            let state = state.clone();
            std::thread::spawn(move || client(&state, address))
        };
        let clients = [
            run_pooled_client,
            run_pooled_client,
            run_fresh_client,
            run_fresh_client,
            run_http2_client,
            run_http2_client,
        ];
        let threads = clients.map(start).into();
        RunningLoad { state, threads }
    }

    /// Waits until `count` more responses have arrived over each protocol, or a request has failed.
    pub fn wait_for_responses(&self, count: u64) {
        let counts = &self.state.counts;
        let (http1, http2) = (counts.http1() + count, counts.http2() + count);
        let failed = || counts.failures() != (0, 0, 0);
        while !failed() && (counts.http1() < http1 || counts.http2() < http2) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn stop(self) -> LoadCounts {
        self.state.stop.store(true, Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        Arc::into_inner(self.state).unwrap().counts
    }
}

/// Uses each connection until the server announces that it will close the connection.
fn run_pooled_client(state: &LoadState, address: SocketAddr) {
    run_http1_client(state, address, "");
}

/// Uses a new connection for each request.
fn run_fresh_client(state: &LoadState, address: SocketAddr) {
    run_http1_client(state, address, "Connection: close\r\n");
}

fn run_http1_client(state: &LoadState, address: SocketAddr, fields: &str) {
    let mut connection = None;
    for target in TARGETS.iter().cycle() {
        if state.stop.load(Relaxed) {
            return;
        }
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => match TcpStream::connect(address) {
                Ok(stream) => {
                    let timeout = Some(Duration::from_secs(60));
                    stream.set_read_timeout(timeout).unwrap();
                    BufReader::new(stream)
                }
                Err(error) => {
                    state.counts.count_refused(&error);
                    continue;
                }
            },
        };
        match request_http1(&mut stream, target, fields) {
            Ok((status, body, last)) => {
                let counts = &state.counts;
                counts.count_response(&counts.http1, target, status, &body);
                connection = (!last).then_some(stream);
            }
            Err(error) => state.counts.count_cut(&error),
        }
    }
}

/// Returns the status, the body, and whether the server closes the connection.
fn request_http1(
    stream: &mut BufReader<TcpStream>,
    target: &str,
    fields: &str,
) -> std::io::Result<(u16, Vec<u8>, bool)> {
    let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    stream.get_mut().write_all(head.as_bytes())?;
    let (mut status, mut len, mut last) = (0, 0, false);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_lowercase();
        match line.split_once(": ") {
            Some(("content-length", value)) => len = value.parse().unwrap(),
            Some(("connection", value)) => last |= value == "close",
            Some(_) => {}
            None if line.is_empty() => break,
            None => status = line.split(' ').nth(1).unwrap().parse().unwrap(),
        }
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body)?;
    Ok((status, body, last))
}

fn run_http2_client(state: &LoadState, address: SocketAddr) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        while !state.stop.load(Relaxed) {
            let stream = match tokio::net::TcpStream::connect(address).await {
                Ok(stream) => stream,
                Err(error) => {
                    state.counts.count_refused(&error);
                    continue;
                }
            };
            match h2::client::handshake(stream).await {
                Ok((sender, connection)) => {
                    // Ignores errors of the connection, because its streams report them.
                    let connection = tokio::spawn(async move { drop(connection.await) });
                    use_http2_connection(state, &sender).await;
                    drop(sender);
                    connection.await.unwrap();
                }
                Err(error) => state.counts.count_cut(&error),
            }
        }
    });
}

type Http2Sender = h2::client::SendRequest<bytes::Bytes>;

/// Sends requests on several streams at a time until the server announces the end of the
/// connection.
async fn use_http2_connection(state: &LoadState, sender: &Http2Sender) {
    let streams = (0..STREAMS).map(|number| {
        let sender = sender.clone();
        async move {
            for target in TARGETS.iter().cycle().skip(number) {
                if state.stop.load(Relaxed) {
                    return;
                }
                // After GOAWAY, no stream can be opened.
                let Ok(mut ready) = sender.clone().ready().await else {
                    return;
                };
                match request_http2(&mut ready, target).await {
                    Ok(Some((status, body))) => {
                        let counts = &state.counts;
                        counts.count_response(&counts.http2, target, status, &body);
                    }
                    // The server has not processed this request, so the request did not fail.
                    Ok(None) => return,
                    Err(error) => return state.counts.count_cut(&error),
                }
            }
        }
    });
    let streams: Vec<_> = streams.map(Box::pin).collect();
    join_all(streams).await;
}

async fn join_all<F: Future<Output = ()> + Unpin>(mut futures: Vec<F>) {
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| std::pin::Pin::new(future).poll(cx).is_pending());
        match futures.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}

/// Returns `None` if the connection ended before the server processed the request.
async fn request_http2(
    sender: &mut Http2Sender,
    target: &str,
) -> Result<Option<(u16, Vec<u8>)>, h2::Error> {
    let request = http::Request::get(format!("http://x{target}")).body(());
    let Ok((response, _)) = sender.send_request(request.unwrap(), true) else {
        return Ok(None);
    };
    let response = match response.await {
        Ok(response) => response,
        // The stream number is above the last stream that GOAWAY names (RFC 9113 section 6.8). A
        // client can safely repeat such a request, because the server has not processed it.
        Err(error) if error.is_go_away() && error.is_remote() => return Ok(None),
        Err(error) => return Err(error),
    };
    let status = response.status().as_u16();
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        bytes.extend_from_slice(&part);
    }
    Ok(Some((status, bytes)))
}
