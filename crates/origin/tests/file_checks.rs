//! Tests that each request for a segment checks the film's file for changes once, with `fstat`.
//!
//! The counter counts the checks of the whole process, so this binary contains only one test.
#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use support::{TestServer, demo_folder};

/// Returns the number of checks that one successful request makes.
fn count_checks(server: &TestServer, path: &str, header: &str) -> u64 {
    let before = store::change_check_count();
    let status = server.request("GET", path, header).status;
    assert!(matches!(status, 200 | 206 | 304), "{path}: {status}");
    store::change_check_count() - before
}

#[test]
fn a_segment_request_checks_its_file_once() {
    let root = tempfile::tempdir().unwrap();
    fs::copy(
        demo_folder().join("video-540p.mp4"),
        root.path().join("film.mp4"),
    )
    .unwrap();
    // With these flags, no background check occurs, so only the requests of this test check the
    // file.
    let flags = ["--recheck", "1h", "--segment", "12s"];
    let server = TestServer::from_folder(root, &flags);
    let text = server.text("/film.mp4/.json");
    let film: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rendition = &film["renditions"][0];
    let media = rendition["media"].as_str().unwrap();
    let segment = |n: usize| {
        let time = rendition["segments"][n]["t"].to_string();
        format!("/film.mp4/{}", media.replace("{t}", &time))
    };
    let init = format!("/film.mp4/{}", rendition["init"].as_str().unwrap());
    assert_eq!(count_checks(&server, &init, ""), 1, "init");
    let long = segment(0);
    let before = store::change_check_count();
    let first = server.get(&long);
    // The server checks the file again before it sends the tail of a long body.
    assert_eq!(
        store::change_check_count() - before,
        2,
        "first frame and tail"
    );
    let etag = first.header("etag");
    assert!(first.body.len() > 256 << 10, "sent in more than one frame");
    let ranged = segment(1);
    assert_eq!(
        count_checks(&server, &ranged, "Range: bytes=0-99999\r\n"),
        1
    );
    let known = format!("If-None-Match: {etag}\r\n");
    assert_eq!(count_checks(&server, &long, &known), 1, "304");
    let ts = long.replace(".m4s", ".ts");
    assert_eq!(count_checks(&server, &ts, ""), 1, "transmuxed");
    assert_eq!(count_checks(&server, &ts, ""), 1, "cached in memory");
}
