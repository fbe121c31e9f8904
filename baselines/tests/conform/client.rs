//! An HTTP client that exposes raw bytes and corrects nothing.

use crate::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout for reads and writes. It is longer than any response takes, so only a server that does
/// not respond fails its test.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

pub struct Client {
    stream: BufReader<TcpStream>,
}

pub struct Response {
    pub status: u16,
    head: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(READ_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream: BufReader::new(stream),
        }
    }

    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    pub fn send(&mut self, bytes: &[u8]) {
        assert!(
            self.try_send(bytes),
            "the server does not accept the request"
        );
    }

    pub fn request(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in fields {
            request += &format!("{name}: {value}\r\n");
        }
        self.send((request + "\r\n").as_bytes());
        self.read_response(method == "HEAD")
    }

    /// Reads the next response. The body has the declared length, or ends with the connection.
    pub fn read_response(&mut self, bodiless: bool) -> Response {
        let first = self.read_line();
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {first:?}"));
        let mut head = Vec::new();
        loop {
            let line = self.read_line();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap();
            head.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            head,
            body: Vec::new(),
        };
        if bodiless {
            return response;
        }
        if let Some(length) = response.header("content-length") {
            response.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut response.body).unwrap();
        } else {
            assert_eq!(response.header("connection"), Some("close"), "no length");
            self.stream.read_to_end(&mut response.body).unwrap();
        }
        response
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "a line is truncated: {line:?}");
        line.trim_end().to_owned()
    }

    /// Reads until the connection ends. Returns false if the connection is still open after the
    /// read timeout.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }
}

/// Returns whether the server responds to a new client with this status.
pub fn responds_with(server: &Server, status: u16) -> bool {
    let range = ("Range", "bytes=7-8");
    server.client().request("GET", "/film.mp4", &[range]).status == status
}

/// Requests the whole film, reads the first 1000 bytes, and disconnects.
pub fn disconnect_midway(server: &Server) {
    let mut client = server.client();
    client.send(b"GET /film.mp4 HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut some = [0; 1000];
    client.stream.read_exact(&mut some).unwrap();
}
