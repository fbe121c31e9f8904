//! For each scheme, codec and protocol, ffmpeg decrypts all segments and, separately, the last
//! segment. The segments of I-frame playlists are decrypted in the same way. The decrypted frames
//! equal the frames of the unencrypted film. Range requests return the same bytes as requests for
//! whole segments.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::TestServer;
use support::keys::*;

/// The key `VALUE` in hexadecimal, as ffmpeg requires.
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const WRONG_KEY: &str = "0f0e0d0c0b0a09080706050403020100";
/// Titles that `fixtures/make.sh` writes, each with its codec.
const TITLES: [(&str, &str); 6] = [
    ("avc.mp4", "avc1"),
    ("hevc.mp4", "hvc1"),
    ("ac3.mp4", "ac-3"),
    ("eac3.mp4", "ec-3"),
    ("opus.mp4", "opus"),
    ("flac.mp4", "fLaC"),
];

/// Returns the titles whose fixtures exist, with codec and path.
fn available_titles() -> Vec<(&'static str, &'static str, PathBuf)> {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fixtures/library");
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        println!("SKIPPED: ffmpeg is not installed");
        return Vec::new();
    }
    let titles = TITLES.into_iter();
    titles
        .filter_map(|(name, codec)| {
            let path = library.join(name);
            if !path.exists() {
                println!(
                    "SKIPPED {name}: fixtures/make.sh has not run, or ffmpeg lacks an encoder"
                );
                return None;
            }
            Some((name, codec, path))
        })
        .collect()
}

fn serve_titles(titles: &[(&str, &str, PathBuf)], flags: &[&str]) -> TestServer {
    let root = tempfile::tempdir().unwrap();
    for (name, _, path) in titles {
        std::fs::copy(path, root.path().join(name)).unwrap();
    }
    TestServer::from_folder(root, &[&["--segment", "2s"], flags].concat())
}

/// Decodes files with ffmpeg, and caches the result for each file and key.
#[derive(Default)]
struct FrameDecoder {
    decoded: HashMap<(Vec<u8>, Option<&'static str>), String>,
}

impl FrameDecoder {
    /// Returns the times and hashes of all frames.
    fn hash_frames(&mut self, file: Vec<u8>, key: Option<&'static str>) -> String {
        let run = |file: &[u8]| {
            let key = key.map_or(Vec::new(), |key| vec!["-decryption_key", key]);
            let mut command = Command::new("ffmpeg");
            command.args(["-v", "error"]).args(key);
            command.args(["-i", "-", "-fps_mode", "passthrough", "-f", "framemd5", "-"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            std::thread::scope(|scope| {
                // Ignores the error, because ffmpeg may stop reading after a decoding error.
                scope.spawn(move || stdin.write_all(file).ok());
                let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
                let lines = text.lines().filter(|line| !line.starts_with("#software"));
                lines.collect::<Vec<_>>().join("\n")
            })
        };
        if let Some(frames) = self.decoded.get(&(file.clone(), key)) {
            return frames.clone();
        }
        let frames = run(&file);
        self.decoded.insert((file, key), frames.clone());
        frames
    }
}

/// Returns the URLs of the init segment and the media segments of each rendition in the MPD.
fn dash_segments(server: &TestServer, title: &str) -> Vec<Vec<String>> {
    let mpd = server.text(&format!("/{title}/.mpd"));
    let between = |text: &str, start: &str, end: &str| {
        let (_, rest) = text.split_once(start).unwrap();
        rest.split_once(end).unwrap().0.to_owned()
    };
    let base = between(&mpd, "<BaseURL>", "</BaseURL>");
    let number = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        rest.split_once('"')?.0.parse::<i64>().ok()
    };
    let sets = mpd.split("<AdaptationSet").skip(1).map(|set| {
        let (mut time, mut times) = (0, Vec::new());
        for line in set.lines().filter(|line| line.contains("<S ")) {
            time = number(line, "t").unwrap_or(time);
            for _ in 0..=number(line, "r").unwrap_or(0) {
                times.push(time);
                time += number(line, "d").unwrap();
            }
        }
        let ids = set.split("<Representation id=\"").skip(1);
        let ids = ids.map(|rest| rest.split_once('"').unwrap().0.to_owned());
        let list_urls = |id: String| -> Vec<String> {
            let url = |attribute: &str, time: i64| {
                let template = between(set, &format!(" {attribute}=\""), "\"");
                let name = template.replace("$RepresentationID$", &id);
                let name = name.replace("$Time$", &time.to_string());
                format!("/{title}/{base}{name}")
            };
            let media = times.iter().map(|time| url("media", *time));
            std::iter::once(url("initialization", 0))
                .chain(media)
                .collect()
        };
        ids.map(list_urls).collect::<Vec<_>>()
    });
    let mut found: Vec<Vec<String>> = sets.flatten().collect();
    // Sorts the renditions, because the keys determine the order of the adaptation sets.
    found.sort_by_key(|urls| urls[0].rsplit('/').nth(1).unwrap().to_owned());
    found
}

/// Returns the segment URLs of each media and I-frame playlist, and of each rendition in the MPD.
fn list_renditions(server: &TestServer, title: &str) -> Vec<Vec<String>> {
    let hls = playlists(server, title);
    let hls = hls.iter().map(|playlist| segments(server, playlist));
    hls.chain(dash_segments(server, title)).collect()
}

fn get_body(server: &TestServer, url: &str) -> Vec<u8> {
    let response = server.get(url);
    assert_eq!(response.status, 200, "{url}");
    response.body
}

/// Reads a segment in three ranges.
fn get_ranges(server: &TestServer, url: &str, len: usize) -> Vec<u8> {
    let cuts = [0, len / 3, len / 2, len];
    let ranges = cuts.windows(2).map(|cut| {
        let range = format!("Range: bytes={}-{}\r\n", cut[0], cut[1] - 1);
        let response = server.request("GET", url, &range);
        assert_eq!(response.status, 206, "{url}");
        response.body
    });
    ranges.collect::<Vec<_>>().concat()
}

fn expect_equal_frames(scheme: &str) {
    let titles = available_titles();
    let document = TextFile::new(&cpix(&[(LOW, VALUE, "")]));
    let keys = document.keys("cpix");
    let flags = ["--drm-keys", &*keys, "--drm-scheme", scheme];
    // Without a segment cache, the server encrypts each range separately.
    let uncached = [&flags[..], &["--segment-memory", "0B"]].concat();
    let (clear, ours) = (serve_titles(&titles, &[]), serve_titles(&titles, &flags));
    let uncached = serve_titles(&titles, &uncached);
    let mut decoder = FrameDecoder::default();
    for (title, codec, _) in &titles {
        assert!(
            clear.text(&format!("/{title}/.m3u8")).contains(codec),
            "{title}"
        );
        let (theirs, own) = (
            list_renditions(&clear, title),
            list_renditions(&ours, title),
        );
        assert_eq!(theirs.len(), own.len(), "{title}");
        for (theirs, own) in theirs.iter().zip(&own) {
            let fetch = |server, urls: &[String]| -> Vec<Vec<u8>> {
                urls.iter().map(|url| get_body(server, url)).collect()
            };
            let (plain, encrypted) = (fetch(&clear, theirs), fetch(&ours, own));
            assert_eq!(plain.len(), encrypted.len(), "{own:?}");
            let ranges = own.iter().zip(&encrypted);
            let ranges = ranges.map(|(url, body)| get_ranges(&uncached, url, body.len()));
            assert!(ranges.eq(encrypted.iter().cloned()), "{own:?}: ranges");
            let wrong = decoder.hash_frames(encrypted.concat(), Some(WRONG_KEY));
            let last = |files: &[Vec<u8>]| [&*files[0], files.last().unwrap()].concat();
            for (plain, encrypted, what) in [
                (plain.concat(), encrypted.concat(), "all segments"),
                (last(&plain), last(&encrypted), "the last segment"),
            ] {
                let expected = decoder.hash_frames(plain, None);
                let lines = expected.lines().filter(|line| !line.starts_with('#'));
                assert!(lines.count() >= 1, "{scheme}, {own:?}: {what}: {expected}");
                assert_ne!(wrong, expected, "{scheme}, {own:?} is not encrypted");
                let decrypted = decoder.hash_frames(encrypted.clone(), Some(KEY));
                assert_eq!(decrypted, expected, "{scheme}, {own:?}: {what}");
            }
        }
    }
}

#[test]
fn ffmpeg_decrypts_every_codec_with_cbcs() {
    expect_equal_frames("cbcs");
}

#[test]
fn ffmpeg_decrypts_every_codec_with_cenc() {
    expect_equal_frames("cenc");
}

#[test]
fn three_keys_decrypt_only_their_own_renditions() {
    if available_titles().is_empty() {
        return;
    }
    let low_key = "000102030405060708090a0b0c0d0e0f";
    let high_key = "101112131415161718191a1b1c1d1e1f";
    let audio_key = "202122232425262728292a2b2c2d2e2f";
    let document = TextFile::new(&cpix(&[
        (LOW, VALUE, "<VideoFilter maxPixels=\"100000\"/>"),
        (
            HIGH,
            "EBESExQVFhcYGRobHB0eHw==",
            "<VideoFilter minPixels=\"100001\"/>",
        ),
        (AUDIO, "ICEiIyQlJicoKSorLC0uLw==", "<AudioFilter/>"),
    ]));
    let clear = TestServer::new(&["--segment", "2s"]);
    let ours = serve_with_keys(&document.keys("cpix"), &[]);
    let mut decoder = FrameDecoder::default();
    let mut used = Vec::new();
    let renditions = dash_segments(&ours, "film").into_iter();
    for (own, theirs) in renditions.zip(dash_segments(&clear, "film")) {
        // The init segment and the first two media segments are enough.
        let read = |server, urls: &[String]| -> Vec<u8> {
            let bodies = urls.iter().take(3).map(|url| get_body(server, url));
            bodies.collect::<Vec<_>>().concat()
        };
        let expected = decoder.hash_frames(read(&clear, &theirs), None);
        let file = read(&ours, &own);
        let fits = |key: &&&'static str| decoder.hash_frames(file.clone(), Some(key)) == expected;
        let keys: Vec<&str> = [low_key, high_key, audio_key]
            .iter()
            .filter(fits)
            .copied()
            .collect();
        let [key] = keys[..] else {
            panic!("{own:?} is decrypted with {keys:?}");
        };
        assert_eq!(key == audio_key, own[0].contains("/audio"), "{own:?}");
        used.push(key);
    }
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, [low_key, high_key, audio_key]);
}
