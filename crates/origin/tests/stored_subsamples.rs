//! Tests of subsamples that are known before the media is read. Encrypted segments can then be
//! streamed from storage.
#![allow(clippy::unwrap_used)]

mod support;

use origin::index_command::{define_index_command, run_index};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use support::keys::*;
use support::{TestServer, demo_folder, start};

const READS: &str = "headwater_storage_requests_total{reason=\"segment\"}";

/// Metric of the Headwater server that is used as storage. This metric counts one read for each
/// range that the server serves.
const STORED_READS: &str = "headwater_storage_requests_total{reason=\"plain\"}";

/// Returns a folder with `film.mp4`.
fn make_film() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let film = root.path().join("film.mp4");
    std::fs::copy(demo_folder().join("video-360p.mp4"), film).unwrap();
    root
}

/// Writes the index files `film-index.mp4` and `film.ism` of a film to a folder.
fn write_index(film: &str, folder: &Path, flags: &[&str]) {
    let own = ["index", film, "-o", folder.to_str().unwrap()];
    let flags = define_index_command().get_matches_from(own.iter().chain(flags));
    assert_eq!(run_index(&flags), std::process::ExitCode::SUCCESS);
}

/// Makes a library with a film and its index.
fn make_library(flags: &[&str]) -> tempfile::TempDir {
    let root = make_film();
    let film = root.path().join("film.mp4");
    write_index(film.to_str().unwrap(), root.path(), flags);
    root
}

/// Makes a library with an index of a film. The film itself is stored at a URL.
fn make_remote_library(url: &str, flags: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write_index(&format!("{url}/film.mp4"), root.path(), flags);
    root
}

/// Serves a folder of films. The films are encrypted with keys that are derived from a secret.
fn serve(root: &Path, scheme: &str, secret: &TextFile, flags: &[&str]) -> TestServer {
    let keys = secret.keys("secret");
    let own = [
        "--segment",
        "2s",
        "--drm-keys",
        &keys,
        "--drm-scheme",
        scheme,
    ];
    TestServer::from_running(start(root, &[&own, flags].concat()).unwrap())
}

/// A proxy in front of a storage server. The storage server counts requests, and the proxy can
/// withhold the rest of a response.
struct SlowStorage {
    url: String,
    /// The proxy sends approximately this number of bytes of the next response, and then waits for
    /// `resume`.
    limit: Arc<Mutex<Option<usize>>>,
    resume: Sender<()>,
}

impl SlowStorage {
    fn new(storage: std::net::SocketAddr) -> SlowStorage {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let limit = Arc::new(Mutex::new(None));
        let (resume, resumed) = channel();
        let (of_thread, resumed) = (limit.clone(), Arc::new(Mutex::new(resumed)));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), limit, resumed) = (client, of_thread.clone(), resumed.clone())
                else {
                    break;
                };
                let upstream = TcpStream::connect(storage).unwrap();
                let (mut requests, mut to) =
                    (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut requests, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
                std::thread::spawn(move || pass_on(upstream, client, &limit, &resumed));
            }
        });
        SlowStorage { url, limit, resume }
    }
}

fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    limit: &Mutex<Option<usize>>,
    resumed: &Mutex<Receiver<()>>,
) {
    let (mut buffer, mut passed) = ([0; 2048], 0);
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        let is_over = limit.lock().unwrap().is_some_and(|limit| passed > limit);
        if is_over {
            let _ = resumed.lock().unwrap().recv();
            *limit.lock().unwrap() = None;
        }
        if limit.lock().unwrap().is_some() {
            passed += len;
        }
        if to.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn key_frames_and_segments(server: &TestServer, title: &str) -> Vec<String> {
    let all = playlists(server, title);
    assert_eq!(all.len(), 2, "segments and key frames: {all:?}");
    all.iter().flat_map(|list| segments(server, list)).collect()
}

/// Finds the media segments of a title.
fn media_segments(server: &TestServer, title: &str) -> Vec<String> {
    let all = playlists(server, title);
    let list = all.iter().find(|name| name.ends_with("/hls.m3u8")).unwrap();
    segments(server, list).split_off(1)
}

#[test]
fn an_index_with_subsamples_serves_the_same_encrypted_bytes() {
    let secret = TextFile::new(SECRET);
    let (plain, mapped) = (make_library(&[]), make_library(&["--subsamples"]));
    let size = |root: &Path| std::fs::read(root.join("film-index.mp4")).unwrap().len();
    // The film has 1,200 pictures with one slice each. The subsamples of a picture take nine bytes
    // in the index.
    assert!(size(mapped.path()) > size(plain.path()) + 8 * 1200);
    for scheme in ["cbcs", "cenc"] {
        let ours = serve(mapped.path(), scheme, &secret, &[]);
        let theirs = serve(plain.path(), scheme, &secret, &[]);
        let (urls, expected) = (
            key_frames_and_segments(&ours, "film.ism"),
            key_frames_and_segments(&theirs, "film.ism"),
        );
        assert!(urls.len() > 20, "{urls:?}");
        for (url, other) in urls.iter().zip(&expected) {
            let head = ours.request("HEAD", url, "");
            let (own, expected) = (ours.get(url), theirs.get(other));
            assert_eq!(
                (own.status, expected.status, &own.body),
                (200, 200, &expected.body)
            );
            assert_eq!(head.header("content-length"), own.body.len().to_string());
        }
    }
}

#[test]
fn a_cold_encrypted_segment_has_a_length_before_its_media_is_read() {
    let secret = TextFile::new(SECRET);
    let storage = TestServer::from_folder(make_film(), &[]);
    let url = format!("http://{}", storage.address());
    let library = make_remote_library(&url, &["--subsamples"]);
    let from = format!("{url}={url}");
    for scheme in ["cbcs", "cenc"] {
        let remote = serve(library.path(), scheme, &secret, &["--media-from", &from]);
        // The index of `other` contains no subsamples. The server `other` therefore finds the
        // subsamples in the media.
        let plain = make_remote_library(&url, &[]);
        let other = serve(plain.path(), scheme, &secret, &["--media-from", &from]);
        let urls = media_segments(&remote, "film.ism");
        let requests = || storage.metric(STORED_READS);
        let before = requests();
        let get = |method, url: &String| remote.request(method, url, "");
        let heads: Vec<_> = urls.iter().map(|url| get("HEAD", url)).collect();
        assert_eq!(requests(), before, "HEAD reads no media");
        let cold: Vec<_> = urls.iter().map(|url| get("GET", url)).collect();
        assert_eq!(requests(), before + urls.len() as u64, "one each");
        let again: Vec<_> = urls.iter().map(|url| get("GET", url)).collect();
        assert_eq!(requests(), before + urls.len() as u64, "none");
        for (n, url) in urls.iter().enumerate() {
            let expected = other.get(url).body;
            assert!(
                cold[n].body == expected && again[n].body == expected,
                "{url}"
            );
            for response in [&heads[n], &cold[n], &again[n]] {
                let len = response.header("content-length");
                assert_eq!(len, expected.len().to_string(), "{url}");
            }
        }
    }
}

#[test]
fn an_encrypted_segment_streams_while_its_media_arrives() {
    let secret = TextFile::new(SECRET);
    let storage = TestServer::from_folder(make_film(), &[]);
    let slow = SlowStorage::new(storage.address());
    let library = make_remote_library(&slow.url, &["--subsamples"]);
    let from = format!("{0}={0}", slow.url);
    let flags = ["--media-from", from.as_str()];
    let expected = serve(library.path(), "cbcs", &secret, &flags);
    let remote = serve(library.path(), "cbcs", &secret, &flags);
    let url = media_segments(&remote, "film.ism").swap_remove(3);
    let whole = expected.get(&url).body;
    *slow.limit.lock().unwrap() = Some(whole.len() / 2);
    let head = format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut response = remote.send(&head);
    // The proxy withholds the second half of the media until the test has received the first 1,000
    // bytes.
    let mut first = vec![0; 1000];
    let done = response.read_exact(&mut first);
    let text = String::from_utf8_lossy(&first).into_owned();
    assert!(done.is_ok(), "{done:?}: {text}");
    assert!(
        text.to_lowercase()
            .contains(&format!("content-length: {}", whole.len())),
        "{text}"
    );
    assert!(text.contains("moof"), "{text}");
    slow.resume.send(()).unwrap();
    response.read_to_end(&mut first).unwrap();
    assert!(first.ends_with(&whole));
}

#[test]
fn a_segment_that_was_encrypted_before_has_a_known_length() {
    let secret = TextFile::new(SECRET);
    let storage = TestServer::from_folder(make_film(), &[]);
    let url = format!("http://{}", storage.address());
    // The cache has room for the subsamples of a segment of 20 s, but not for the segment itself.
    let keys = secret.keys("secret");
    let flags = [
        "--drm-keys",
        &keys,
        "--segment",
        "20s",
        "--segment-memory",
        "512KiB",
        "--storage-memory",
        "0B",
    ];
    let remote = TestServer::from_running(start(Path::new(&url), &flags).unwrap());
    let url = media_segments(&remote, "film.mp4").swap_remove(1);
    let first = remote.get(&url);
    let before = remote.metric(READS);
    let head = remote.request("HEAD", &url, "");
    let len = first.body.len().to_string();
    assert_eq!((head.status, head.header("content-length")), (200, &*len));
    assert_eq!(remote.metric(READS), before, "HEAD reads no media");
    assert_eq!(remote.get(&url).body, first.body);
    assert_eq!(
        remote.metric(READS),
        before + 1,
        "the segment is not stored"
    );
}

#[test]
fn subsamples_are_stored_under_the_canonical_path() {
    let secret = TextFile::new(SECRET);
    let storage = TestServer::from_folder(make_film(), &[]);
    let url = format!("http://{}", storage.address());
    let remote = serve(
        Path::new(&url),
        "cbcs",
        &secret,
        &["--storage-memory", "0B"],
    );
    let url = media_segments(&remote, "film.mp4").swap_remove(1);
    let other_spelling = url.replace("film.mp4", "film%2Emp4");
    let first = remote.get(&other_spelling);
    assert_eq!(first.status, 200);
    let before = remote.metric(READS);
    let head = remote.request("HEAD", &url, "");
    let len = first.body.len().to_string();
    assert_eq!((head.status, head.header("content-length")), (200, &*len));
    assert_eq!(remote.metric(READS), before, "HEAD reads no media");
}

#[test]
fn a_film_made_of_an_index_does_not_contain_subsamples() {
    let library = make_library(&["--subsamples"]);
    let index = std::fs::read(library.path().join("film-index.mp4")).unwrap();
    let id = *b"\x5d\x0e\xb7\x31\x9a\x44\x4c\x62\x8f\x15\x2b\xc8\x60\x7e\xd9\xa3";
    let has_id = |bytes: &[u8]| bytes.windows(16).any(|sixteen| sixteen == id);
    assert!(has_id(&index));
    let server = TestServer::from_running(start(library.path(), &[]).unwrap());
    let film = server.get("/film-index.mp4");
    assert!(film.status == 200 && film.body.len() > index.len());
    assert!(!has_id(&film.body));
}

#[test]
fn requests_for_media_of_other_sources_are_counted() {
    let secret = TextFile::new(SECRET);
    let storage = TestServer::from_folder(make_film(), &[]);
    let url = format!("http://{}", storage.address());
    let library = make_remote_library(&url, &[]);
    let from = format!("{url}={url}");
    let remote = serve(library.path(), "cbcs", &secret, &["--media-from", &from]);
    let urls = media_segments(&remote, "film.ism");
    let reads = remote.metric(READS);
    assert_eq!(remote.get(&urls[0]).status, 200);
    assert_eq!(remote.metric(READS), reads + 1);
    let bytes = "headwater_storage_bytes_total{reason=\"segment\"}";
    assert!(remote.metric(bytes) > 0);
    assert!(remote.metric("headwater_storage_connections_opened_total") > 0);
}
