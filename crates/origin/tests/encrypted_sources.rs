//! Tests of films that are already encrypted. ffmpeg encrypts the demo film, and decrypts the
//! segments that the server sends.
#![allow(clippy::unwrap_used)]

mod support;

use support::TestServer;
use support::encrypted_films::*;
use support::keys::*;

fn expect_same_frames(encrypted: &TestServer) {
    let clear = serve_film(&[], join_film);
    let media = |server: &TestServer| {
        let all = playlists(server, "film.mp4");
        let parts = |name: &&str| {
            all.iter()
                .find(|p| p.contains(*name) && !p.contains("keyframes"))
                .unwrap()
                .clone()
        };
        ["/video", "/audio"].map(|name| parts(&name))
    };
    for (ours, theirs) in media(encrypted).iter().zip(&media(&clear)) {
        let expected = frame_hashes(&clear, theirs, None);
        assert!(expected.len() > 100, "{theirs}");
        assert_eq!(frame_hashes(encrypted, ours, Some(KEY)), expected, "{ours}");
    }
}

fn expect_signaling(server: &TestServer, scheme: &str, method: &str) {
    let mpd = server.text("/film.mp4/.mpd");
    let protection = format!("mp4protection:2011\" value=\"{scheme}\" cenc:default_KID=\"{UUID}\"");
    assert_eq!(mpd.matches(&protection).count(), 2, "{mpd}");
    let json = server.text("/film.mp4/.json");
    assert!(
        json.contains(&format!("\"encryption\":\"{scheme}\"")),
        "{json}"
    );
    for playlist in playlists(server, "film.mp4") {
        for url in segments(server, &playlist) {
            let name = if url.ends_with("init.mp4") {
                b"sinf"
            } else {
                b"senc"
            };
            let response = server.get(&url);
            assert!(
                response.status == 200 && contains(&response.body, name),
                "{url}"
            );
        }
        let text = server.text(&playlist);
        let has_keys = text.contains("#EXT-X-KEY:");
        assert_eq!(has_keys, !method.is_empty(), "{text}");
        assert!(text.contains(method), "{text}");
    }
}

#[test]
fn ffmpeg_decrypts_segments_of_encrypted_films() {
    if !has_ffmpeg() {
        return;
    }
    let server = serve_film(&[], encrypt_film);
    expect_signaling(&server, "cenc", "");
    expect_same_frames(&server);
    assert_eq!(server.get("/film.mp4/.m3u8?format=ts").status, 404);
}

#[test]
fn the_settings_signal_systems_of_an_encrypted_film() {
    if !has_ffmpeg() {
        return;
    }
    // The key document does not exist. The server does not need the document, because the film is
    // already encrypted.
    let flags = [
        "--drm-keys",
        "cpix:missing.cpix",
        "--drm-systems",
        "widevine",
        "--drm-license-url-widevine",
        "https://l.example/{uuid}",
    ];
    let server = serve_film(&flags, encrypt_film);
    expect_signaling(&server, "cenc", "METHOD=SAMPLE-AES-CTR");
    let mpd = server.text("/film.mp4/.mpd");
    assert!(mpd.contains(&format!("https://l.example/{UUID}")), "{mpd}");
    expect_same_frames(&server);
}

#[test]
fn an_index_on_disk_keeps_the_encryption() {
    if !has_ffmpeg() {
        return;
    }
    let server = serve_film(&[], encrypt_film);
    // Sets an older modification time, because the index cache does not store files that were
    // modified just now.
    let film = std::fs::File::options()
        .write(true)
        .open(server.path("film.mp4"))
        .unwrap();
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    film.set_modified(past).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let flags = [
        "--segment",
        "2s",
        "--index-cache",
        "memory+disk",
        "--index-cache-dir",
        cache.path().to_str().unwrap(),
    ];
    let bytes = |server: &TestServer| {
        let all = playlists(server, "film.mp4");
        let urls = all.iter().flat_map(|playlist| segments(server, playlist));
        urls.map(|url| server.get(&url).body).collect::<Vec<_>>()
    };
    let first = bytes(&TestServer::from_running(
        support::start(server.root.path(), &flags).unwrap(),
    ));
    assert!(std::fs::read_dir(cache.path()).unwrap().count() > 0);
    let second = bytes(&TestServer::from_running(
        support::start(server.root.path(), &flags).unwrap(),
    ));
    assert_eq!(first, second);
}

#[test]
fn aes_128_of_an_encrypted_film_is_refused() {
    if !has_ffmpeg() {
        return;
    }
    let secret = TextFile::new(SECRET);
    let path = secret.path();
    let server = serve_film(&["--aes-secret", path.to_str().unwrap()], |out| {
        encrypt_film(out)
    });
    let response = server.get("/film.mp4/.m3u8");
    let error = response.header("headwater-error");
    assert_eq!(response.status, 415, "{error}");
    assert!(error.contains("already encrypted"), "{error}");
}

#[test]
fn films_of_the_reference_packager_are_passed_through() {
    if !has_ffmpeg() {
        return;
    }
    for (scheme, method) in [("cbcs", "SAMPLE-AES,"), ("cenc", "SAMPLE-AES-CTR,")] {
        let root = tempfile::tempdir().unwrap();
        if package(&root.path().join("film.mp4"), scheme).is_none() {
            return;
        }
        let server = TestServer::from_folder(root, &["--segment", "2s"]);
        let video = playlists(&server, "film.mp4")
            .into_iter()
            .find(|p| !p.contains("keyframes"))
            .unwrap();
        let clear = TestServer::new(&["--segment", "2s"]);
        let theirs = playlists(&clear, "film.mp4")
            .into_iter()
            .find(|p| !p.contains("keyframes"))
            .unwrap();
        assert_eq!(
            frame_hashes(&server, &video, Some(KEY)),
            frame_hashes(&clear, &theirs, None)
        );
        let text = server.text(&video);
        assert_eq!(
            text.matches(&format!("#EXT-X-KEY:METHOD={method}")).count(),
            2,
            "{text}"
        );
        let mpd = server.text("/film.mp4/.mpd");
        assert!(
            mpd.contains(&format!("value=\"{scheme}\" cenc:default_KID=\"{UUID}\"")),
            "{mpd}"
        );
        assert_eq!(mpd.matches("<cenc:pssh>").count(), 3, "{mpd}");
        let init = server.get(&segments(&server, &video)[0]).body;
        assert_eq!(init.windows(4).filter(|four| four == b"pssh").count(), 3);
    }
}

#[test]
fn key_frames_and_ranges_of_an_encrypted_film_are_those_of_its_segments() {
    if !has_ffmpeg() {
        return;
    }
    let clear = TestServer::new(&["--segment", "2s"]);
    let key_frames = |server: &TestServer| {
        let all = playlists(server, "film.mp4");
        let list = all.into_iter().find(|name| name.contains("keyframes"));
        list.unwrap()
    };
    let expected = frame_hashes(&clear, &key_frames(&clear), None);
    assert!(expected.len() > 10, "{expected:?}");
    for scheme in ["cbcs", "cenc"] {
        let root = tempfile::tempdir().unwrap();
        if package(&root.path().join("film.mp4"), scheme).is_none() {
            return;
        }
        let server = TestServer::from_folder(root, &["--segment", "2s"]);
        let list = key_frames(&server);
        assert_eq!(
            frame_hashes(&server, &list, Some(KEY)),
            expected,
            "{scheme}"
        );
        for url in segments(&server, &list).iter().rev().take(2) {
            let whole = server.get(url).body;
            let part = server.request("GET", url, "Range: bytes=50-249\r\n");
            assert_eq!((part.status, &part.body[..]), (206, &whole[50..250]));
            let head = server.request("HEAD", url, "");
            assert_eq!(head.header("content-length"), whole.len().to_string());
        }
    }
}
