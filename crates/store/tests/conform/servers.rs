//! Starts real servers on free ports. A server is stopped when its value is dropped.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A child process that is killed when dropped.
pub struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reports a skipped test directly on standard error, so that the test harness does not capture the
/// message.
pub fn skip_server(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {why}");
}

/// Returns ports that are currently free. Another process may take such a port first, so callers
/// retry.
pub fn free_ports(count: usize) -> Vec<u16> {
    (0..count).map(|_| crate::nginx::port::free()).collect()
}

/// Sends a request to a local server and returns the response's status. Does not normalize `path`.
pub fn request_status(
    port: u16,
    method: &str,
    path: &str,
    head: &str,
    body: &[u8],
) -> io::Result<u16> {
    let response = fetch_response(port, method, path, head, body)?;
    let status = response.split(' ').nth(1);
    let status = status.and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other(response))
}

/// Sends a request to a local server and returns the whole response as text.
pub fn fetch_response(
    port: u16,
    method: &str,
    path: &str,
    head: &str,
    body: &[u8],
) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{head}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

/// Percent-encodes the path of a URL.
pub fn percent_escape(path: &str) -> String {
    let one = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' => (b as char).to_string(),
        other => format!("%{other:02X}"),
    };
    path.bytes().map(one).collect()
}

/// Returns the path of a server program that `scripts/storage.sh` has installed below `target/`.
pub fn download_server(path: &str) -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above
        .map(|above| above.join("target").join(path))
        .find(|path| path.exists())
}

/// Starts a server and waits until it listens on `port`.
pub fn start_server(port: u16, command: &mut Command) -> Option<Process> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Process(command.spawn().ok()?);
    accepts_connections(&mut process, port, Duration::from_secs(60)).then_some(process)
}

fn accepts_connections(process: &mut Process, port: u16, patience: Duration) -> bool {
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
    /// The port for TLS, if a certificate was given.
    pub tls_port: u16,
    /// The port of SeaweedFS's filer, which stores objects without requiring a signature.
    filer: u16,
    process: Process,
}

impl S3 {
    /// Waits until the filer and the S3 part answer. Returns `false` if the server ends before.
    fn becomes_ready(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while Instant::now() < until && matches!(self.process.0.try_wait(), Ok(None)) {
            // Without its gRPC port the S3 part listens, but ends before it answers a request.
            let answers = |port| request_status(port, "GET", "/", "", b"").is_ok();
            if answers(self.filer) && answers(self.port) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }

    /// Stores an object (`bucket/name`), and retries until the server is ready.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let until = Instant::now() + Duration::from_secs(30);
        let mut response = self.try_put(name, bytes);
        while !response
            .as_ref()
            .is_ok_and(|status| (200..300).contains(status))
        {
            assert!(Instant::now() < until, "PUT {name}: {response:?}");
            std::thread::sleep(Duration::from_millis(100));
            response = self.try_put(name, bytes);
        }
    }

    fn try_put(&self, name: &str, bytes: &[u8]) -> io::Result<u16> {
        let path = percent_escape(&format!("/buckets/{name}"));
        request_status(
            self.filer,
            "PUT",
            &path,
            "Content-Type: video/mp4\r\n",
            bytes,
        )
    }
}

/// Starts SeaweedFS with one user, and with TLS if a certificate and key are given. Returns `None`
/// if SeaweedFS is not installed or does not start.
pub fn start_s3(dir: &Path, tls: Option<(&Path, &Path)>) -> Option<S3> {
    let named = std::env::var_os("HEADWATER_WEED").map(PathBuf::from);
    let found = named.or_else(|| download_server("storage/bin/weed"));
    let weed = found.unwrap_or_else(|| "weed".into());
    let user = format!(
        r#"{{"identities": [{{"name": "test", "actions": ["Admin", "Read", "List", "Write"],
            "credentials": [{{"accessKey": "{ACCESS}", "secretKey": "{SECRET}"}}]}}]}}"#
    );
    fs::write(dir.join("s3.json"), user).unwrap();
    for _ in 0..3 {
        let free = free_ports(9);
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
        // Another process can take one of the nine ports before SeaweedFS listens on it.
        // SeaweedFS then ends, but some of the other ports may have accepted connections.
        let ports = [free[0], free[3], last];
        let accepts = |port| accepts_connections(&mut process, port, patience);
        if !ports.into_iter().all(accepts) {
            continue;
        }
        let mut server = S3 {
            port: free[0],
            tls_port: free[8],
            filer: free[3],
            process,
        };
        if server.becomes_ready(patience) {
            return Some(server);
        }
    }
    None
}
