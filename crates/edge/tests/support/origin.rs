//! An origin whose every answer a test writes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use super::{PATIENCE, read_head};

/// A request that has come to the origin, to be answered byte by byte.
pub struct Exchange {
    pub head: String,
    stream: TcpStream,
    next: Sender<TcpStream>,
}

impl Exchange {
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    /// So many bytes of what follows the head.
    pub fn body(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // An edge may have hung up, which some tests want.
        self.sent(bytes);
    }

    /// Whether the edge still took it.
    pub fn sent(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// The connection is free for the next request.
    pub fn done(self) {
        let _ = self.next.send(self.stream);
    }

    /// Status line, these headers, and a body of known length.
    pub fn answer(mut self, status: u16, headers: &[&str], body: &[u8]) {
        self.send(head(status, headers, Some(body.len())));
        self.send(body);
        self.done();
    }

    /// Waits until the edge has hung up.
    pub fn gone(mut self) {
        let _ = self.stream.read_to_end(&mut Vec::new());
    }
}

/// An answer's head as text.
pub fn head(status: u16, headers: &[&str], len: Option<usize>) -> String {
    let mut text = format!("HTTP/1.1 {status} X\r\n");
    for line in headers {
        text += &format!("{line}\r\n");
    }
    match len {
        Some(len) if status != 304 => text += &format!("Content-Length: {len}\r\n"),
        _ => {}
    }
    text + "\r\n"
}

/// An origin whose every answer the test writes.
pub struct Origin {
    pub address: SocketAddr,
    requests: Receiver<Exchange>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    pub fn new() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, requests) = mpsc::channel();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // An answer's head and body are two writes.
                stream.set_nodelay(true).unwrap();
                let (tell, all) = (tell.clone(), all.clone());
                std::thread::spawn(move || serve(stream, &tell, &all));
            }
        });
        Origin {
            address,
            requests,
            seen,
        }
    }

    /// Answers all requests by this function, which is given each request's head.
    pub fn answering(
        reply: impl Fn(&Exchange) -> (u16, Vec<String>, Vec<u8>) + Send + 'static,
    ) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
        let origin = Origin::new();
        let (address, seen) = (origin.address, origin.seen.clone());
        std::thread::spawn(move || {
            while let Ok(exchange) = origin.requests.recv() {
                let (status, headers, body) = reply(&exchange);
                let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
                exchange.answer(status, &headers, &body);
            }
        });
        (address, seen)
    }

    /// The next request that comes.
    pub fn next(&self) -> Exchange {
        self.requests
            .recv_timeout(PATIENCE)
            .expect("no request came to the origin")
    }

    /// How many requests have come so far.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// One connection: a request, its answer by the test, the next request.
fn serve(mut stream: TcpStream, tell: &Sender<Exchange>, seen: &Mutex<Vec<String>>) {
    while let Some(head) = read_head(&mut stream) {
        seen.lock().unwrap().push(head.clone());
        let (next, back) = mpsc::channel();
        let exchange = Exchange { head, stream, next };
        if tell.send(exchange).is_err() {
            return;
        }
        match back.recv() {
            Ok(again) => stream = again,
            Err(_) => return,
        }
    }
}
