//! Key servers on loopback for tests, including servers that fail.

use super::keys::VALUE;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// A key server that sends one response to each request, or no response at all.
pub struct KeyServer {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl KeyServer {
    pub fn new(respond: impl Fn(&str) -> Option<String> + Send + 'static) -> KeyServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        std::thread::spawn(move || {
            // Connections without a response stay open.
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                let response = respond(&request);
                seen.lock().unwrap().push(request);
                match response {
                    Some(response) => _ = stream.write_all(response.as_bytes()),
                    None => silent.push(stream),
                }
            }
        });
        KeyServer { address, requests }
    }

    pub fn url(&self, kind: &str) -> String {
        format!("{kind}:http://{}/keys/{{title}}", self.address)
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

pub fn read_request(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let len = text.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse::<usize>()
                .ok()
        });
        if let Some(end) = text.find("\r\n\r\n")
            && bytes.len() >= end + 4 + len.unwrap_or(0)
        {
            return text;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return text,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

pub fn respond(status: &str, headers: &str, body: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}Connection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// Fills key values into a SPEKE request, as a key server does.
pub fn fill_request(request: &str) -> String {
    let body = request.split_once("\r\n\r\n").unwrap().1;
    let value = format!(
        "><Data><Secret><PlainValue>{VALUE}</PlainValue></Secret></Data></cpix:ContentKey>"
    );
    body.split_inclusive('\n')
        .map(|line| match line.starts_with("<cpix:ContentKey ") {
            true => line.replace("/>", &value),
            false => line.to_owned(),
        })
        .collect()
}
