//! A server in this process on a free port, and a client that sends exactly the given bytes.
#![allow(dead_code)] // Each test binary uses its own part.

use net::RunningProgram;
use net::lifecycle::ProgramError;
use origin::config::{SETTINGS, ServeSettings, SettingLayers, SettingSources, serve_command};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

/// A library in a folder of its own, and a server over it.
pub struct Served {
    pub root: tempfile::TempDir,
    running: Option<RunningProgram>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The built-in film's files.
pub fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../media/demo")
}

/// Starts a server over this folder with additional flags.
pub fn start(root: &Path, flags: &[&str]) -> Result<RunningProgram, ProgramError> {
    let path = root.to_str().unwrap();
    let words = ["serve", path, "--listen", "127.0.0.1:0", "--workers", "2"];
    let flags = serve_command().get_matches_from(words.iter().chain(flags));
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

impl Served {
    /// Starts a server over a library with `film.mp4` and a folder `film` that holds a ladder and
    /// two languages.
    pub fn new(flags: &[&str]) -> Served {
        let root = tempfile::tempdir().unwrap();
        let film = root.path().join("film");
        fs::create_dir(&film).unwrap();
        for name in [
            "video-180p.mp4",
            "video-360p.mp4",
            "audio-eng.m4a",
            "audio-fra.m4a",
        ] {
            fs::copy(demo().join(name), film.join(name)).unwrap();
        }
        fs::copy(demo().join("video-180p.mp4"), root.path().join("film.mp4")).unwrap();
        Served::over(root, flags)
    }

    /// Starts a server over this folder.
    pub fn over(root: tempfile::TempDir, flags: &[&str]) -> Served {
        let running = Some(start(root.path(), flags).unwrap());
        Served { root, running }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn running(&self) -> &RunningProgram {
        self.running.as_ref().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        self.running().addresses()[0]
    }

    /// Opens a connection and sends a request head.
    pub fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Sends a request with these headers, each ending in `\r\n`.
    pub fn ask(&self, method: &str, target: &str, headers: &str) -> Answer {
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        let mut bytes = Vec::new();
        let mut stream = self.send(&head);
        // A server that responds before it has read everything may reset the connection.
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&bytes)
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "")
    }

    /// Returns the text of a 200 response.
    pub fn text(&self, target: &str) -> String {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        String::from_utf8(answer.body).unwrap()
    }

    /// Returns the value of a counter with its labels; 0 if it is missing.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.text("/metrics");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().stop();
            running.join().unwrap();
        }
    }
}

impl Answer {
    fn of(bytes: &[u8]) -> Answer {
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
        Answer {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    /// Returns the value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}
