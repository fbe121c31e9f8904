//! Scripted origins and clients, and an edge that runs between them in the test process.
#![allow(dead_code, unused_imports)] // Each test binary uses its own part.

mod origin;

pub use origin::{OriginExchange, ScriptedOrigin, format_head};

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use edge::config::{EdgeSettings, SETTINGS, define_edge_command};
use net::RunningProgram;
use net::config::{SettingLayers, SettingSources};

/// Time limit for each wait of a test.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Token of the admin port, alone and as a request header.
pub const ADMIN_TOKEN: &str = "0123456789abcdef";
pub const ADMIN_AUTHORIZATION: &str = "Authorization: Bearer 0123456789abcdef";

/// An edge in this process, which is stopped when this value is dropped.
pub struct TestEdge {
    running: Option<RunningProgram>,
    pub address: SocketAddr,
}

impl TestEdge {
    /// Starts an edge in front of this origin, with further flags.
    pub fn new(origin: SocketAddr, flags: &[&str]) -> TestEdge {
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
        TestEdge::start(words.iter().chain(flags))
    }

    /// Starts an edge with exactly these command-line arguments. The first argument is the program
    /// name.
    pub fn start<'a>(words: impl Iterator<Item = &'a &'a str>) -> TestEdge {
        let flags = define_edge_command().get_matches_from(words);
        let read = move || {
            let sources = SettingSources {
                settings: SETTINGS,
                tables: edge::config::TABLES,
                flags: &flags,
                env: &|_| None,
                read: &|path| std::fs::read_to_string(path),
            };
            EdgeSettings::from_layers(&SettingLayers::new(&sources)?)
        };
        let running = edge::start_edge(read, net::Shutdown::new()).unwrap();
        let address = running.main_addresses()[0];
        TestEdge {
            running: Some(running),
            address,
        }
    }

    /// Drains the edge, and waits until it has stopped.
    pub fn drain(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().drain();
            running.join().unwrap();
        }
    }

    pub fn shutdown(&self) -> net::Shutdown {
        self.running.as_ref().unwrap().shutdown().clone()
    }

    pub fn get_path(&self, path: &str) -> RawResponse {
        self.request("GET", path, &[])
    }

    pub fn request(&self, method: &str, path: &str, headers: &[&str]) -> RawResponse {
        self.connect().request(method, path, headers)
    }

    pub fn connect(&self) -> RawClient {
        RawClient::connect_to(self.address)
    }

    /// Sends a request to the admin port.
    pub fn request_admin(&self, method: &str, path: &str, headers: &[&str]) -> RawResponse {
        self.admin_port().request(method, path, headers)
    }

    pub fn admin_port(&self) -> RawClient {
        let address = self
            .running
            .as_ref()
            .unwrap()
            .port_address(edge::ADMIN)
            .unwrap();
        RawClient::connect_to(address)
    }

    /// Returns the value of a metric, or 0 if the metric is missing.
    pub fn read_metric(&self, line: &str) -> u64 {
        let response = match self.running.as_ref().unwrap().port_address(edge::ADMIN) {
            None => self.get_path("/metrics"),
            Some(_) => self.request_admin("GET", "/metrics", &[ADMIN_AUTHORIZATION]),
        };
        let text = String::from_utf8(response.body).unwrap();
        let prefix = format!("{line} ");
        let found = text.lines().find_map(|row| row.strip_prefix(&prefix));
        found.map_or(0, |value| value.parse().unwrap())
    }

    /// Waits until a metric has this value.
    pub fn wait_for_metric(&self, line: &str, value: u64) {
        for _ in 0..4000 {
            if self.read_metric(line) == value {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{line} is {}, expected {value}", self.read_metric(line));
    }
}

impl Drop for TestEdge {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().stop();
            let _ = running.join();
        }
    }
}

/// A connection to an edge.
pub struct RawClient {
    pub stream: TcpStream,
}

/// A response. If its body was chunked, `body` contains the decoded data.
#[derive(Debug, Clone)]
pub struct RawResponse {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the complete body arrived, according to the framing in the head.
    pub complete: bool,
}

impl RawClient {
    pub fn connect_to(address: SocketAddr) -> RawClient {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        RawClient { stream }
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[&str]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: edge\r\n");
        for line in headers {
            head += &format!("{line}\r\n");
        }
        self.stream.write_all((head + "\r\n").as_bytes()).unwrap();
    }

    /// Writes raw bytes. Ignores errors, because the edge may have closed the connection.
    pub fn write_ignoring_errors(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &[&str]) -> RawResponse {
        self.send(method, path, headers);
        self.read_response(method)
    }

    /// Reads the head of a response.
    pub fn read_head(&mut self) -> RawResponse {
        self.try_read_head().expect("no response")
    }

    fn try_read_head(&mut self) -> Option<RawResponse> {
        let head = read_head(&mut self.stream)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(RawResponse {
            status,
            head,
            body: Vec::new(),
            complete: true,
        })
    }

    /// Reads exactly `count` bytes from the connection.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Waits for data, and reads at most `count` bytes.
    pub fn read_some(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let len = self.stream.read(&mut bytes).unwrap();
        bytes.truncate(len);
        bytes
    }

    /// Reads until the connection closes.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => bytes,
        }
    }

    pub fn read_response(&mut self, method: &str) -> RawResponse {
        self.try_read_response(method).expect("no response")
    }

    /// Returns `None` if the connection closed before the end of the head.
    pub fn try_read_response(&mut self, method: &str) -> Option<RawResponse> {
        let mut response = self.try_read_head()?;
        let bodiless = method == "HEAD" || matches!(response.status, 204 | 304);
        if bodiless {
            return Some(response);
        }
        if let Some(len) = response.header("content-length") {
            let len: usize = len.parse().unwrap();
            let mut limited = Read::by_ref(&mut self.stream).take(len as u64);
            let ended = limited.read_to_end(&mut response.body);
            response.complete = ended.is_ok() && response.body.len() == len;
        } else if response.header("transfer-encoding").is_some() {
            response.complete = self.read_chunks(&mut response.body).is_some();
        } else {
            response.body = self.read_to_end();
        }
        Some(response)
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
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

impl RawResponse {
    /// Returns the value of a header. If the header has several lines, joins their values by
    /// commas.
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

    /// Returns the Cache-Status header without its `ttl` parameter, which depends on the clock.
    pub fn cache_status(&self) -> String {
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
