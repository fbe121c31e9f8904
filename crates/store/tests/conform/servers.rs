//! Real servers, started on free ports and ended when dropped.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process of ours, ended when dropped.
pub struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that something is not judged here, past the test harness.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {why}");
}

/// Ports that are free now. Whoever takes them may be too late; then the test begins again.
pub fn ports(count: usize) -> Vec<u16> {
    (0..count).map(|_| crate::nginx::port::free()).collect()
}

/// Sends a request to a server of this machine, path as it is, and gives the status of its answer.
pub fn send(port: u16, method: &str, path: &str, head: &str, body: &[u8]) -> io::Result<u16> {
    let answer = ask(port, method, path, head, body)?;
    let status = answer.split(' ').nth(1);
    let status = status.and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other(answer))
}

/// The same, and gives the answer as it came.
pub fn ask(port: u16, method: &str, path: &str, head: &str, body: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{head}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A path of a URL, escaped.
pub fn escaped(path: &str) -> String {
    let one = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' => (b as char).to_string(),
        other => format!("%{other:02X}"),
    };
    path.bytes().map(one).collect()
}

/// What scripts/storage.sh brought, below target/.
pub fn brought(path: &str) -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above
        .map(|above| above.join("target").join(path))
        .find(|path| path.exists())
}

/// Starts a server that listens on a port that is free now.
pub fn start(port: u16, command: &mut Command) -> Option<Process> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Process(command.spawn().ok()?);
    listens(&mut process, port, Duration::from_secs(60)).then_some(process)
}

fn listens(process: &mut Process, port: u16, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return true;
        }
        if process.0.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

pub const ACCESS: &str = "HEADWATERTEST";
pub const SECRET: &str = "not-a-secret-but-one-of-a-test";

/// An S3 server that checks signatures.
pub struct S3 {
    pub port: u16,
    /// The same with TLS, where a certificate was given.
    pub tls_port: u16,
    /// Past the door that checks signatures.
    filer: u16,
    _process: Process,
}

impl S3 {
    /// Puts an object there (`bucket/name`), once the server is ready to take it.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let until = Instant::now() + Duration::from_secs(30);
        let mut answer = self.try_put(name, bytes);
        while !answer
            .as_ref()
            .is_ok_and(|status| (200..300).contains(status))
        {
            assert!(Instant::now() < until, "PUT {name}: {answer:?}");
            std::thread::sleep(Duration::from_millis(100));
            answer = self.try_put(name, bytes);
        }
    }

    fn try_put(&self, name: &str, bytes: &[u8]) -> io::Result<u16> {
        let path = escaped(&format!("/buckets/{name}"));
        send(
            self.filer,
            "PUT",
            &path,
            "Content-Type: video/mp4\r\n",
            bytes,
        )
    }
}

/// Starts seaweedfs with one user; with TLS too, where a certificate and key are named. None: it
/// cannot be had.
pub fn s3(dir: &Path, tls: Option<(&Path, &Path)>) -> Option<S3> {
    let named = std::env::var_os("HEADWATER_WEED").map(PathBuf::from);
    let found = named.or_else(|| brought("storage/bin/weed"));
    let weed = found.unwrap_or_else(|| "weed".into());
    let user = format!(
        r#"{{"identities": [{{"name": "test", "actions": ["Admin", "Read", "List", "Write"],
            "credentials": [{{"accessKey": "{ACCESS}", "secretKey": "{SECRET}"}}]}}]}}"#
    );
    fs::write(dir.join("s3.json"), user).unwrap();
    for _ in 0..3 {
        let free = ports(9);
        let mut command = Command::new(&weed);
        command.args(["-logtostderr=false", "server", "-s3"]);
        command.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1"]);
        command.args(["-volume.max=8", "-master.volumeSizeLimitMB=64"]);
        command.args([
            "-master.telemetry=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
        ]);
        command.arg(format!("-dir={}", dir.display()));
        command.arg(format!("-s3.config={}", dir.join("s3.json").display()));
        const PORTS: [&str; 8] = [
            "s3.port",
            "master.port",
            "volume.port",
            "filer.port",
            "s3.port.grpc",
            "master.port.grpc",
            "volume.port.grpc",
            "filer.port.grpc",
        ];
        for (name, port) in PORTS.iter().zip(&free) {
            command.arg(format!("-{name}={port}"));
        }
        if let Some((certificate, key)) = tls {
            command.arg(format!("-s3.port.https={}", free[8]));
            command.arg(format!("-s3.cert.file={}", certificate.display()));
            command.arg(format!("-s3.key.file={}", key.display()));
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Process(command.spawn().ok()?);
        let patience = Duration::from_secs(30);
        let last = if tls.is_some() { free[8] } else { free[0] };
        if listens(&mut process, free[0], patience) && listens(&mut process, last, patience) {
            return Some(S3 {
                port: free[0],
                tls_port: free[8],
                filer: free[3],
                _process: process,
            });
        }
    }
    None
}
