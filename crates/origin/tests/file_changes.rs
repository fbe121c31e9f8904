//! Tests of files that change while they are served, of concurrent requests, and of shutdown.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Barrier;
use support::key_server::read_request;
use support::{TestServer, demo_folder, wait_until};

fn segments(server: &TestServer, title: &str) -> Vec<String> {
    let film: serde_json::Value =
        serde_json::from_str(&server.text(&format!("/{title}/.json"))).unwrap();
    let rendition = &film["renditions"][0];
    let media = rendition["media"].as_str().unwrap();
    let all = rendition["segments"].as_array().unwrap().iter();
    all.map(|s| format!("/{title}/{}", media.replace("{t}", &s["t"].to_string())))
        .collect()
}

#[test]
fn concurrent_requests_build_one_index_and_later_ones_none() {
    let server = TestServer::new(&[]);
    const ASKERS: usize = 24;
    let ready = Barrier::new(ASKERS);
    std::thread::scope(|scope| {
        for n in 0..ASKERS {
            let (server, ready) = (&server, &ready);
            let target = ["/film/.m3u8", "/film/.mpd", "/film/.json"][n % 3];
            scope.spawn(move || {
                ready.wait();
                assert_eq!(server.get(target).status, 200);
            });
        }
    });
    assert_eq!(server.metric("headwater_index_builds_total"), 1);
    let index = "headwater_storage_requests_total{reason=\"index\"}";
    let (index_reads, urls) = (server.metric(index), segments(&server, "film"));
    let segment = "headwater_storage_requests_total{reason=\"segment\"}";
    assert!(index_reads > 0);
    assert_eq!(server.metric(segment), 0);
    for url in &urls {
        assert_eq!(server.get(url).status, 200);
    }
    assert_eq!(
        server.metric(index),
        index_reads,
        "no metadata is read once a title is indexed"
    );
    assert_eq!(
        server.metric(segment),
        urls.len() as u64,
        "one read per segment"
    );
    assert_eq!(server.metric("headwater_index_builds_total"), 1);
}

#[test]
fn a_replaced_file_is_served_as_another_film() {
    let server = TestServer::new(&["--recheck", "0s"]);
    let old = segments(&server, "film.mp4");
    let before = server.get(&old[0]);
    let next = server.path("next");
    fs::copy(demo_folder().join("video-360p.mp4"), &next).unwrap();
    fs::rename(&next, server.path("film.mp4")).unwrap();
    assert_eq!(server.get(&old[0]).status, 410);
    let new = segments(&server, "film.mp4");
    assert_ne!(old[0], new[0]);
    let after = server.get(&new[0]);
    assert_eq!(after.status, 200);
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_eq!(
        server.get("/film.mp4").body,
        fs::read(demo_folder().join("video-360p.mp4")).unwrap()
    );
}

/// Frequent requests trigger checks in the background, so that no request waits for a check.
#[test]
fn frequent_clients_see_a_changed_file() {
    let server = TestServer::new(&["--recheck", "200ms"]);
    let file = server.path("film.mp4");
    let states = ["video-360p.mp4", "video-180p.mp4"].map(|name| demo_folder().join(name));
    let old = segments(&server, "film.mp4");
    assert_eq!(server.get("/film.mp4").status, 200);
    for state in states.iter().cycle().take(4) {
        fs::copy(state, server.path("next")).unwrap();
        fs::rename(server.path("next"), &file).unwrap();
        let bytes = fs::read(state).unwrap();
        let is_old = *state == states[1];
        wait_until("the changed file is served", || {
            let (whole, names) = (server.get("/film.mp4"), segments(&server, "film.mp4"));
            assert_eq!(whole.status, 200);
            whole.body == bytes && (names == old) == is_old
        });
    }
}

#[test]
fn the_same_film_copied_again_keeps_its_urls() {
    let server = TestServer::new(&["--recheck", "0s"]);
    let old = segments(&server, "film.mp4");
    fs::copy(server.path("film.mp4"), server.path("next")).unwrap();
    fs::rename(server.path("next"), server.path("film.mp4")).unwrap();
    assert_eq!(server.get(&old[0]).status, 200);
    assert_eq!(segments(&server, "film.mp4"), old);
}

#[test]
fn other_media_under_the_same_tables_has_other_names() {
    let server = TestServer::new(&["--recheck", "0s"]);
    let old = segments(&server, "film.mp4");
    let mut bytes = fs::read(server.path("film.mp4")).unwrap();
    // The demo films start with the `moov` box, so the second half of the file is media.
    let half = bytes.len() / 2;
    bytes[half..].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(server.path("next"), bytes).unwrap();
    fs::rename(server.path("next"), server.path("film.mp4")).unwrap();
    assert_eq!(server.get(&old[0]).status, 410);
    assert_ne!(segments(&server, "film.mp4")[0], old[0]);
}

/// Serves a film at `/film.mp4`, always with the same weak entity tag and the same date. Returns
/// the URL of the server.
fn serve_with_weak_tag(film: Vec<u8>) -> String {
    const ABSENT: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&mut stream).to_lowercase();
            let range = request.lines().find_map(|line| {
                let (first, last) = line.strip_prefix("range: bytes=")?.split_once('-')?;
                Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
            });
            let range = range.filter(|_| request.starts_with("get /film.mp4 "));
            let Some((first, last)) = range else {
                let _ = stream.write_all(ABSENT.as_bytes());
                continue;
            };
            let bytes = &film[first..film.len().min(last + 1)];
            let (len, last) = (bytes.len(), first + bytes.len() - 1);
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{}\r\n\
                 Content-Length: {len}\r\nETag: W/\"1\"\r\nConnection: close\r\n\
                 Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n",
                film.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), bytes].concat());
        }
    });
    url
}

#[test]
fn other_media_under_the_same_weak_entity_tag_has_other_names() {
    let film = fs::read(demo_folder().join("video-180p.mp4")).unwrap();
    let mut other = film.clone();
    // The demo films start with the `moov` box, so the second half of the file is media.
    let half = other.len() / 2;
    other[half..].iter_mut().for_each(|byte| *byte = !*byte);
    let names = [&film, &film, &other].map(|bytes| {
        let url = serve_with_weak_tag(bytes.clone());
        let running = support::start(Path::new(&url), &[]).unwrap();
        segments(&TestServer::from_running(running), "film.mp4")
    });
    assert_eq!(names[0], names[1]);
    assert_ne!(names[0][0], names[2][0]);
}

#[test]
fn an_outdated_playlist_redirects_to_the_current_one() {
    let server = TestServer::new(&["--recheck", "0s"]);
    let playlists = |server: &TestServer| -> Vec<String> {
        let text = server.text("/film.mp4/.m3u8");
        let uris = text
            .split(['\n', '"'])
            .filter(|part| part.ends_with(".m3u8"));
        uris.map(|uri| format!("/film.mp4/{uri}")).collect()
    };
    let old = playlists(&server);
    assert!(old.len() > 1, "{old:?}");
    let mut bytes = fs::read(server.path("film.mp4")).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(server.path("next"), bytes).unwrap();
    fs::rename(server.path("next"), server.path("film.mp4")).unwrap();
    let new = playlists(&server);
    for (old, new) in old.iter().zip(&new) {
        assert_ne!(old, new);
        let response = server.get(old);
        assert_eq!(response.status, 307);
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert!(response.header("cache-control").contains("max-age=2,"));
        let from_title = response.header("location").strip_prefix("../../");
        assert_eq!(format!("/film.mp4/{}", from_title.unwrap()), *new);
        assert_eq!(server.get(new).status, 200);
        assert_eq!(server.request("HEAD", old, "").status, 307);
    }
}

#[test]
fn a_file_that_is_added_or_removed_changes_a_folder() {
    let server = TestServer::new(&["--recheck", "0s"]);
    let count = |server: &TestServer| {
        server
            .text("/film/.m3u8")
            .matches("EXT-X-STREAM-INF")
            .count()
    };
    assert_eq!(count(&server), 2);
    fs::copy(
        demo_folder().join("video-540p.mp4"),
        server.path("film/video-540p.mp4"),
    )
    .unwrap();
    assert_eq!(count(&server), 3);
    fs::remove_file(server.path("film/video-180p.mp4")).unwrap();
    assert_eq!(count(&server), 2);
    fs::remove_dir_all(server.path("film")).unwrap();
    assert_eq!(server.get("/film/.m3u8").status, 404);
}

#[test]
fn a_file_that_is_overwritten_in_place_is_noticed_at_the_next_segment() {
    // With this setting, the server does not check the path again during the test. Only a check of
    // the open file reveals the change.
    let server = TestServer::new(&["--recheck", "1h"]);
    let old = segments(&server, "film.mp4");
    assert_eq!(server.get(&old[0]).status, 200);
    fs::copy(
        demo_folder().join("video-360p.mp4"),
        server.path("film.mp4"),
    )
    .unwrap();
    assert_eq!(server.get(&old[1]).status, 410);
    let new = segments(&server, "film.mp4");
    assert_eq!(server.get(&new[1]).status, 200);
    assert_eq!(server.metric("headwater_index_builds_total"), 2);
}

#[test]
fn a_truncated_file_is_refused_without_crashing() {
    let server = TestServer::new(&["--recheck", "1h"]);
    let urls = segments(&server, "film.mp4");
    let file = fs::OpenOptions::new()
        .write(true)
        .open(server.path("film.mp4"))
        .unwrap();
    file.set_len(100_000).unwrap();
    let last = server.get(urls.last().unwrap());
    assert!([410, 415].contains(&last.status), "{last:?}");
    assert_eq!(server.get("/film.mp4").body.len(), 100_000);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn truncating_a_file_while_it_is_sent_closes_the_connection() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("long.bin");
    const LEN: u64 = 256 << 20;
    fs::File::create(&path).unwrap().set_len(LEN).unwrap();
    let server = TestServer::from_folder(root, &[]);
    let mut stream = server.send("GET /long.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut begin = [0; 4096];
    stream.read_exact(&mut begin).unwrap();
    assert!(begin.starts_with(b"HTTP/1.1 200 "));
    // The test does not read further bytes before it truncates the file. The buffers of the sockets
    // hold far less than the rest of the file, so most bytes have not been sent yet.
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1000)
        .unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(
        (rest.len() as u64) < LEN - 4096,
        "a cut file must not look complete"
    );
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn a_broken_file_is_not_indexed_on_every_request() {
    let server = TestServer::new(&[]);
    fs::write(server.path("broken.mp4"), vec![1; 100_000]).unwrap();
    let began = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(server.get("/broken.mp4/.m3u8").status, 415);
    }
    // The server caches each failure for one second.
    let most = 1 + began.elapsed().as_secs() + 1;
    assert!(server.metric("headwater_index_builds_total") <= most);
}

#[test]
fn a_title_stays_available_while_its_storage_cannot_be_checked() {
    let storage = TestServer::new(&[]);
    let url = format!("http://{}", storage.address());
    let running = support::start(Path::new(&url), &["--recheck", "0s"]).unwrap();
    let remote = TestServer::from_running(running);
    let urls = segments(&remote, "film.mp4");
    let first = remote.get(&urls[0]);
    assert_eq!(first.status, 200);
    // Stops the storage.
    drop(storage);
    assert_eq!(segments(&remote, "film.mp4"), urls);
    assert_eq!(remote.get(&urls[0]).body, first.body);
    assert_eq!(remote.metric("headwater_index_builds_total"), 1);
}

#[test]
fn a_title_that_was_deleted_from_its_storage_is_missing() {
    let storage = TestServer::new(&[]);
    let url = format!("http://{}", storage.address());
    let running = support::start(Path::new(&url), &["--recheck", "0s"]).unwrap();
    let remote = TestServer::from_running(running);
    assert_eq!(remote.get("/film.mp4/.m3u8").status, 200);
    fs::remove_file(storage.path("film.mp4")).unwrap();
    // The storage rechecks its open file after one second.
    wait_until("the deleted title is missing", || {
        remote.get("/film.mp4/.m3u8").status != 200
    });
    assert_eq!(remote.get("/film.mp4/.m3u8").status, 404);
}

#[test]
fn readiness_ends_before_the_server_stops() {
    let server = TestServer::new(&["--announce", "1h"]);
    assert_eq!(server.get("/readyz").status, 200);
    server.running().shutdown().drain();
    let response = server.get("/readyz");
    assert_eq!(response.status, 503);
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/film.mp4/.m3u8").status, 200);
}

#[test]
fn records_contain_the_requests() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records");
    let server = TestServer::new(&["--records", path.to_str().unwrap()]);
    let response = server.request(
        "GET",
        "/film.mp4/.mpd?x=1",
        "X-Request-Id: abc\r\nUser-Agent: test\r\n",
    );
    assert_eq!(response.header("x-request-id"), "abc");
    server.get("/missing");
    // Dropping the server waits until all records are written to the file.
    drop(server);
    let text = fs::read_to_string(path).unwrap();
    let mut records = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mpd = records.find(|r| r["path"] == "/film.mp4/.mpd?x=1").unwrap();
    assert_eq!((&mpd["status"], &mpd["kind"]), (&200.into(), &"mpd".into()));
    assert_eq!(
        (&mpd["request_id"], &mpd["user_agent"]),
        (&"abc".into(), &"test".into())
    );
    assert_eq!(
        (&mpd["bytes"], &mpd["complete"]),
        (&response.body.len().into(), &true.into())
    );
    let missing = records.find(|r| r["path"] == "/missing").unwrap();
    assert_eq!(missing["status"], 404);
    assert_eq!(missing["error"], "there is no such file");
}
