//! Real servers, started on free ports and ended when dropped.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
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
fn ports(count: usize) -> Vec<u16> {
    let held: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter()
        .map(|port| port.local_addr().unwrap().port())
        .collect()
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

/// Starts nginx in `dir` with one server block; `listen`: what follows the port in its `listen`.
/// None: it is not installed.
pub fn nginx(dir: &Path, listen: &str, server: &str) -> Option<(Process, u16)> {
    let at = dir.display();
    for _ in 0..5 {
        let port = ports(1)[0];
        // One process alone: when it is killed, no worker stays behind.
        let conf = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{}} \
             http {{ access_log off; client_body_temp_path {at}/b; proxy_temp_path {at}/p; \
             fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s; \
             server {{ listen 127.0.0.1:{port} {listen}; {server} }} }}",
        );
        fs::write(dir.join("nginx.conf"), conf).unwrap();
        let mut nginx = Command::new("nginx");
        nginx
            .arg("-p")
            .arg(dir)
            .arg("-c")
            .arg(dir.join("nginx.conf"));
        let mut nginx = Process(nginx.stderr(Stdio::null()).spawn().ok()?);
        if listens(&mut nginx, port, Duration::from_secs(10)) {
            return Some((nginx, port));
        }
    }
    panic!("nginx does not start");
}

pub const ACCESS: &str = "HEADWATERTEST";
pub const SECRET: &str = "not-a-secret-but-one-of-a-test";

/// An S3 server that checks signatures.
pub struct S3 {
    pub port: u16,
    /// The same with TLS, where a certificate was given.
    pub tls_port: u16,
    /// Past the door that checks signatures.
    pub filer: u16,
    _process: Process,
}

/// Starts seaweedfs with one user; with TLS too, where a certificate and key are named. None: it
/// cannot be had.
pub fn s3(dir: &Path, tls: Option<(&Path, &Path)>) -> Option<S3> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/storage/bin/weed");
    let named = std::env::var_os("HEADWATER_WEED").map(PathBuf::from);
    let weed = named.unwrap_or(if ours.exists() { ours } else { "weed".into() });
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
