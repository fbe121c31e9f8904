//! HTTP as its bytes, so that nothing is put right on the way.

use crate::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes, so that a server that falls silent fails its test.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Client {
    stream: BufReader<TcpStream>,
}

pub struct Answer {
    pub status: u16,
    head: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub fn to(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream: BufReader::new(stream),
        }
    }

    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    pub fn send(&mut self, bytes: &[u8]) {
        assert!(self.try_send(bytes), "the server does not take the request");
    }

    pub fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Answer {
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in fields {
            request += &format!("{name}: {value}\r\n");
        }
        self.send((request + "\r\n").as_bytes());
        self.answer(method == "HEAD")
    }

    /// The next answer, with a body of the length it states, or until the end.
    pub fn answer(&mut self, bodiless: bool) -> Answer {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {first:?}"));
        let mut head = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap();
            head.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer {
            status,
            head,
            body: Vec::new(),
        };
        if bodiless {
            return answer;
        }
        if let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut answer.body).unwrap();
        } else {
            assert_eq!(answer.header("connection"), Some("close"), "no length");
            self.stream.read_to_end(&mut answer.body).unwrap();
        }
        answer
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "a line is cut off: {line:?}");
        line.trim_end().to_owned()
    }

    /// Whether the server has hung up, or does so now.
    pub fn at_end(&mut self) -> bool {
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

/// Whether the server still answers others, with this status.
pub fn says(server: &Server, status: u16) -> bool {
    let range = ("Range", "bytes=7-8");
    server.client().ask("GET", "/film.mp4", &[range]).status == status
}

/// Asks for all, takes a little, and hangs up.
pub fn leave_midway(server: &Server) {
    let mut client = server.client();
    client.send(b"GET /film.mp4 HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut some = [0; 1000];
    client.stream.read_exact(&mut some).unwrap();
}
