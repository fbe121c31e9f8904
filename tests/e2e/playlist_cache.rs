//! Checks that repeated requests for playlists and MPDs get the same response until the film
//! changes.

use crate::support::{HeadwaterServer, TempFolder, fixture_path, report_skip};
use std::process::Command;
use std::time::{Duration, Instant};

const PLAYLISTS: [&str; 2] = ["/film/.m3u8", "/film/.mpd"];

/// Serves a film from its own folder, so that a test can add files to the title.
fn serve_film() -> Option<(TempFolder, HeadwaterServer, String)> {
    let bytes = std::fs::read(fixture_path("avc.mp4")?).unwrap();
    let folder = TempFolder::new();
    folder.write_file("film/video.mp4", &bytes);
    let server = HeadwaterServer::serve_source(&folder.0);
    let master = server.get_text("/film/.m3u8");
    let media = master
        .lines()
        .find(|line| line.contains("/video") && !line.starts_with('#'));
    let media = format!("/film/{}", media.expect("a media playlist"));
    Some((folder, server, media))
}

/// Requests a target until `wanted` accepts its body. The server checks paths for changes only once
/// per second.
fn wait_for_body(server: &HeadwaterServer, target: &str, wanted: impl Fn(&[u8]) -> bool) {
    let began = Instant::now();
    while !wanted(&server.get_body(target)) {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{target} did not change"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_cached_playlist_equals_the_first_response() {
    let Some((_folder, server, media)) = serve_film() else {
        return;
    };
    let fetch = |target: &str, headers: &[(&str, &str)]| {
        let response = server.request("GET", target, headers);
        let mut head = response.headers.clone();
        head.retain(|(name, _)| name != "date");
        (response.status, head, response.body)
    };
    for target in [PLAYLISTS[0], PLAYLISTS[1], &media] {
        let first = fetch(target, &[]);
        assert_eq!(first.0, 200);
        // A request with a query bypasses the cache.
        for other in ["", "?", "?x=1"] {
            let again = fetch(&format!("{target}{other}"), &[]);
            assert_eq!(again, first, "{target}{other}");
        }
        let coded = fetch(target, &[("Accept-Encoding", "gzip")]);
        assert_eq!(fetch(target, &[("Accept-Encoding", "gzip")]), coded);
        let short = first.2.len() < 512;
        assert!(short || coded.2.len() < first.2.len(), "{target}");
    }
    let ts = server.get_text("/film/.m3u8?format=ts");
    assert_eq!(server.get_text("/film/.m3u8?format=ts"), ts);
    assert_ne!(server.get_text("/film/.m3u8"), ts);
}

#[test]
fn a_file_replaces_the_playlist_of_the_same_name() {
    let Some((folder, server, _)) = serve_film() else {
        return;
    };
    for _ in 0..3 {
        assert!(server.get_text("/film/any.m3u8").starts_with("#EXTM3U"));
    }
    folder.write_file("film/any.m3u8", b"a file");
    wait_for_body(&server, "/film/any.m3u8", |body| body == b"a file");
}

#[test]
fn a_replaced_film_gets_new_playlists() {
    let Some((folder, server, media)) = serve_film() else {
        return;
    };
    let Some(other) = fixture_path("hevc.mp4") else {
        return;
    };
    let before: Vec<_> = PLAYLISTS
        .iter()
        .map(|target| server.get_body(target))
        .collect();
    server.get_body(&media);
    let next = folder.write_file("next", &std::fs::read(other).unwrap());
    std::fs::rename(next, folder.0.join("film/video.mp4")).unwrap();
    for (target, before) in PLAYLISTS.iter().zip(&before) {
        wait_for_body(&server, target, |body| body != before);
    }
}

/// If the whole playlist is requested, the kernel sends the playlist without a copy. Ranges of the
/// playlist are copied.
#[test]
fn a_long_playlist_arrives_complete() {
    let folder = TempFolder::new();
    let film = folder.0.join("long.m4a");
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-f", "lavfi", "-i"])
        .args(["sine=r=48000:d=400", "-c:a", "aac", "-b:a", "32k"])
        .arg(&film)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return report_skip("ffmpeg is not installed");
    }
    let server = HeadwaterServer::serve(&[folder.0.to_str().unwrap(), "--segment", "100ms"]);
    let master = server.get_text("/long.m4a/.m3u8");
    let media = master.lines().find(|line| line.ends_with("/hls.m3u8"));
    let media = format!("/long.m4a/{}", media.expect("a media playlist"));
    let whole = server.get_body(&media);
    assert!(whole.len() > 100 << 10, "{} bytes", whole.len());
    assert_eq!(server.get_body(&media), whole);
    for from in (0..whole.len()).step_by(5000) {
        let to = (from + 5000).min(whole.len());
        let range = format!("bytes={from}-{}", to - 1);
        let part = server.request("GET", &media, &[("Range", &range)]);
        assert_eq!((part.status, &*part.body), (206, &whole[from..to]));
    }
}
