//! A scripted origin: the test writes every response.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use super::{WAIT_MAX, read_head};

/// A request that arrived at the origin. The test writes the bytes of the response.
pub struct OriginExchange {
    pub head: String,
    stream: TcpStream,
    next: Sender<TcpStream>,
}

impl OriginExchange {
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    /// Reads `len` bytes of the request's body.
    pub fn read_body(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // Ignores errors, because in some tests the edge closes the connection.
        self.try_send(bytes);
    }

    /// Returns whether the edge accepted the bytes.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Releases the connection for the next request.
    pub fn finish(self) {
        let _ = self.next.send(self.stream);
    }

    /// Responds with this status, these headers and this body. Declares the length of the body.
    pub fn respond(mut self, status: u16, headers: &[&str], body: &[u8]) {
        self.send(format_head(status, headers, Some(body.len())));
        self.send(body);
        self.finish();
    }

    /// Waits until the edge closes the connection.
    pub fn wait_for_hangup(mut self) {
        let _ = self.stream.read_to_end(&mut Vec::new());
    }
}

/// Formats a response head.
pub fn format_head(status: u16, headers: &[&str], len: Option<usize>) -> String {
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

/// An origin whose responses are written by the test.
pub struct ScriptedOrigin {
    pub address: SocketAddr,
    requests: Receiver<OriginExchange>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl ScriptedOrigin {
    pub fn new() -> ScriptedOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, requests) = mpsc::channel();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // The head and the body are written separately. Without this option, Nagle's
                // algorithm could delay the body.
                stream.set_nodelay(true).unwrap();
                let (tell, all) = (tell.clone(), all.clone());
                std::thread::spawn(move || serve_connection(stream, &tell, &all));
            }
        });
        ScriptedOrigin {
            address,
            requests,
            seen,
        }
    }

    /// Starts an origin that calls `reply` for each request and sends the response that `reply`
    /// returns.
    pub fn start_with(
        reply: impl Fn(&OriginExchange) -> (u16, Vec<String>, Vec<u8>) + Send + 'static,
    ) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
        let origin = ScriptedOrigin::new();
        let (address, seen) = (origin.address, origin.seen.clone());
        std::thread::spawn(move || {
            while let Ok(exchange) = origin.requests.recv() {
                let (status, headers, body) = reply(&exchange);
                let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
                exchange.respond(status, &headers, &body);
            }
        });
        (address, seen)
    }

    /// Waits for the next request.
    pub fn next_request(&self) -> OriginExchange {
        self.requests
            .recv_timeout(WAIT_MAX)
            .expect("no request reached the origin")
    }

    /// Returns the number of requests so far.
    pub fn request_count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// Serves one connection. Reads the next request after the test has responded to the previous
/// request.
fn serve_connection(
    mut stream: TcpStream,
    tell: &Sender<OriginExchange>,
    seen: &Mutex<Vec<String>>,
) {
    while let Some(head) = read_head(&mut stream) {
        seen.lock().unwrap().push(head.clone());
        let (next, back) = mpsc::channel();
        let exchange = OriginExchange { head, stream, next };
        if tell.send(exchange).is_err() {
            return;
        }
        match back.recv() {
            Ok(again) => stream = again,
            Err(_) => return,
        }
    }
}
