//! Tests which resources a server with AES-128 encryption serves and which it refuses.
#![allow(clippy::unwrap_used)]

mod support;

use aws_lc_rs::cipher::{AES_128, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use std::path::{Path, PathBuf};
use support::TestServer;

/// A secret in a temporary file.
struct Secret {
    folder: tempfile::TempDir,
}

impl Secret {
    fn new(text: &str) -> Secret {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), text).unwrap();
        Secret { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("secret")
    }
}

fn serve_encrypted(secret: &Secret, flags: &[&str]) -> TestServer {
    let path = secret.path();
    let own = ["--segment", "2s", "--aes-secret", path.to_str().unwrap()];
    TestServer::new(&[&own, flags].concat())
}

const SECRET: &str = "0123456789abcdef0123456789abcdef\n";

/// Returns the URLs in a playlist as absolute paths.
fn resolved_urls(server: &TestServer, playlist: &str) -> Vec<String> {
    let (folder, _) = playlist.rsplit_once('/').unwrap();
    let text = server.text(playlist);
    let quoted = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("URI=\"")?;
        rest.split_once('"').map(|(uri, _)| uri)
    });
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let at = |uri: &str| match uri.strip_prefix("../../") {
        Some(up) => {
            let folder = Path::new(folder).parent().unwrap().parent().unwrap();
            folder.join(up).to_str().unwrap().to_owned()
        }
        None => format!("{folder}/{uri}"),
    };
    quoted.chain(lines).map(at).collect()
}

/// Returns the media playlists of a title. `query` selects the container.
fn playlists(server: &TestServer, title: &str, query: &str) -> Vec<String> {
    let text = server.text(&format!("/{title}/.m3u8{query}"));
    let quoted = text.split('"').filter(|word| word.ends_with(".m3u8"));
    let mut found: Vec<_> = quoted
        .chain(text.lines().filter(|line| line.ends_with(".m3u8")))
        .map(|uri| format!("/{title}/{uri}"))
        .collect();
    found.sort();
    found.dedup();
    found
}

fn decrypt(mut bytes: Vec<u8>, key: &[u8], sequence: u128) -> Vec<u8> {
    let key = UnboundCipherKey::new(&AES_128, key).unwrap();
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).unwrap();
    let context = DecryptionContext::Iv128(FixedLength::from(sequence.to_be_bytes()));
    key.decrypt(&mut bytes, context).unwrap().to_vec()
}

fn is_segment(address: &str) -> bool {
    [".m4s", ".ts", ".aac"]
        .iter()
        .any(|end| address.ends_with(end))
}

#[test]
fn segments_equal_the_unencrypted_ones_after_decryption() {
    let secret = Secret::new(SECRET);
    let (clear, server) = (
        TestServer::new(&["--segment", "2s"]),
        serve_encrypted(&secret, &[]),
    );
    let mut compared = 0;
    for (title, query) in [("film", ""), ("film", "?format=ts"), ("film.mp4", "")] {
        let (those, these) = (
            playlists(&clear, title, query),
            playlists(&server, title, query),
        );
        let those: Vec<_> = those.iter().filter(|p| !p.contains("keyframes")).collect();
        assert_eq!(those.len(), these.len());
        let key = server.get(&format!("/{title}/.key"));
        assert_eq!((key.status, key.body.len()), (200, 16));
        assert_eq!(key.header("cache-control"), "no-store");
        for (that, this) in those.into_iter().zip(&these) {
            let clear_segments = resolved_urls(&clear, that)
                .into_iter()
                .filter(|a| is_segment(a));
            let segments = resolved_urls(&server, this)
                .into_iter()
                .filter(|a| is_segment(a));
            for (n, (that, this)) in clear_segments.zip(segments).enumerate() {
                let (that, this) = (clear.get(&that), server.get(&this));
                assert_eq!((that.status, this.status), (200, 200));
                let (len, encrypted_len) = (that.body.len(), this.body.len());
                assert_eq!(encrypted_len, (len / 16 + 1) * 16);
                assert_ne!(this.body[..16], that.body[..16]);
                assert!(decrypt(this.body, &key.body, n as u128 + 1) == that.body);
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn everything_in_playlists_exists_and_nothing_is_unencrypted() {
    let secret = Secret::new(SECRET);
    let (clear, server) = (
        TestServer::new(&["--segment", "2s"]),
        serve_encrypted(&secret, &[]),
    );
    std::fs::write(server.path("film/ready.m3u8"), "#EXTM3U ready\n").unwrap();
    for query in ["", "?format=ts"] {
        for playlist in playlists(&server, "film", query) {
            assert!(!playlist.contains("keyframes"), "{playlist}");
            let text = server.text(&playlist);
            assert_eq!(text.matches("METHOD=AES-128,URI=\"../../.key\"").count(), 1);
            for address in resolved_urls(&server, &playlist) {
                assert_eq!(server.get(&address).status, 200, "{address}");
            }
        }
    }
    let video = |server: &TestServer| {
        let all = playlists(server, "film", "");
        let video = all.into_iter().find(|p| p.contains("/video=")).unwrap();
        video.strip_suffix("/hls.m3u8").unwrap().to_owned()
    };
    let (ours, theirs) = (video(&server), video(&clear));
    let gone = ["0.m4s", "n/1.m4s", "0.ts", "key/0.m4s", "init.mp4"];
    for name in gone {
        // A cache may still contain URLs of a server without encryption. These URLs differ from the
        // URLs of this server.
        let response = server.get(&format!("{theirs}/{name}"));
        assert_eq!(response.status, 410, "{name}: {response:?}");
    }
    for target in [
        "/film.mp4",
        "/film/video-180p.mp4",
        "/film/audio-eng.m4a",
        "/film/.mpd",
        "/film/.mpd?template=number",
        "/film/film.mpd",
        "/film.mp4/.mpd",
        &format!("{ours}/n/1.m4s"),
        &format!("{ours}/key/0.m4s"),
        &format!("{ours}/keyframes.m3u8"),
        "/missing/.key",
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 404, "{target}");
        assert!(response.body.len() < 500, "{target}");
    }
    // The library contains a file of this name, but the server returns the generated playlist
    // instead.
    assert!(!server.text("/film/ready.m3u8").contains("ready"));
    // A server without encryption has no keys to serve.
    assert_eq!(clear.get("/film/.key").status, 404);
    let described = server.text("/film/.json");
    assert!(described.contains("\"encryption\":\"aes-128\""));
    assert!(!described.contains(".mpd"));
}

#[test]
fn two_segment_lengths_never_reuse_an_iv() {
    let secret = Secret::new(SECRET);
    let (hls, both) = (
        serve_encrypted(&secret, &[]),
        serve_encrypted(&secret, &["--dash-segment", "4s"]),
    );
    assert_eq!(playlists(&hls, "film", ""), playlists(&both, "film", ""));
    let described = both.text("/film/.json");
    assert!(!described.contains("dash_set"), "{described}");
}

#[test]
fn ranges_and_conditions_apply_to_encrypted_bytes() {
    let secret = Secret::new(SECRET);
    for memory in ["0B", "64MiB"] {
        let server = serve_encrypted(&secret, &["--segment-memory", memory]);
        for query in ["", "?format=ts"] {
            let playlist = &playlists(&server, "film", query)[0];
            let names = resolved_urls(&server, playlist);
            let segment = names.iter().find(|name| is_segment(name)).unwrap();
            let whole = server.get(segment);
            let len = whole.body.len();
            let head = server.request("HEAD", segment, "");
            assert_eq!(head.header("content-length"), len.to_string());
            for (from, to) in [(0, 15), (17, 900), (len - 20, len - 1)] {
                let range = format!("Range: bytes={from}-{to}\r\n");
                let part = server.request("GET", segment, &range);
                assert_eq!(part.status, 206);
                assert!(part.body == whole.body[from..=to]);
            }
            let tag = format!("If-None-Match: {}\r\n", whole.header("etag"));
            assert_eq!(server.request("GET", segment, &tag).status, 304);
            assert!(server.get(segment).body == whole.body);
        }
    }
}

#[test]
fn external_key_urls_are_printed_and_keys_not_served() {
    let secret = Secret::new(SECRET);
    // Playlists have no modification date, because the date would stay the same when the key URL
    // changes.
    let here = serve_encrypted(&secret, &[]);
    let playlist = &playlists(&here, "film", "")[0];
    assert_eq!(here.get(playlist).header("last-modified"), "");
    assert_ne!(here.get(playlist).header("etag"), "");
    let server = serve_encrypted(&secret, &["--aes-key-url", "/keys?of={title}"]);
    let playlist = &playlists(&server, "film", "")[0];
    let text = server.text(playlist);
    assert!(text.contains("URI=\"/keys?of=film\""), "{text}");
    assert_eq!(server.get("/film/.key").status, 404);
}

#[test]
fn another_secret_gives_other_urls() {
    let (one, other) = (Secret::new(SECRET), Secret::new("another secret of ours"));
    let (one, other) = (serve_encrypted(&one, &[]), serve_encrypted(&other, &[]));
    assert_ne!(playlists(&one, "film", ""), playlists(&other, "film", ""));
    // Trailing newlines are not part of the secret.
    let lines = Secret::new("0123456789abcdef0123456789abcdef\n\n");
    let lines = serve_encrypted(&lines, &[]);
    assert_eq!(playlists(&one, "film", ""), playlists(&lines, "film", ""));
}

#[test]
fn invalid_secrets_are_reported_at_startup() {
    for (text, why) in [
        ("short\n", "the secret has 5 bytes instead of 16 to 4096"),
        (&"x".repeat(5000), "the secret has 5000"),
        ("0123456789abcdef0123456789abcdef\r\n", "control characters"),
        ("0123456789abcdef\0abcdef", "control characters"),
    ] {
        let secret = Secret::new(text);
        let path = secret.path();
        let failed = support::start(
            &support::demo_folder(),
            &["--aes-secret", path.to_str().unwrap()],
        );
        let failed = failed.err().unwrap().to_string();
        assert!(failed.contains(why), "{failed}");
    }
    let failed = support::start(&support::demo_folder(), &["--aes-secret", "/no/such/file"]);
    assert!(failed.err().unwrap().to_string().contains("/no/such/file"));
}
