//! Scripted origins and clients on the wire, and an edge between them in this process.
#![allow(dead_code, unused_imports)] // Each test binary uses its own part.

mod origin;

pub use origin::{Exchange, Origin, head};

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use edge::config::{KNOBS, Settings, command};
use net::Running;
use net::config::{Layers, Sources};

/// No wait of a test is longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What opens the admin port, and how it is said.
pub const TOKEN: &str = "0123456789abcdef";
pub const AUTHORIZED: &str = "Authorization: Bearer 0123456789abcdef";

/// An edge in this process; drained and joined when dropped.
pub struct Edge {
    running: Option<Running>,
    pub address: SocketAddr,
}

impl Edge {
    /// In front of this origin, with these flags beside.
    pub fn new(origin: SocketAddr, flags: &[&str]) -> Edge {
        let origin = format!("http://{origin}");
        let words = [
            "edge",
            "--origin",
            &origin,
            "--listen",
            "127.0.0.1:0",
            "--workers",
            "2",
        ];
        Edge::start(words.iter().chain(flags))
    }

    /// With just these words, `edge` before them.
    pub fn start<'a>(words: impl Iterator<Item = &'a &'a str>) -> Edge {
        let flags = command().get_matches_from(words);
        let read = move || {
            let sources = Sources {
                knobs: KNOBS,
                tables: edge::config::TABLES,
                flags: &flags,
                env: &|_| None,
                read: &|path| std::fs::read_to_string(path),
            };
            Settings::new(&Layers::new(&sources)?)
        };
        let running = edge::start(read, net::Shutdown::new()).unwrap();
        let address = running.addresses()[0];
        Edge {
            running: Some(running),
            address,
        }
    }

    /// Tells it to drain, and waits until it has.
    pub fn drain(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().drain();
            running.join().unwrap();
        }
    }

    pub fn shutdown(&self) -> net::Shutdown {
        self.running.as_ref().unwrap().shutdown().clone()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        self.connect().ask(method, path, headers)
    }

    pub fn connect(&self) -> Client {
        Client::to(self.address)
    }

    /// The same at the admin port.
    pub fn admin(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        self.admin_port().ask(method, path, headers)
    }

    pub fn admin_port(&self) -> Client {
        let address = self.running.as_ref().unwrap().beside(edge::ADMIN).unwrap();
        Client::to(address)
    }

    /// A counter's value.
    pub fn metric(&self, line: &str) -> u64 {
        let answer = match self.running.as_ref().unwrap().beside(edge::ADMIN) {
            None => self.get("/metrics"),
            Some(_) => self.admin("GET", "/metrics", &[AUTHORIZED]),
        };
        let text = String::from_utf8(answer.body).unwrap();
        let prefix = format!("{line} ");
        let found = text.lines().find_map(|row| row.strip_prefix(&prefix));
        found.map_or(0, |value| value.parse().unwrap())
    }

    /// Waits until a metric has this value.
    pub fn until(&self, line: &str, value: u64) {
        for _ in 0..4000 {
            if self.metric(line) == value {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{line} is {}, and not {value}", self.metric(line));
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().stop();
            let _ = running.join();
        }
    }
}

/// A connection to an edge.
pub struct Client {
    pub stream: TcpStream,
}

/// An answer, chunks put together.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body ended as its head promised.
    pub complete: bool,
}

impl Client {
    pub fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream }
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[&str]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: edge\r\n");
        for line in headers {
            head += &format!("{line}\r\n");
        }
        self.stream.write_all((head + "\r\n").as_bytes()).unwrap();
    }

    /// Bytes as they are; whoever reads them may have heard enough.
    pub fn stream_write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn ask(&mut self, method: &str, path: &str, headers: &[&str]) -> Answer {
        self.send(method, path, headers);
        self.answer(method)
    }

    /// The answer's head.
    pub fn head(&mut self) -> Answer {
        self.try_head().expect("no answer")
    }

    fn try_head(&mut self) -> Option<Answer> {
        let head = read_head(&mut self.stream)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(Answer {
            status,
            head,
            body: Vec::new(),
            complete: true,
        })
    }

    /// Exactly so many bytes of the body.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// What is there, at most so many bytes and one at least.
    pub fn some(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let len = self.stream.read(&mut bytes).unwrap();
        bytes.truncate(len);
        bytes
    }

    /// What comes until the connection ends.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => bytes,
        }
    }

    pub fn answer(&mut self, method: &str) -> Answer {
        self.try_answer(method).expect("no answer")
    }

    /// `None`: hung up on before the head's end.
    pub fn try_answer(&mut self, method: &str) -> Option<Answer> {
        let mut answer = self.try_head()?;
        let bodiless = method == "HEAD" || matches!(answer.status, 204 | 304);
        if bodiless {
            return Some(answer);
        }
        if let Some(len) = answer.header("content-length") {
            let len: usize = len.parse().unwrap();
            let mut limited = Read::by_ref(&mut self.stream).take(len as u64);
            let ended = limited.read_to_end(&mut answer.body);
            answer.complete = ended.is_ok() && answer.body.len() == len;
        } else if answer.header("transfer-encoding").is_some() {
            answer.complete = self.chunks(&mut answer.body).is_some();
        } else {
            answer.body = self.rest();
        }
        Some(answer)
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                let mut byte = [0];
                self.stream.read_exact(&mut byte).ok()?;
                line.extend(byte);
            }
            let text = std::str::from_utf8(&line).ok()?.trim();
            let len = usize::from_str_radix(text, 16).ok()?;
            let mut chunk = vec![0; len + 2];
            self.stream.read_exact(&mut chunk).ok()?;
            if len == 0 {
                return Some(());
            }
            body.extend_from_slice(&chunk[..len]);
        }
    }
}

impl Answer {
    /// A header's value, lines joined by a comma.
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Our word in Cache-Status without the ttl, which depends on the clock.
    pub fn cache(&self) -> String {
        let text = self.header("cache-status").unwrap_or_default();
        let parts = text.split("; ").filter(|part| !part.starts_with("ttl="));
        parts.collect::<Vec<_>>().join("; ")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.extend(byte);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
