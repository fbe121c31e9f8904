//! A server in this process on a free port, and a client that sends exactly the given bytes.
#![allow(dead_code)] // Each test binary uses only a part of this module.

pub mod encrypted_films;
pub mod key_server;
pub mod keys;

use net::RunningProgram;
use net::lifecycle::FatalError;
use origin::config::{
    SETTINGS, ServeSettings, SettingLayers, SettingSources, define_serve_command,
};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A server whose library is a temporary folder.
pub struct TestServer {
    pub root: tempfile::TempDir,
    running: Option<RunningProgram>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct TestResponse {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Maximum time to wait for a condition. On a busy machine, a condition may take many seconds.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits until a condition is true. Panics with `what` if this takes too long.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < WAIT_MAX,
            "not within {WAIT_MAX:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the folder with the files of the built-in film.
pub fn demo_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../media/demo")
}

/// Starts a server with the library `root` and additional flags.
pub fn start(root: &Path, flags: &[&str]) -> Result<RunningProgram, FatalError> {
    let path = root.to_str().unwrap();
    let arguments = ["serve", path, "--listen", "127.0.0.1:0", "--workers", "2"];
    let flags = define_serve_command().get_matches_from(arguments.iter().chain(flags));
    let none = |_: &str| None;
    let read = |path: &str| fs::read_to_string(path);
    let sources = SettingSources {
        settings: SETTINGS,
        tables: &[],
        flags: &flags,
        env: &none,
        read: &read,
    };
    let settings = ServeSettings::new(&SettingLayers::new(&sources).unwrap()).unwrap();
    origin::start(&settings, net::Shutdown::new())
}

impl TestServer {
    /// Starts a server. Its library contains `film.mp4` and a folder `film` with an ABR ladder and
    /// audio in two languages.
    pub fn new(flags: &[&str]) -> TestServer {
        let root = tempfile::tempdir().unwrap();
        let film = root.path().join("film");
        fs::create_dir(&film).unwrap();
        for name in [
            "video-180p.mp4",
            "video-360p.mp4",
            "audio-eng.m4a",
            "audio-fra.m4a",
        ] {
            fs::copy(demo_folder().join(name), film.join(name)).unwrap();
        }
        fs::copy(
            demo_folder().join("video-180p.mp4"),
            root.path().join("film.mp4"),
        )
        .unwrap();
        TestServer::from_folder(root, flags)
    }

    /// Starts a server whose library is this folder.
    pub fn from_folder(root: tempfile::TempDir, flags: &[&str]) -> TestServer {
        let running = Some(start(root.path(), flags).unwrap());
        TestServer { root, running }
    }

    /// Wraps a server that was started with another library, for example a remote library.
    pub fn from_running(running: RunningProgram) -> TestServer {
        TestServer {
            root: tempfile::tempdir().unwrap(),
            running: Some(running),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn running(&self) -> &RunningProgram {
        self.running.as_ref().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        self.running().main_addresses()[0]
    }

    /// Opens a connection and sends a request head.
    pub fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Sends a request with these headers, each ending in `\r\n`.
    pub fn request(&self, method: &str, target: &str, headers: &str) -> TestResponse {
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        let mut bytes = Vec::new();
        let mut stream = self.send(&head);
        // Ignores the error, because a server that responds before it has read the whole request
        // may reset the connection.
        let _ = stream.read_to_end(&mut bytes);
        TestResponse::from_bytes(&bytes)
    }

    pub fn get(&self, target: &str) -> TestResponse {
        self.request("GET", target, "")
    }

    /// Returns the text of a 200 response.
    pub fn text(&self, target: &str) -> String {
        let response = self.get(target);
        assert_eq!(response.status, 200, "{target}: {response:?}");
        String::from_utf8(response.body).unwrap()
    }

    /// Returns the value of a metric. `name` includes the labels. Returns 0 if the metric is
    /// missing.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.text("/metrics");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().unwrap())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().stop();
            running.join().unwrap();
        }
    }
}

impl TestResponse {
    fn from_bytes(bytes: &[u8]) -> TestResponse {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        TestResponse {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    /// Returns the value of a header, or an empty string if the header is missing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}
