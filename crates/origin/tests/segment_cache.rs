//! Tests of the segment cache. A response from the cache must equal the first response.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use support::{TestResponse, TestServer, demo_folder, wait_until};

const SEGMENT_READS: &str = "headwater_storage_requests_total{reason=\"segment\"}";

/// Returns the paths of a media playlist's segments.
fn segment_paths(server: &TestServer, master: &str, what: &str) -> Vec<String> {
    let folder = |path: &str| path.rsplit_once('/').unwrap().0.to_owned();
    let join = |base: &str, name: &str| format!("{}/{name}", folder(base));
    let lines = |path: &str| -> Vec<String> {
        let path = path.split('?').next().unwrap().to_owned();
        let text = server.text(&path);
        let names = text.lines().filter(|line| !line.starts_with('#'));
        names
            .filter(|l| !l.is_empty())
            .map(|l| join(&path, l))
            .collect()
    };
    let text = server.text(master);
    let media = text
        .lines()
        .find(|line| line.contains(what) && !line.starts_with('#'));
    lines(&join(master.split('?').next().unwrap(), media.unwrap()))
}

fn comparable_parts(response: &TestResponse) -> (u16, Vec<String>, Vec<u8>) {
    let names = [
        "etag",
        "content-type",
        "content-length",
        "content-range",
        "accept-ranges",
        "cache-control",
        "link",
    ];
    let headers = names.map(|name| response.header(name).to_owned());
    (response.status, headers.to_vec(), response.body.clone())
}

#[test]
fn repeated_responses_equal_the_first() {
    let server = TestServer::new(&[]);
    let cmaf = segment_paths(&server, "/film.mp4/.m3u8", "video");
    let ts = segment_paths(&server, "/film.mp4/.m3u8?format=ts", "video");
    for path in [&cmaf[0], &cmaf[1], &ts[0], &ts[1]] {
        let ways = [
            "",
            "Range: bytes=100-70000\r\n",
            "Range: bytes=999999999-\r\n",
        ];
        // A new server, which has not cached the segment, sends the expected response.
        for way in ways {
            let fresh = comparable_parts(&TestServer::new(&[]).request("GET", path, way));
            for _ in 0..4 {
                assert_eq!(
                    comparable_parts(&server.request("GET", path, way)),
                    fresh,
                    "{path} {way:?}"
                );
            }
        }
        let etag = server.get(path).header("etag").to_owned();
        let known = server.request("GET", path, &format!("If-None-Match: {etag}\r\n"));
        assert_eq!((known.status, known.body.len()), (304, 0));
        assert!(known.header("link").is_empty());
        let other = server.request("GET", path, "If-Match: \"other\"\r\n");
        assert_eq!(other.status, 412);
    }
}

#[test]
fn segments_in_memory_need_no_storage_requests() {
    let server = TestServer::new(&[]);
    let cmaf = &segment_paths(&server, "/film.mp4/.m3u8", "video")[0];
    let ts = &segment_paths(&server, "/film.mp4/.m3u8?format=ts", "video")[0];
    for path in [cmaf, ts] {
        for _ in 0..2 {
            assert_eq!(server.get(path).status, 200);
        }
        let reads = server.metric(SEGMENT_READS);
        for _ in 0..3 {
            assert_eq!(server.get(path).status, 200);
        }
        assert_eq!(server.metric(SEGMENT_READS), reads, "{path}");
    }
    assert!(server.metric("headwater_segment_memory_bytes") > 0);
}

#[test]
fn cached_segments_expire_with_their_film() {
    let server = TestServer::new(&["--recheck", "0s"]);
    let cmaf = &segment_paths(&server, "/film.mp4/.m3u8", "video")[0];
    let ts = &segment_paths(&server, "/film.mp4/.m3u8?format=ts", "video")[0];
    for path in [cmaf, ts] {
        for _ in 0..3 {
            assert_eq!(server.get(path).status, 200);
        }
    }
    // Overwrites the file in place with other media of the same length.
    let mut bytes = fs::read(server.path("film.mp4")).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(server.path("film.mp4"), bytes).unwrap();
    for path in [cmaf, ts] {
        assert_eq!(server.get(path).status, 410, "{path}");
    }
    fs::remove_file(server.path("film.mp4")).unwrap();
    for path in [cmaf, ts] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

/// Serves a film with long segments. The cache copies such a segment into memory ("promotes" it)
/// only after several requests.
fn serve_long_segments(flags: &[&str]) -> (TestServer, Vec<String>) {
    let root = tempfile::tempdir().unwrap();
    fs::copy(
        demo_folder().join("video-540p.mp4"),
        root.path().join("film.mp4"),
    )
    .unwrap();
    let always = ["--recheck", "0s", "--segment", "12s"];
    let server = TestServer::from_folder(root, &[&always, flags].concat());
    let paths = segment_paths(&server, "/film.mp4/.m3u8", "video");
    let serve_long_segments = server.get(&paths[0]).body.len();
    assert!(serve_long_segments > 256 << 10, "{serve_long_segments}");
    (server, paths)
}

#[test]
fn long_segments_requested_often_are_promoted() {
    let (server, paths) = serve_long_segments(&[]);
    let (first, second) = (
        comparable_parts(&server.get(&paths[0])),
        comparable_parts(&server.get(&paths[1])),
    );
    for _ in 0..2 {
        assert_eq!(comparable_parts(&server.get(&paths[0])), first);
        assert_eq!(comparable_parts(&server.get(&paths[1])), second);
    }
    let reads = server.metric(SEGMENT_READS);
    for _ in 0..3 {
        assert_eq!(comparable_parts(&server.get(&paths[0])), first);
        assert_eq!(comparable_parts(&server.get(&paths[1])), second);
    }
    assert_eq!(server.metric(SEGMENT_READS), reads);
    assert!(server.metric("headwater_segment_memory_bytes") as usize > first.2.len());
    let mut bytes = fs::read(server.path("film.mp4")).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(server.path("film.mp4"), bytes).unwrap();
    assert_eq!(server.get(&paths[0]).status, 410);
}

#[test]
fn long_segments_requested_rarely_are_not_promoted() {
    let (server, paths) = serve_long_segments(&["--segment-memory", "2MiB"]);
    let (rare, often) = (&paths[0], &paths[1]);
    let first = comparable_parts(&server.get(rare));
    for _ in 0..4 {
        // Requests more bytes than the cache can hold.
        let mut between = 0;
        while between < 2 << 20 {
            let response = server.get(often);
            assert_eq!(response.status, 200);
            between += response.body.len();
        }
        let reads = server.metric(SEGMENT_READS);
        assert_eq!(comparable_parts(&server.get(rare)), first);
        assert!(
            server.metric(SEGMENT_READS) > reads,
            "the segment was not cached"
        );
    }
    let reads = server.metric(SEGMENT_READS);
    server.get(often);
    assert_eq!(
        server.metric(SEGMENT_READS),
        reads,
        "the frequent segment is cached"
    );
}

#[test]
fn without_segment_memory_nothing_is_cached() {
    let server = TestServer::new(&["--segment-memory", "0B"]);
    for path in segment_paths(&server, "/film.mp4/.m3u8?format=ts", "video") {
        let first = comparable_parts(&server.get(&path));
        for _ in 0..3 {
            assert_eq!(comparable_parts(&server.get(&path)), first);
        }
    }
    assert_eq!(server.metric("headwater_segment_memory_bytes"), 0);
}

#[test]
fn the_query_of_a_segment_does_not_affect_caching() {
    let server = TestServer::new(&[]);
    let cmaf = &segment_paths(&server, "/film.mp4/.m3u8", "video")[0];
    let ts = &segment_paths(&server, "/film.mp4/.m3u8?format=ts", "video")[0];
    for path in [cmaf, ts] {
        let first = comparable_parts(&server.get(path));
        assert_eq!(comparable_parts(&server.get(path)), first);
        let reads = server.metric(SEGMENT_READS);
        for query in ["CMCD=bl%3D2100", "format=ts", "filter=x", ""] {
            let response = server.get(&format!("{path}?{query}"));
            assert_eq!(comparable_parts(&response), first, "{query}");
        }
        assert_eq!(server.metric(SEGMENT_READS), reads, "{path}");
        let too_long = server.get(&format!("{path}?{}", "x".repeat(8192)));
        assert_eq!(too_long.status, 414);
    }
}

#[test]
fn only_a_get_request_causes_read_ahead() {
    const READ_AHEAD: &str = "headwater_storage_requests_total{reason=\"ahead\"}";
    let storage = TestServer::new(&[]);
    let url = format!("http://{}", storage.address());
    let running = support::start(Path::new(&url), &["--storage-read-ahead", "on"]).unwrap();
    let server = TestServer::from_running(running);
    let paths = segment_paths(&server, "/film.mp4/.m3u8", "video");
    assert_eq!(server.request("HEAD", &paths[2], "").status, 200);
    // If HEAD caused read-ahead of the next segment, GET would use the bytes of the read-ahead, and
    // would cause no request for this segment.
    let reads = server.metric(SEGMENT_READS);
    assert_eq!(server.get(&paths[3]).status, 200);
    assert_eq!(server.metric(SEGMENT_READS), reads + 1);
    wait_until("GET causes read-ahead", || server.metric(READ_AHEAD) > 0);
    assert_eq!(server.metric(READ_AHEAD), 1);
}
