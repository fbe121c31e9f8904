//! Films that are already encrypted: ffmpeg encrypts the demo film, and decrypts what is served.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use support::TestServer;
use support::keys::*;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const KEY_ID: &str = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf";
const UUID: &str = "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf";

fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(&program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{:?}: {error}", program.as_ref()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    output.stdout
}

fn run_with_input(program: &str, arguments: &[&str], input: Vec<u8>) -> Vec<u8> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    writer.join().unwrap().unwrap();
    output.stdout
}

fn has_ffmpeg() -> bool {
    let found = Command::new("ffmpeg").arg("-version").output().is_ok();
    if !found {
        println!("SKIPPED: ffmpeg is not installed");
    }
    found
}

/// Writes a film with video and audio, encrypted with `cenc`.
fn encrypt_film(out: &Path) {
    let video = support::demo_folder().join("video-180p.mp4");
    let audio = support::demo_folder().join("audio-eng.m4a");
    let (video, audio) = (video.to_str().unwrap(), audio.to_str().unwrap());
    let inputs = [
        "-v", "error", "-i", video, "-i", audio, "-map", "0:v", "-map", "1:a", "-c", "copy",
    ];
    let encryption = [
        "-encryption_scheme",
        "cenc-aes-ctr",
        "-encryption_key",
        KEY,
        "-encryption_kid",
        KEY_ID,
    ];
    let out = [out.to_str().unwrap()];
    run("ffmpeg", &[&inputs[..], &encryption, &out].concat());
}

/// Serves a folder with `film.mp4`, which `make` writes.
fn serve_film(flags: &[&str], make: impl FnOnce(&Path)) -> TestServer {
    let root = tempfile::tempdir().unwrap();
    make(&root.path().join("film.mp4"));
    TestServer::from_folder(root, &[&["--segment", "2s"], flags].concat())
}

/// Returns the hashes of the decoded frames of a media playlist.
fn frame_hashes(server: &TestServer, playlist: &str, key: Option<&str>) -> Vec<String> {
    let parts = segments(server, playlist).into_iter().map(|url| {
        let response = server.get(&url);
        assert_eq!(response.status, 200, "{url}");
        response.body
    });
    let joined = parts.collect::<Vec<_>>().concat();
    let key = key.map_or(Vec::new(), |key| vec!["-decryption_key", key]);
    let input = ["-i", "-", "-fps_mode", "passthrough", "-f", "framemd5", "-"];
    // FFmpeg 5 looks all fragments of a seekable file up in the last one's senc. A pipe is not seekable.
    let text = run_with_input(
        "ffmpeg",
        &[&["-v", "error"], &key[..], &input].concat(),
        joined,
    );
    let text = String::from_utf8(text).unwrap();
    let frames = text.lines().filter(|line| !line.starts_with('#'));
    frames
        .map(|line| line.rsplit(',').next().unwrap().trim().to_owned())
        .collect()
}

fn expect_same_frames(encrypted: &TestServer) {
    let clear = serve_film(&[], |out| {
        let (video, audio) = (
            support::demo_folder().join("video-180p.mp4"),
            support::demo_folder().join("audio-eng.m4a"),
        );
        let inputs = [
            "-v",
            "error",
            "-i",
            video.to_str().unwrap(),
            "-i",
            audio.to_str().unwrap(),
        ];
        let rest = [
            "-map",
            "0:v",
            "-map",
            "1:a",
            "-c",
            "copy",
            out.to_str().unwrap(),
        ];
        run("ffmpeg", &[&inputs[..], &rest].concat());
    });
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
    // The key document is missing, and not needed.
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
    // Entries are stored only for files that have not just been modified.
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

/// Encrypts with the reference packager (`scripts/packager.sh`); `None` if it is not installed.
fn package(out: &Path, scheme: &str) -> Option<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packager = root.join("target/packager/packager");
    if !packager.exists() {
        println!("SKIPPED: scripts/packager.sh has not run");
        return None;
    }
    let input = support::demo_folder().join("video-180p.mp4");
    let stream = format!(
        "in={},stream=video,output={}",
        input.display(),
        out.display()
    );
    let keys = format!("label=:key_id={KEY_ID}:key={KEY}");
    let scheme = format!("--protection_scheme={scheme}");
    let systems = "--protection_systems=Widevine,PlayReady,CommonSystem";
    run(
        packager,
        &[
            &stream,
            "--enable_raw_key_encryption",
            "--keys",
            &keys,
            &scheme,
            systems,
            "--clear_lead=0",
        ],
    );
    Some(())
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
