//! Real servers: the local file system, nginx, and an S3 server that checks signatures.

use crate::suite::{NAMES, bytes, check, key, quick};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use store::{Error, Key, Options, Store};

pub fn fill(root: &Path) {
    for name in NAMES {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes(name)).unwrap();
    }
}

#[test]
fn a_local_folder() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let path = dir.path().to_str().unwrap();
    check(&Store::new(path, quick()).unwrap(), true);
    check(
        &Store::new(&format!("file://{path}"), quick()).unwrap(),
        true,
    );
}

#[test]
fn our_own_server_when_it_does_nothing_wrong() {
    let objects: Vec<_> = NAMES.iter().map(|name| (*name, bytes(name))).collect();
    for tagged in [true, false] {
        let server = crate::wild::Wild::new(&objects, tagged);
        check(&Store::new(&server.url(), quick()).unwrap(), false);
    }
}

/// A process of ours, ended when dropped.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that something is not judged here, past the test harness.
fn skip(why: &str) {
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

#[test]
fn nginx_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("films");
    fill(&library);
    let at = dir.path().display();
    for _ in 0..5 {
        let port = ports(1)[0];
        // One process alone: when it is killed, no worker stays behind.
        let conf = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{}} \
             http {{ access_log off; client_body_temp_path {at}/b; proxy_temp_path {at}/p; \
             fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s; \
             server {{ listen 127.0.0.1:{port}; root {}; }} }}",
            library.display()
        );
        fs::write(dir.path().join("nginx.conf"), conf).unwrap();
        let mut nginx = Command::new("nginx");
        nginx
            .arg("-p")
            .arg(dir.path())
            .arg("-c")
            .arg(dir.path().join("nginx.conf"));
        let Ok(child) = nginx.stderr(Stdio::null()).spawn() else {
            return skip("nginx is not installed");
        };
        let mut nginx = Process(child);
        if listens(&mut nginx, port, Duration::from_secs(10)) {
            let url = format!("http://127.0.0.1:{port}/");
            return check(&Store::new(&url, quick()).unwrap(), false);
        }
    }
    panic!("nginx does not start");
}

const ACCESS: &str = "HEADWATERTEST";
const SECRET: &str = "not-a-secret-but-one-of-a-test";

/// Starts seaweedfs with a bucket `films` that only ours may read. None: it cannot be had.
fn s3(dir: &Path) -> Option<(Process, u16, u16)> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/storage/bin/weed");
    let named = std::env::var_os("HEADWATER_WEED").map(PathBuf::from);
    let weed = named.unwrap_or(if ours.exists() { ours } else { "weed".into() });
    let user = format!(
        r#"{{"identities": [{{"name": "test", "actions": ["Admin", "Read", "List", "Write"],
            "credentials": [{{"accessKey": "{ACCESS}", "secretKey": "{SECRET}"}}]}}]}}"#
    );
    fs::write(dir.join("s3.json"), user).unwrap();
    for _ in 0..3 {
        let free = ports(8);
        let [s3, master, volume, filer, grpc @ ..] = &free[..] else {
            unreachable!("eight were asked for")
        };
        let mut command = Command::new(&weed);
        command.args([
            "-logtostderr=false",
            "server",
            "-s3",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
        ]);
        command.arg(format!("-dir={}", dir.display()));
        command.arg(format!("-s3.config={}", dir.join("s3.json").display()));
        command.arg("-master.telemetry=false");
        command.args([format!("-s3.port={s3}"), format!("-master.port={master}")]);
        command.args([
            format!("-volume.port={volume}"),
            format!("-filer.port={filer}"),
        ]);
        command.args([
            format!("-s3.port.grpc={}", grpc[0]),
            format!("-master.port.grpc={}", grpc[1]),
        ]);
        command.args([
            format!("-volume.port.grpc={}", grpc[2]),
            format!("-filer.port.grpc={}", grpc[3]),
        ]);
        command.args(["-volume.max=8", "-master.volumeSizeLimitMB=64"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Process(command.spawn().ok()?);
        if listens(&mut process, *s3, Duration::from_secs(30)) {
            return Some((process, *s3, *filer));
        }
    }
    None
}

/// Puts the suite's objects there, past the door that checks signatures.
fn put_all(filer: u16) {
    for name in NAMES {
        let until = Instant::now() + Duration::from_secs(30);
        let mut answer = put(filer, name);
        while !answer
            .as_ref()
            .is_ok_and(|status| (200..300).contains(status))
        {
            assert!(Instant::now() < until, "PUT {name}: {answer:?}");
            std::thread::sleep(Duration::from_millis(100));
            answer = put(filer, name);
        }
    }
}

fn put(filer: u16, name: &str) -> std::io::Result<u16> {
    let path: String = format!("/buckets/films/library/{name}")
        .bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' => (b as char).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    let body = bytes(name);
    let mut stream = TcpStream::connect(("127.0.0.1", filer))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Type: video/mp4\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other(answer))
}

fn options(port: u16, secret: &str) -> Options {
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Options {
        settings: vec![
            set("aws_endpoint_url", &format!("http://127.0.0.1:{port}")),
            set("aws_access_key_id", ACCESS),
            set("aws_secret_access_key", secret),
            set("aws_region", "us-east-1"),
        ],
        ..quick()
    }
}

#[test]
fn an_s3_server_that_checks_signatures() {
    let dir = tempfile::tempdir().unwrap();
    let Some((_server, port, filer)) = s3(dir.path()) else {
        return skip("no S3 server: run scripts/storage.sh");
    };
    put_all(filer);
    let store = Store::new("s3://films/library", options(port, SECRET)).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while store.open(&key("film.mp4")).is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    check(&store, true);
    let wrong = Store::new("s3://films/library", options(port, "guessed")).unwrap();
    for error in [
        wrong.open(&key("film.mp4")).err().unwrap(),
        wrong.list(&Key::ROOT).err().unwrap(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, Error::Denied(_)), "{text}");
        assert!(text.contains("403 SignatureDoesNotMatch"), "{text}");
        assert!(
            !text.contains(ACCESS) && !text.contains("guessed"),
            "{text}"
        );
    }
    let none = Store::new("s3://other/library", options(port, SECRET)).unwrap();
    assert!(matches!(none.open(&key("film.mp4")), Err(Error::NotFound)));
}
