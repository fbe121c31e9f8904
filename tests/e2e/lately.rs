//! Playlists and MPDs asked for again: the same answers, until something else is there.

use crate::support::{Folder, Server, fixture, skip};
use std::process::Command;
use std::time::{Duration, Instant};

const PLAYLISTS: [&str; 2] = ["/film/.m3u8", "/film/.mpd"];

/// A film in a folder of its own, so that files can be put beside what it is made of.
fn film() -> Option<(Folder, Server, String)> {
    let bytes = std::fs::read(fixture("avc.mp4")?).unwrap();
    let folder = Folder::new();
    folder.put("film/video.mp4", &bytes);
    let server = Server::of(&folder.0);
    let master = server.text("/film/.m3u8");
    let media = master
        .lines()
        .find(|line| line.contains("/video") && !line.starts_with('#'));
    let media = format!("/film/{}", media.expect("a media playlist"));
    Some((folder, server, media))
}

/// Asks until the answer is so; paths are trusted for a second.
fn wait_for(server: &Server, target: &str, wanted: impl Fn(&[u8]) -> bool) {
    let began = Instant::now();
    while !wanted(&server.body(target)) {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{target} stays as it was"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_answer_given_again_is_the_first_one() {
    let Some((_folder, server, media)) = film() else {
        return;
    };
    let said = |target: &str, headers: &[(&str, &str)]| {
        let answer = server.request("GET", target, headers);
        let mut head = answer.headers.clone();
        head.retain(|(name, _)| name != "date");
        (answer.status, head, answer.body)
    };
    for target in [PLAYLISTS[0], PLAYLISTS[1], &media] {
        let first = said(target, &[]);
        assert_eq!(first.0, 200);
        // Spelt as nobody prints it, it takes the long way.
        for other in ["", "?", "?x=1"] {
            let again = said(&format!("{target}{other}"), &[]);
            assert_eq!(again, first, "{target}{other}");
        }
        let coded = said(target, &[("Accept-Encoding", "gzip")]);
        assert_eq!(said(target, &[("Accept-Encoding", "gzip")]), coded);
        let short = first.2.len() < 512;
        assert!(short || coded.2.len() < first.2.len(), "{target}");
    }
    let ts = server.text("/film/.m3u8?format=ts");
    assert_eq!(server.text("/film/.m3u8?format=ts"), ts);
    assert_ne!(server.text("/film/.m3u8"), ts);
}

#[test]
fn a_file_of_its_name_takes_a_playlists_place() {
    let Some((folder, server, _)) = film() else {
        return;
    };
    for _ in 0..3 {
        assert!(server.text("/film/any.m3u8").starts_with("#EXTM3U"));
    }
    folder.put("film/any.m3u8", b"a file");
    wait_for(&server, "/film/any.m3u8", |body| body == b"a file");
}

#[test]
fn another_film_has_other_playlists() {
    let Some((folder, server, media)) = film() else {
        return;
    };
    let Some(other) = fixture("hevc.mp4") else {
        return;
    };
    let before: Vec<_> = PLAYLISTS.iter().map(|target| server.body(target)).collect();
    server.body(&media);
    let next = folder.put("next", &std::fs::read(other).unwrap());
    std::fs::rename(next, folder.0.join("film/video.mp4")).unwrap();
    for (target, before) in PLAYLISTS.iter().zip(&before) {
        wait_for(&server, target, |body| body != before);
    }
}

/// A playlist that the kernel sends without a copy, beside its parts, which are copied.
#[test]
fn a_long_playlist_arrives_whole() {
    let folder = Folder::new();
    let film = folder.0.join("long.m4a");
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-f", "lavfi", "-i"])
        .args(["sine=r=48000:d=400", "-c:a", "aac", "-b:a", "32k"])
        .arg(&film)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("there is no ffmpeg");
    }
    let server = Server::start(&[folder.0.to_str().unwrap(), "--segment", "100ms"]);
    let master = server.text("/long.m4a/.m3u8");
    let media = master.lines().find(|line| line.ends_with("/hls.m3u8"));
    let media = format!("/long.m4a/{}", media.expect("a media playlist"));
    let whole = server.body(&media);
    assert!(whole.len() > 100 << 10, "{} bytes", whole.len());
    assert_eq!(server.body(&media), whole);
    for from in (0..whole.len()).step_by(5000) {
        let to = (from + 5000).min(whole.len());
        let range = format!("bytes={from}-{}", to - 1);
        let part = server.request("GET", &media, &[("Range", &range)]);
        assert_eq!((part.status, &*part.body), (206, &whole[from..to]));
    }
}
