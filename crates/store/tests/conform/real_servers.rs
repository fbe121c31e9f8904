//! Checks the local file system, nginx, and an S3 server that verifies signatures.

use crate::nginx::Nginx;
use crate::servers::{ACCESS, S3, SECRET, skip_server, start_s3};
use crate::suite::{
    NAMES, check_library, object_bytes, parse_key, patient_options, uncached_options,
};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use store::{Error, Key, Options, Store, WeightedEndpoint};

/// Creates a folder that nginx's workers can read. If the test runs as root, the workers run as
/// another user.
pub fn create_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

pub fn write_objects(root: &Path) {
    for name in NAMES {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, object_bytes(name)).unwrap();
    }
}

#[test]
fn a_local_folder_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    write_objects(dir.path());
    let path = dir.path().to_str().unwrap();
    check_library(&Store::new(path, patient_options()).unwrap(), true);
    check_library(
        &Store::new(&format!("file://{path}"), patient_options()).unwrap(),
        true,
    );
}

#[test]
fn the_faulty_server_passes_the_suite_without_faults() {
    let objects: Vec<_> = NAMES
        .iter()
        .map(|name| (*name, object_bytes(name)))
        .collect();
    for tagged in [true, false] {
        let server = crate::faulty_server::FaultyServer::new(&objects, tagged);
        for options in [patient_options(), uncached_options()] {
            check_library(&Store::new(&server.url(), options).unwrap(), false);
        }
    }
}

#[test]
fn nginx_passes_the_suite_by_default() {
    let dir = create_folder();
    let library = dir.path().join("films");
    write_objects(&library);
    let Some(nginx) = Nginx::of(dir.path(), &library, "", "") else {
        return;
    };
    for options in [patient_options(), uncached_options()] {
        check_library(&Store::new(&nginx.url(""), options).unwrap(), false);
    }
}

/// Stores the suite's objects through SeaweedFS's filer, which requires no signatures.
pub fn put_all(server: &S3) {
    for name in NAMES {
        server.put(&format!("films/library/{name}"), &object_bytes(name));
    }
}

/// Waits until the S3 interface serves the objects that were stored through the filer.
pub fn wait_for_objects(store: &Store) {
    let until = Instant::now() + Duration::from_secs(30);
    while store.open(&parse_key("film.mp4")).is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns options for the S3 server at `endpoint`.
pub fn s3_options(endpoint: &str, secret: &str) -> Options {
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Options {
        settings: vec![
            set("aws_endpoint_url", endpoint),
            set("aws_access_key_id", ACCESS),
            set("aws_secret_access_key", secret),
            set("aws_region", "us-east-1"),
        ],
        ..patient_options()
    }
}

#[test]
fn an_s3_server_passes_the_suite_and_refuses_a_wrong_signature() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = start_s3(dir.path(), None) else {
        return skip_server("no S3 server: run scripts/storage.sh");
    };
    put_all(&server);
    let at = format!("http://127.0.0.1:{}", server.port);
    let options = |secret| s3_options(&at, secret);
    let store = Store::new("s3://films/library", options(SECRET)).unwrap();
    wait_for_objects(&store);
    check_library(&store, true);
    let wrong = Store::new("s3://films/library", options("guessed")).unwrap();
    for error in [
        wrong.open(&parse_key("film.mp4")).err().unwrap(),
        wrong.list_folder(&Key::ROOT).err().unwrap(),
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
    for error in [
        none.open(&parse_key("film.mp4")).err().unwrap(),
        none.list_folder(&Key::ROOT).err().unwrap(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, Error::Denied(_)), "{text}");
        assert!(text.contains("404 NoSuchBucket; check the name"), "{text}");
    }
    let missing = store.open(&parse_key("missing.mp4"));
    assert!(matches!(missing, Err(Error::NotFound)));
}

#[test]
fn folders_are_listed_by_s3_when_a_plain_http_endpoint_is_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = start_s3(dir.path(), None) else {
        return skip_server("no S3 server: run scripts/storage.sh");
    };
    put_all(&server);
    let at = format!("http://127.0.0.1:{}", server.port);
    let endpoints = [
        ("s3://films/library", 1.0),
        (&*format!("{at}/plain"), 100.0),
    ];
    let endpoints = endpoints.map(|(url, weight)| WeightedEndpoint {
        url: url.to_owned(),
        weight,
    });
    let alone = Store::new("s3://films/library", s3_options(&at, SECRET)).unwrap();
    wait_for_objects(&alone);
    let options = Options {
        endpoints: endpoints.to_vec(),
        ..s3_options(&at, SECRET)
    };
    let store = Store::new("s3://films/library", options).unwrap();
    assert!(!store.list_folder(&Key::ROOT).unwrap().is_empty());
}
