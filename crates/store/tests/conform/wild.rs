//! An HTTP server of our own, which answers as it is told: rightly, or in some wrong way.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// 200 and the whole object, whatever was asked for.
    NoRange,
    /// 206 with another range in its head.
    OtherRange,
    /// 206 without a Content-Range.
    NoContentRange,
    /// So many bytes of the body, then the connection is closed.
    Cut(usize),
    /// So many bytes of the body, then nothing more comes.
    Stall(usize),
    /// A body without a length that ends too soon, rightly coded.
    Short,
    /// A body without a length that is longer than the range.
    Long,
    /// One byte of the head, then nothing.
    NoHead,
    /// One byte of the body every 50 ms.
    Loris,
    /// This status.
    Status(u16),
    /// The connection is closed without an answer.
    Close,
    /// Sends to another place on the same server that holds the same object.
    Redirect,
    /// Sends to another server.
    Elsewhere,
    /// Sends to itself, again and again.
    Round,
    /// From now on the object is another one, and conditions are honoured.
    Change,
    /// The same, but conditions are ignored.
    ChangeUnsaid,
    /// No HTTP at all.
    Garbage,
}

pub struct Wild {
    pub addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    objects: Mutex<HashMap<String, Vec<u8>>>,
    faults: Mutex<VecDeque<Fault>>,
    /// Kind of every object now; more than 0: changed, and what it says of conditions.
    version: Mutex<(u8, bool)>,
    requests: AtomicUsize,
    accepted: AtomicUsize,
    etag: bool,
    delay: Mutex<Duration>,
}

impl Wild {
    /// A server of these objects. `etag`: whether it tags them.
    pub fn new(objects: &[(&str, Vec<u8>)], etag: bool) -> Wild {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let objects = objects
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), bytes.clone()));
        let shared = Arc::new(Shared {
            objects: Mutex::new(objects.collect()),
            faults: Mutex::default(),
            version: Mutex::new((0, true)),
            requests: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            etag,
            delay: Mutex::default(),
        });
        let theirs = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                theirs.accepted.fetch_add(1, SeqCst);
                let shared = theirs.clone();
                std::thread::spawn(move || shared.connection(stream));
            }
        });
        Wild { addr, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// What is wrong with the next answers, in order; after them all is well.
    pub fn script(&self, faults: &[Fault]) {
        *self.shared.faults.lock().unwrap() = faults.iter().copied().collect();
    }

    pub fn faults_left(&self) -> usize {
        self.shared.faults.lock().unwrap().len()
    }

    /// How long every answer waits.
    pub fn delay(&self, delay: Duration) {
        *self.shared.delay.lock().unwrap() = delay;
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(SeqCst)
    }

    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }

    /// All objects are again what they were.
    pub fn heal(&self) {
        self.script(&[]);
        *self.shared.version.lock().unwrap() = (0, true);
    }
}

struct Asked {
    method: String,
    path: String,
    range: Option<(u64, u64)>,
    if_match: Option<String>,
    unmodified: Option<String>,
}

impl Shared {
    fn connection(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some(asked) = read(&mut reader) {
            self.requests.fetch_add(1, SeqCst);
            std::thread::sleep(*self.delay.lock().unwrap());
            let fault = self
                .faults
                .lock()
                .unwrap()
                .pop_front()
                .unwrap_or(Fault::None);
            if self.answer(&asked, fault, &mut stream).is_none() {
                return;
            }
        }
    }

    /// None: the connection is to be closed.
    fn answer(&self, asked: &Asked, fault: Fault, out: &mut TcpStream) -> Option<()> {
        if let Fault::Change | Fault::ChangeUnsaid = fault {
            let mut version = self.version.lock().unwrap();
            *version = (version.0 + 1, fault == Fault::Change);
        }
        let (version, honest) = *self.version.lock().unwrap();
        let path = asked.path.strip_prefix("/elsewhere").unwrap_or(&asked.path);
        let name = decoded(path.trim_start_matches('/'));
        let bytes = self.objects.lock().unwrap().get(&name).cloned();
        let Some(mut bytes) = bytes else {
            return say(out, "404 Not Found", "", b"not here");
        };
        bytes
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_add(version));
        let tag = format!("\"v{version}-{}\"", bytes.len());
        let date = format!("Sat, 21 Nov 2026 10:00:0{version} GMT");
        let mut head = format!("Last-Modified: {date}\r\n");
        if self.etag {
            head += &format!("ETag: {tag}\r\n");
        }
        let other = asked.if_match.as_ref().is_some_and(|wanted| *wanted != tag)
            || asked
                .unmodified
                .as_ref()
                .is_some_and(|wanted| *wanted != date);
        if other && honest {
            return say(out, "412 Precondition Failed", "", b"");
        }
        match fault {
            Fault::Close => return None,
            Fault::Garbage => {
                let _ = out.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n");
                return None;
            }
            Fault::Status(status) => {
                let xml = b"<Error><Code>AccessDenied</Code><Key>SECRET</Key></Error>";
                return say(out, &format!("{status} So"), "", xml);
            }
            Fault::NoHead => return wait(out, b"H"),
            Fault::Redirect if path == asked.path => {
                let to = format!("Location: /elsewhere{}\r\n", asked.path);
                return say(out, "302 Found", &to, b"");
            }
            Fault::Elsewhere => {
                return say(out, "302 Found", "Location: http://192.0.2.1/x\r\n", b"");
            }
            Fault::Round => {
                let to = format!("Location: {}\r\n", asked.path);
                return say(out, "302 Found", &to, b"");
            }
            _ => {}
        }
        if asked.method == "HEAD" {
            let head = format!("{head}Content-Length: {}\r\n", bytes.len());
            return out
                .write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes())
                .ok();
        }
        let len = bytes.len() as u64;
        let Some((first, last)) = asked.range else {
            return say(out, "200 OK", &head, &bytes);
        };
        if first >= len {
            let head = format!("Content-Range: bytes */{len}\r\n");
            return say(out, "416 Range Not Satisfiable", &head, b"");
        }
        let last = last.min(len - 1);
        let body = &bytes[first as usize..=last as usize];
        let range = format!("{head}Content-Range: bytes {first}-{last}/{len}\r\n");
        send(out, fault, &head, &range, (first, last, len), body, &bytes)
    }
}

fn send(
    out: &mut TcpStream,
    fault: Fault,
    head: &str,
    range: &str,
    (first, last, len): (u64, u64, u64),
    body: &[u8],
    whole: &[u8],
) -> Option<()> {
    let started = |out: &mut TcpStream| {
        let head = format!(
            "HTTP/1.1 206 Partial\r\n{range}Content-Length: {}\r\n\r\n",
            body.len()
        );
        out.write_all(head.as_bytes()).ok()
    };
    let chunked = |out: &mut TcpStream, body: &[u8]| {
        let head = format!("HTTP/1.1 206 Partial\r\n{range}Transfer-Encoding: chunked\r\n\r\n");
        out.write_all(head.as_bytes()).ok()?;
        if !body.is_empty() {
            out.write_all(format!("{:x}\r\n", body.len()).as_bytes())
                .ok()?;
            out.write_all(body).ok()?;
            out.write_all(b"\r\n").ok()?;
        }
        out.write_all(b"0\r\n\r\n").ok()
    };
    match fault {
        Fault::NoRange => say(out, "200 OK", head, whole),
        Fault::OtherRange => {
            let other = format!(
                "{head}Content-Range: bytes {}-{}/{len}\r\n",
                first + 1,
                last + 1
            );
            say(out, "206 Partial", &other, body)
        }
        Fault::NoContentRange => say(out, "206 Partial", head, body),
        Fault::Cut(n) => {
            started(out)?;
            let _ = out.write_all(&body[..n.min(body.len())]);
            None
        }
        Fault::Stall(n) => {
            started(out)?;
            wait(out, &body[..n.min(body.len())])
        }
        Fault::Short => chunked(out, &body[..body.len() / 2]),
        Fault::Long => chunked(out, &[body, b"and more"].concat()),
        Fault::Loris => {
            started(out)?;
            for byte in body {
                out.write_all(&[*byte]).ok()?;
                std::thread::sleep(Duration::from_millis(50));
            }
            None
        }
        _ => say(out, "206 Partial", range, body),
    }
}

fn say(out: &mut TcpStream, status: &str, head: &str, body: &[u8]) -> Option<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n",
        body.len()
    );
    out.write_all(head.as_bytes()).ok()?;
    out.write_all(body).ok()
}

/// Sends a little, and then nothing until the other end has gone.
fn wait(out: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    out.write_all(bytes).ok()?;
    let mut rest = [0; 1024];
    while std::io::Read::read(out, &mut rest).is_ok_and(|n| n > 0) {}
    None
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let mut asked = Asked {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        range: None,
        if_match: None,
        unmodified: None,
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Some(asked);
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                asked.range = Some((first.parse().ok()?, last.parse().unwrap_or(u64::MAX)));
            }
            "if-match" => asked.if_match = Some(value.to_owned()),
            "if-unmodified-since" => asked.unmodified = Some(value.replace("+0000", "GMT")),
            _ => {}
        }
    }
}

fn decoded(path: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                let hex = std::str::from_utf8(&hex).unwrap();
                out.push(u8::from_str_radix(hex, 16).unwrap());
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}
