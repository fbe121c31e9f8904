//! Real servers: the local file system, nginx, and an S3 server that checks signatures.

use crate::nginx::Nginx;
use crate::servers::{ACCESS, S3, SECRET, s3, skip};
use crate::suite::{NAMES, bytes, check, key, nothing_kept, usual};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use store::{Error, Key, Options, Store};

/// A folder that nginx's workers may read, too, who are nobody where we are root.
pub fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

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
    check(&Store::new(path, usual()).unwrap(), true);
    check(
        &Store::new(&format!("file://{path}"), usual()).unwrap(),
        true,
    );
}

#[test]
fn our_own_server_when_it_does_nothing_wrong() {
    let objects: Vec<_> = NAMES.iter().map(|name| (*name, bytes(name))).collect();
    for tagged in [true, false] {
        let server = crate::wild::Wild::new(&objects, tagged);
        for options in [usual(), nothing_kept()] {
            check(&Store::new(&server.url(), options).unwrap(), false);
        }
    }
}

#[test]
fn nginx_as_it_comes() {
    let dir = folder();
    let library = dir.path().join("films");
    fill(&library);
    let Some(nginx) = Nginx::of(dir.path(), &library, "", "") else {
        return;
    };
    for options in [usual(), nothing_kept()] {
        check(&Store::new(&nginx.url(""), options).unwrap(), false);
    }
}

/// Puts the suite's objects there, past the door that checks signatures.
pub fn put_all(server: &S3) {
    for name in NAMES {
        server.put(&format!("films/library/{name}"), &bytes(name));
    }
}

/// Until what was put there is there for those who come by the door, too.
pub fn wait(store: &Store) {
    let until = Instant::now() + Duration::from_secs(30);
    while store.open(&key("film.mp4")).is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
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
        ..usual()
    }
}

#[test]
fn an_s3_server_that_checks_signatures() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = s3(dir.path(), None) else {
        return skip("no S3 server: run scripts/storage.sh");
    };
    put_all(&server);
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
