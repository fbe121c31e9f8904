//! Real servers: the local file system, nginx, and an S3 server that checks signatures.

use crate::servers::{ACCESS, SECRET, nginx, s3, skip};
use crate::suite::{NAMES, bytes, check, key, quick};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
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

#[test]
fn nginx_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("films");
    fill(&library);
    let root = format!("root {};", library.display());
    let Some((_nginx, port)) = nginx(dir.path(), "", &root) else {
        return skip("nginx is not installed");
    };
    let url = format!("http://127.0.0.1:{port}/");
    check(&Store::new(&url, quick()).unwrap(), false);
}

/// Puts the suite's objects there, past the door that checks signatures.
pub fn put_all(filer: u16) {
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

/// Until what was put there is there for those who come by the door, too.
pub fn wait(store: &Store) {
    let until = Instant::now() + Duration::from_secs(30);
    while store.open(&key("film.mp4")).is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
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

/// What leads to an S3 server at `endpoint`.
pub fn options(endpoint: &str, secret: &str) -> Options {
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Options {
        settings: vec![
            set("aws_endpoint_url", endpoint),
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
    let Some(server) = s3(dir.path(), None) else {
        return skip("no S3 server: run scripts/storage.sh");
    };
    put_all(server.filer);
    let at = format!("http://127.0.0.1:{}", server.port);
    let options = |secret| options(&at, secret);
    let store = Store::new("s3://films/library", options(SECRET)).unwrap();
    wait(&store);
    check(&store, true);
    let wrong = Store::new("s3://films/library", options("guessed")).unwrap();
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
    let none = Store::new("s3://other/library", options(SECRET)).unwrap();
    assert!(matches!(none.open(&key("film.mp4")), Err(Error::NotFound)));
}
