//! Tests of source films that are already encrypted. The server decrypts the films, and encrypts
//! them again with the title's own keys.
#![allow(clippy::unwrap_used)]

mod support;

use origin::index_command::{define_index_command, run_index};
use std::path::Path;
use support::encrypted_films::*;
use support::keys::*;
use support::{TestServer, start};

const NEW_KEY: &str = "101112131415161718191a1b1c1d1e1f";
const NEW_VALUE: &str = "EBESExQVFhcYGRobHB0eHw==";
const NEW_UUID: &str = "00000000-0000-0000-0000-0000000000b1";
const ALL_TRACKS: &str = "<VideoFilter/><AudioFilter/>";
const SCHEMES: [&str; 2] = ["cbcs", "cenc"];

/// The key documents of a title and of its source.
struct KeyFiles {
    own: TextFile,
    source: TextFile,
}

impl KeyFiles {
    fn new(source: &[(&str, &str)]) -> KeyFiles {
        KeyFiles {
            own: TextFile::new(&cpix(&[(NEW_UUID, NEW_VALUE, ALL_TRACKS)])),
            source: TextFile::new(&source_document(source)),
        }
    }

    /// Returns the keys for films that ffmpeg or the reference packager encrypts. The source
    /// document also contains a key that no film uses.
    fn of_film() -> KeyFiles {
        KeyFiles::new(&[(AUDIO, NEW_VALUE), (UUID, VALUE)])
    }

    fn flags(&self, scheme: &str) -> Flags {
        let flags = [
            ("--drm-keys", self.own.keys("cpix")),
            ("--drm-source-keys", self.source.keys("cpix")),
            ("--drm-scheme", scheme.to_owned()),
            ("--drm-systems", "widevine".to_owned()),
        ];
        Flags(
            flags
                .map(|(name, value)| format!("{name}={value}"))
                .to_vec(),
        )
    }
}

struct Flags(Vec<String>);

impl Flags {
    fn list(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    fn serve(&self, root: tempfile::TempDir) -> TestServer {
        TestServer::from_folder(root, &[&["--segment", "2s"], &self.list()[..]].concat())
    }
}

/// Returns a document with source keys and without usage rules. The keys decrypt films of any
/// scheme, although the document declares `cens`.
fn source_document(keys: &[(&str, &str)]) -> String {
    let key = |(kid, value): &(&str, &str)| {
        format!(
            "<ContentKey kid=\"{kid}\" commonEncryptionScheme=\"cens\"><Data><Secret><PlainValue>{value}</PlainValue></Secret></Data></ContentKey>"
        )
    };
    let keys: String = keys.iter().map(key).collect();
    format!("<CPIX xmlns=\"urn:dashif:org:cpix\"><ContentKeyList>{keys}</ContentKeyList></CPIX>")
}

/// Returns the playlists of video, audio and key frames that a title has, in this order.
fn sorted_playlists(server: &TestServer, title: &str) -> Vec<String> {
    let all = playlists(server, title);
    let of = |part: &str, is_key_frames: bool| {
        let mut found = all.iter();
        let found = found.find(|p| p.contains(part) && p.contains("keyframes") == is_key_frames);
        found.cloned()
    };
    let found = [of("/video", false), of("/audio", false), of("/video", true)];
    found.into_iter().flatten().collect()
}

/// Checks that ffmpeg decrypts the served film with the new key. The decrypted frames must equal
/// the frames of the unencrypted film. The old key must not decrypt these frames.
fn expect_frames_of_new_key(ours: &TestServer, clear: &TestServer, title: &str) {
    let (ours_lists, clear_lists) = (
        sorted_playlists(ours, title),
        sorted_playlists(clear, title),
    );
    assert_eq!(ours_lists.len(), clear_lists.len());
    for (list, clear_list) in ours_lists.iter().zip(&clear_lists) {
        let expected = frame_hashes(clear, clear_list, None);
        assert!(expected.len() > 1, "{clear_list}");
        assert_eq!(frame_hashes(ours, list, Some(NEW_KEY)), expected, "{list}");
        let old = try_frame_hashes(ours, list, Some(KEY)).unwrap_or_default();
        let same = old.iter().filter(|hash| expected.contains(hash)).count();
        // Some frames may have equal hashes, for example black or silent frames.
        assert!(
            same * 4 < expected.len(),
            "{list}: {same} frames are those of the old key"
        );
    }
}

/// Checks that only the new encryption is signaled.
fn expect_new_signaling(server: &TestServer, title: &str, scheme: &str) {
    let mpd = server.text(&format!("/{title}/.mpd"));
    assert!(
        mpd.contains(&format!(
            "value=\"{scheme}\" cenc:default_KID=\"{NEW_UUID}\""
        )),
        "{mpd}"
    );
    assert!(!mpd.contains(UUID), "{mpd}");
    let json = server.text(&format!("/{title}/.json"));
    assert!(
        json.contains(&format!("\"encryption\":\"{scheme}\"")),
        "{json}"
    );
    let old_id = 0xa0a1_a2a3_a4a5_a6a7_a8a9_aaab_acad_aeaf_u128.to_be_bytes();
    for list in sorted_playlists(server, title) {
        assert!(
            server
                .text(&list)
                .contains("KEYID=0x000000000000000000000000000000b1")
        );
        for url in segments(server, &list) {
            let is_init = url.ends_with("init.mp4");
            let response = server.get(&url);
            assert!(
                contains(&response.body, if is_init { b"sinf" } else { b"senc" }),
                "{url}"
            );
            assert!(!response.body.windows(16).any(|id| id == old_id), "{url}");
            let head = server.request("HEAD", &url, "");
            assert_eq!(
                head.header("content-length"),
                response.body.len().to_string()
            );
            let part = server.request("GET", &url, "Range: bytes=20-59\r\n");
            assert_eq!((part.status, &part.body[..]), (206, &response.body[20..60]));
        }
    }
}

#[test]
fn a_progressive_film_of_ffmpeg_is_encrypted_again() {
    if !has_ffmpeg() {
        return;
    }
    let clear = serve_film(&[], join_film);
    let keys = KeyFiles::of_film();
    for scheme in SCHEMES {
        let ours = serve_film(&keys.flags(scheme).list(), encrypt_film);
        expect_new_signaling(&ours, "film.mp4", scheme);
        expect_frames_of_new_key(&ours, &clear, "film.mp4");
    }
}

#[test]
fn fragmented_films_of_the_reference_packager_are_encrypted_again() {
    if !has_ffmpeg() {
        return;
    }
    let clear = TestServer::new(&["--segment", "2s"]);
    let keys = KeyFiles::of_film();
    for source_scheme in SCHEMES {
        for scheme in SCHEMES {
            let root = tempfile::tempdir().unwrap();
            if package(&root.path().join("film.mp4"), source_scheme).is_none() {
                return;
            }
            let ours = keys.flags(scheme).serve(root);
            expect_new_signaling(&ours, "film.mp4", scheme);
            expect_frames_of_new_key(&ours, &clear, "film.mp4");
        }
    }
}

/// Writes a film with HEVC and E-AC-3.
fn encode_film(out: &Path) {
    let inputs = [
        "-v",
        "error",
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=320x180:d=5:r=25",
    ];
    let audio = ["-f", "lavfi", "-i", "anoisesrc=d=5:r=48000"];
    let video = [
        "-c:v",
        "libx265",
        "-preset",
        "ultrafast",
        "-tag:v",
        "hvc1",
        "-g",
        "25",
    ];
    let rest = [
        "-x265-params",
        "log-level=error",
        "-c:a",
        "eac3",
        out.to_str().unwrap(),
    ];
    run("ffmpeg", &[&inputs[..], &audio, &video, &rest].concat());
}

/// Encrypts a film with this server and the old key. Writes the segments to a folder, as one
/// fragmented file for video and one for audio.
fn encrypt_with_this_server(scheme: &str, film: &Path, folder: &Path) {
    let keys = TextFile::new(&cpix(&[(UUID, VALUE, ALL_TRACKS)]));
    let keys = keys.keys("cpix");
    let server = serve_film(
        &["--drm-keys", &keys, "--drm-scheme", scheme],
        copy_of(film),
    );
    std::fs::create_dir(folder).unwrap();
    let lists = sorted_playlists(&server, "film.mp4");
    for (list, name) in lists.iter().zip(["video.mp4", "audio.mp4"]) {
        std::fs::write(folder.join(name), join_segments(&server, list)).unwrap();
    }
}

fn copy_of(film: &Path) -> impl FnOnce(&Path) {
    move |out| assert!(std::fs::copy(film, out).unwrap() > 0)
}

fn expect_films_of_this_server(make: fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film.mp4");
    make(&film);
    let keys = KeyFiles::of_film();
    let clear = serve_film(&[], copy_of(&film));
    for (source_scheme, scheme) in [("cbcs", "cenc"), ("cenc", "cbcs"), ("cbcs", "cbcs")] {
        let root = tempfile::tempdir().unwrap();
        encrypt_with_this_server(source_scheme, &film, &root.path().join("film.mp4"));
        let ours = keys.flags(scheme).serve(root);
        expect_new_signaling(&ours, "film.mp4", scheme);
        expect_frames_of_new_key(&ours, &clear, "film.mp4");
    }
}

#[test]
fn fragmented_avc_and_aac_of_this_server_are_encrypted_again() {
    if has_ffmpeg() {
        expect_films_of_this_server(join_film);
    }
}

#[test]
fn fragmented_hevc_and_eac3_of_this_server_are_encrypted_again() {
    if has_ffmpeg() {
        expect_films_of_this_server(encode_film);
    }
}

#[test]
fn an_index_of_an_encrypted_film_is_encrypted_again() {
    if !has_ffmpeg() {
        return;
    }
    let clear = serve_film(&[], join_film);
    let keys = KeyFiles::of_film();
    let root = tempfile::tempdir().unwrap();
    let film = root.path().join("film.mp4");
    encrypt_film(&film);
    let (film, folder) = (film.to_str().unwrap(), root.path().to_str().unwrap());
    let arguments = ["index", "--subsamples", film, "-o", folder];
    let flags = define_index_command().get_matches_from(arguments);
    assert_eq!(run_index(&flags), std::process::ExitCode::SUCCESS);
    let ours = keys.flags("cenc").serve(root);
    expect_new_signaling(&ours, "film.ism", "cenc");
    assert_eq!(ours.get("/film-index.mp4").status, 404);
    for (list, clear_list) in sorted_playlists(&ours, "film.ism")
        .iter()
        .zip(sorted_playlists(&clear, "film.mp4"))
    {
        let expected = frame_hashes(&clear, &clear_list, None);
        assert_eq!(frame_hashes(&ours, list, Some(NEW_KEY)), expected, "{list}");
    }
}

#[test]
fn a_key_for_another_id_is_not_used() {
    if !has_ffmpeg() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    encrypt_film(&root.path().join("film.mp4"));
    let serve = |flags: &[&str]| TestServer::from_running(start(root.path(), flags).unwrap());
    let keys = KeyFiles::new(&[(AUDIO, VALUE), (LOW, VALUE)]);
    let mut flags = keys.flags("cbcs");
    let ours = serve(&flags.list());
    flags.0.retain(|flag| !flag.contains("source-keys"));
    let theirs = serve(&flags.list());
    let mpd = ours.text("/film.mp4/.mpd");
    assert!(
        mpd.contains(&format!("value=\"cenc\" cenc:default_KID=\"{UUID}\"")),
        "{mpd}"
    );
    assert_eq!(mpd, theirs.text("/film.mp4/.mpd"));
    for list in playlists(&ours, "film.mp4") {
        for url in segments(&ours, &list) {
            let is_same = ours.get(&url).body == theirs.get(&url).body;
            assert!(is_same, "{url}");
        }
    }
}

#[test]
fn nothing_unencrypted_of_a_decrypted_film_is_available() {
    if !has_ffmpeg() {
        return;
    }
    let keys = KeyFiles::of_film();
    let ours = serve_film(&keys.flags("cbcs").list(), encrypt_film);
    let list = sorted_playlists(&ours, "film.mp4").remove(0);
    let folder = list.rsplit_once('/').unwrap().0;
    for target in [
        "/film.mp4",
        "/film.mp4/.m3u8?format=ts",
        "/film.mp4/.key",
        &format!("{folder}/ts.m3u8"),
        &format!("{folder}/0.ts"),
    ] {
        let response = ours.get(target);
        assert_eq!(response.status, 404, "{target}");
        assert!(response.body.len() < 500, "{target}");
    }
    assert_eq!(ours.request("POST", "/film.mp4/.license", "").status, 404);
}

#[test]
fn a_track_without_a_new_key_keeps_its_old_encryption() {
    if !has_ffmpeg() {
        return;
    }
    let keys = KeyFiles {
        own: TextFile::new(&cpix(&[(NEW_UUID, NEW_VALUE, "<AudioFilter/>")])),
        ..KeyFiles::of_film()
    };
    let flags = keys.flags("cbcs");
    let refused = serve_film(&flags.list(), encrypt_film);
    let response = refused.get("/film.mp4/.m3u8");
    let error = response.header("headwater-error");
    assert!(
        response.status == 415 && error.contains("no key for video"),
        "{error}"
    );
    let allowing = [&flags.list()[..], &["--drm-clear-tracks"]].concat();
    let ours = serve_film(&allowing, encrypt_film);
    let clear = serve_film(&[], join_film);
    let expected = sorted_playlists(&clear, "film.mp4");
    let lists = sorted_playlists(&ours, "film.mp4");
    for (at, key) in [(0, KEY), (1, NEW_KEY), (2, KEY)] {
        let frames = frame_hashes(&ours, &lists[at], Some(key));
        assert_eq!(frames, frame_hashes(&clear, &expected[at], None));
    }
}

#[test]
fn missing_source_keys_are_an_error_without_details() {
    if !has_ffmpeg() {
        return;
    }
    let keys = KeyFiles::of_film();
    std::fs::remove_file(keys.source.path()).unwrap();
    let ours = serve_film(&keys.flags("cbcs").list(), encrypt_film);
    let response = ours.get("/film.mp4/.m3u8");
    let error = response.header("headwater-error");
    assert!(
        response.status == 503 && error.contains("source keys"),
        "{error}"
    );
    assert!(
        !error.contains(keys.source.path().to_str().unwrap()),
        "{error}"
    );
    assert!(!response.header("retry-after").is_empty());
}

#[test]
fn another_key_of_the_source_changes_the_urls() {
    if !has_ffmpeg() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    encrypt_film(&root.path().join("film.mp4"));
    let serve = |value| {
        let keys = KeyFiles::new(&[(UUID, value)]);
        let flags = keys.flags("cbcs");
        let server = TestServer::from_running(start(root.path(), &flags.list()).unwrap());
        playlists(&server, "film.mp4")
    };
    assert_eq!(serve(VALUE), serve(VALUE));
    assert_ne!(serve(VALUE), serve(NEW_VALUE));
}

#[test]
fn a_key_that_is_added_later_is_used_without_a_restart() {
    if !has_ffmpeg() {
        return;
    }
    let keys = KeyFiles::new(&[(AUDIO, VALUE)]);
    let flags = keys.flags("cbcs");
    let flags = [&flags.list()[..], &["--drm-cache=0s", "--recheck=0s"]].concat();
    let ours = serve_film(&flags, encrypt_film);
    assert!(ours.text("/film.mp4/.mpd").contains(UUID));
    std::fs::write(keys.source.path(), source_document(&[(UUID, VALUE)])).unwrap();
    expect_new_signaling(&ours, "film.mp4", "cbcs");
    // The source keys are no longer available, so the cached keys stay in use.
    std::fs::remove_file(keys.source.path()).unwrap();
    expect_new_signaling(&ours, "film.mp4", "cbcs");
}

#[test]
fn a_remote_film_is_encrypted_again() {
    if !has_ffmpeg() {
        return;
    }
    let clear = serve_film(&[], join_film);
    let keys = KeyFiles::of_film();
    for scheme in SCHEMES {
        let storage = serve_film(&[], encrypt_film);
        let url = format!("http://{}", storage.address());
        let flags = keys.flags(scheme);
        let flags = [&["--segment", "2s"], &flags.list()[..]].concat();
        let remote = TestServer::from_running(start(Path::new(&url), &flags).unwrap());
        expect_new_signaling(&remote, "film.mp4", scheme);
        expect_frames_of_new_key(&remote, &clear, "film.mp4");
    }
}
