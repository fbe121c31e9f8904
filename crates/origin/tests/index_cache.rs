//! Tests that the server always serves the current version of a film, with the index cache on disk,
//! in memory, or off.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use support::{TestServer, demo_folder};

/// Creates a library with one film whose modification time is 1,000 seconds ago.
fn create_library() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    replace_film(&root.path().join("film.mp4"), "video-180p.mp4", 1000);
    root
}

/// Replaces a film, and sets its modification time to `seconds` ago.
fn replace_film(to: &Path, name: &str, seconds: u64) {
    let next = to.with_extension("next");
    fs::copy(demo_folder().join(name), &next).unwrap();
    set_age(&next, seconds);
    fs::rename(next, to).unwrap();
}

fn set_age(path: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds))
        .unwrap();
}

fn serve_with_cache(root: tempfile::TempDir, cache: &Path) -> TestServer {
    let folder = cache.to_str().unwrap();
    let flags = [
        "--index-cache",
        "memory+disk",
        "--index-cache-dir",
        folder,
        "--recheck",
        "0s",
    ];
    TestServer::from_folder(root, &flags)
}

/// Returns the JSON description of the film, and the first segment of its first rendition.
fn description_and_segment(server: &TestServer) -> (String, Vec<u8>) {
    let text = server.text("/film.mp4/.json");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rendition = &json["renditions"][0];
    let first = rendition["segments"][0]["t"].to_string();
    let media = rendition["media"].as_str().unwrap().replace("{t}", &first);
    (text, server.get(&format!("/film.mp4/{media}")).body)
}

fn index_reads(server: &TestServer) -> u64 {
    server.metric("headwater_storage_requests_total{reason=\"index\"}")
}

fn cache_lookups(server: &TestServer, result: &str) -> u64 {
    server.metric(&format!(
        "headwater_index_disk_requests_total{{result=\"{result}\"}}"
    ))
}

fn cache_files(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Stops the server and returns its library.
fn stop_server(mut server: TestServer) -> tempfile::TempDir {
    std::mem::replace(&mut server.root, tempfile::tempdir().unwrap())
}

#[test]
fn a_restart_does_not_read_films_again() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve_with_cache(create_library(), cache.path());
    let first = description_and_segment(&server);
    assert!(index_reads(&server) > 0);
    assert_eq!(
        (
            cache_lookups(&server, "hit"),
            cache_lookups(&server, "miss")
        ),
        (0, 1)
    );
    let server = serve_with_cache(stop_server(server), cache.path());
    assert_eq!(description_and_segment(&server), first);
    assert_eq!(index_reads(&server), 0);
    assert_eq!(
        (
            cache_lookups(&server, "hit"),
            cache_lookups(&server, "miss")
        ),
        (1, 0)
    );
    assert!(server.metric("headwater_index_disk_bytes") > 1000);
}

#[test]
fn a_changed_film_is_indexed_again() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve_with_cache(create_library(), cache.path());
    let first = description_and_segment(&server);
    let root = stop_server(server);
    replace_film(&root.path().join("film.mp4"), "video-360p.mp4", 500);
    let server = serve_with_cache(root, cache.path());
    let second = description_and_segment(&server);
    assert_ne!(first, second);
    assert_eq!(cache_lookups(&server, "hit"), 0);
    // The server also detects a change while it runs, even if the new file has the same length.
    let path = server.path("film.mp4");
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].iter_mut().for_each(|byte| *byte = !*byte);
    let next = server.path("next");
    fs::write(&next, bytes).unwrap();
    set_age(&next, 400);
    fs::rename(next, &path).unwrap();
    assert_ne!(description_and_segment(&server), second);
    assert_eq!(cache_files(cache.path()).len(), 1, "one film, one file");
}

#[test]
fn a_recently_modified_film_is_not_stored() {
    let cache = tempfile::tempdir().unwrap();
    let root = create_library();
    replace_film(&root.path().join("film.mp4"), "video-180p.mp4", 0);
    description_and_segment(&serve_with_cache(root, cache.path()));
    assert!(cache_files(cache.path()).is_empty());
}

#[test]
fn damaged_cache_files_are_rebuilt() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve_with_cache(create_library(), cache.path());
    let right = description_and_segment(&server);
    let path = cache_files(cache.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let mut root = stop_server(server);
    let cut = |end: usize| whole[..end].to_vec();
    let flip = |at: usize| {
        let mut other = whole.clone();
        other[at] ^= 0x40;
        other
    };
    let len = whole.len();
    let mut harmed = vec![cut(0), cut(10), cut(len / 2), cut(len - 1), vec![0; len]];
    harmed.extend((0..24).map(|n| flip(n * (len - 1) / 23)));
    for bytes in harmed {
        fs::write(&path, &bytes).unwrap();
        let server = serve_with_cache(root, cache.path());
        assert_eq!(description_and_segment(&server), right);
        assert_eq!(
            (
                cache_lookups(&server, "hit"),
                cache_lookups(&server, "broken")
            ),
            (0, 1)
        );
        assert_eq!(fs::read(&path).unwrap(), whole, "written again");
        root = stop_server(server);
    }
    // Simulates an entry that another program wrote. Its checksum is valid, but it contains no
    // index.
    let disk = store::DiskCache::open_disk_cache(cache.path(), 1 << 20).unwrap();
    let name = format!("{}/film.mp4", root.path().canonicalize().unwrap().display());
    let version = whole[24 + name.len()..][..49].to_vec();
    assert!(
        disk.get(&name, &version).is_some(),
        "the entry of this file is found"
    );
    for junk in [
        &b"junk"[..],
        b"",
        &fs::read(root.path().join("film.mp4")).unwrap(),
    ] {
        disk.put(&name, &version, junk).unwrap();
        let server = serve_with_cache(root, cache.path());
        assert_eq!(description_and_segment(&server), right);
        root = stop_server(server);
    }
}

#[test]
fn without_a_writable_disk_films_are_still_served() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("gone");
    let server = serve_with_cache(create_library(), &folder);
    fs::remove_dir_all(&folder).unwrap();
    let right = description_and_segment(&server);
    assert_eq!(
        right,
        description_and_segment(&serve_with_cache(stop_server(server), cache.path()))
    );
}

#[test]
fn without_a_cache_each_request_reads_its_film() {
    let server = TestServer::from_folder(create_library(), &["--index-cache", "off"]);
    let (first, reads_once) = (description_and_segment(&server), index_reads(&server));
    assert!(reads_once > 0);
    assert_eq!(server.metric("headwater_index_builds_total"), 2);
    assert_eq!(description_and_segment(&server), first);
    assert_eq!(index_reads(&server), 2 * reads_once);
    assert_eq!(server.metric("headwater_index_builds_total"), 4);
    assert_eq!(server.get("/missing.mp4/.m3u8").status, 404);
    let memory = TestServer::from_folder(stop_server(server), &["--index-cache", "memory"]);
    assert_eq!(description_and_segment(&memory), first);
    assert_eq!(memory.metric("headwater_index_builds_total"), 1);
}
