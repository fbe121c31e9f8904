//! Tests which resources a server with Common Encryption serves and which it refuses.
#![allow(clippy::unwrap_used)]

mod support;

use net::config::SettingSources;
use origin::config::{SETTINGS, ServeSettings, SettingLayers, define_serve_command};
use support::TestServer;
use support::keys::*;

#[test]
fn everything_in_playlists_exists_and_is_protected() {
    let secret = TextFile::new(SECRET);
    for scheme in ["cbcs", "cenc"] {
        let server = serve_with_keys(&secret.keys("secret"), &["--drm-scheme", scheme]);
        let all = playlists(&server, "film");
        assert_eq!(
            all.iter().filter(|name| name.contains("keyframes")).count(),
            2
        );
        for playlist in all {
            let method = if scheme == "cbcs" {
                "SAMPLE-AES,"
            } else {
                "SAMPLE-AES-CTR,"
            };
            let text = server.text(&playlist);
            assert!(
                text.contains(&format!("#EXT-X-KEY:METHOD={method}")),
                "{text}"
            );
            for url in segments(&server, &playlist) {
                let response = server.get(&url);
                assert_eq!(response.status, 200, "{url}");
                let name = if url.ends_with("init.mp4") {
                    b"sinf"
                } else {
                    b"senc"
                };
                assert!(contains(&response.body, name), "{url}");
            }
        }
    }
}

#[test]
fn nothing_unencrypted_is_available() {
    let secret = TextFile::new(SECRET);
    let clear = TestServer::new(&["--segment", "2s"]);
    let server = serve_with_keys(&secret.keys("secret"), &[]);
    let folder = |server: &TestServer| {
        let all = playlists(server, "film");
        let video = all.into_iter().find(|p| p.contains("/video=")).unwrap();
        video.rsplit_once('/').unwrap().0.to_owned()
    };
    let (ours, theirs) = (folder(&server), folder(&clear));
    for target in [
        "/film.mp4",
        "/film/video-180p.mp4",
        "/film/.m3u8?format=ts",
        "/film/.key",
        &format!("{ours}/ts.m3u8"),
        &format!("{ours}/0.ts"),
        "/missing/.m3u8",
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 404, "{target}");
        assert!(response.body.len() < 500, "{target}");
    }
    for name in ["0.m4s", "n/1.m4s", "init.mp4"] {
        assert_eq!(
            server.get(&format!("{theirs}/{name}")).status,
            410,
            "{name}"
        );
    }
    assert_eq!(server.request("POST", "/missing/.license", "").status, 404);
    assert_eq!(server.get("/film/.license").status, 405);
    assert_eq!(clear.request("POST", "/film/.license", "").status, 404);
    let preflight = server.request("OPTIONS", "/film/.license", "");
    assert_eq!(
        preflight.header("access-control-allow-methods"),
        "POST, OPTIONS"
    );
}

#[test]
fn ranges_heads_and_numbers_have_the_same_bytes_in_every_process() {
    let secret = TextFile::new(SECRET);
    let keys = secret.keys("secret");
    let flags = ["--drm-key-per", "type"];
    let (first, second) = (
        serve_with_keys(&keys, &flags),
        serve_with_keys(&keys, &flags),
    );
    let uncached = serve_with_keys(&keys, &[&flags[..], &["--segment-memory", "0B"]].concat());
    for playlist in playlists(&first, "film") {
        let urls = segments(&first, &playlist);
        for url in [&urls[1], urls.last().unwrap()] {
            let whole = first.get(url);
            assert_eq!(
                (whole.status, second.get(url).body),
                (200, whole.body.clone()),
                "{url}"
            );
            let head = first.request("HEAD", url, "");
            assert_eq!(head.header("content-length"), whole.body.len().to_string());
            for server in [&first, &uncached] {
                let part = server.request("GET", url, "Range: bytes=100-299\r\n");
                assert_eq!((part.status, &part.body[..]), (206, &whole.body[100..300]));
            }
            let etag = whole.header("etag");
            let same = first.request("GET", url, &format!("If-None-Match: {etag}\r\n"));
            assert_eq!(same.status, 304);
        }
        if playlist.ends_with("/hls.m3u8") {
            let folder = playlist.rsplit_once('/').unwrap().0;
            let numbered = first.get(&format!("{folder}/n/1.m4s"));
            assert_eq!(numbered.body, first.get(&urls[1]).body);
        }
    }
}

#[test]
fn a_license_contains_the_keys_of_the_manifests() {
    let secret = TextFile::new(SECRET);
    let server = serve_with_keys(&secret.keys("secret"), &["--drm-key-per", "resolution"]);
    let license = server.request("POST", "/film/.license", "Content-Length: 0\r\n");
    assert_eq!(
        (license.status, license.header("cache-control")),
        (200, "no-store")
    );
    let text = String::from_utf8(license.body).unwrap();
    assert_eq!(text.matches("\"kty\":\"oct\"").count(), 4, "{text}");
    let described = server.text("/film/.json");
    assert!(
        described.contains("\"encryption\":\"cbcs\",\"license\":\".license\""),
        "{described}"
    );
    // The settings contain no license URL, so the manifest contains the license URL of this server.
    let mpd = server.text("/film/.mpd");
    assert!(
        mpd.contains("<dashif:Laurl>/film/.license</dashif:Laurl>"),
        "{mpd}"
    );
}

#[test]
fn other_methods_of_the_license_url_get_its_allowed_methods() {
    let secret = TextFile::new(SECRET);
    let server = serve_with_keys(&secret.keys("secret"), &[]);
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        let response = server.request(method, "/film/.license", "");
        let status = if method == "OPTIONS" { 204 } else { 405 };
        assert_eq!(response.status, status, "{method}");
        assert_eq!(response.header("allow"), "POST, OPTIONS", "{method}");
    }
}

const SYSTEMS: [&str; 8] = [
    "--drm-systems",
    "widevine",
    "--drm-systems",
    "playready",
    "--drm-systems",
    "fairplay",
    "--drm-license-url-widevine",
    "https://l.example/{title}?kid={uuid}",
];

#[test]
fn every_system_is_signaled_once() {
    let secret = TextFile::new(SECRET);
    let server = serve_with_keys(&secret.keys("secret"), &SYSTEMS);
    let mpd = server.text("/film/.mpd");
    for (part, count) in [
        (
            "urn:mpeg:dash:mp4protection:2011\" value=\"cbcs\" cenc:default_KID=",
            3,
        ),
        ("urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed", 3),
        ("<mspr:pro>", 3),
        ("<cenc:pssh>", 6),
        ("<dashif:Laurl>https://l.example/film?kid=", 3),
    ] {
        assert_eq!(mpd.matches(part).count(), count, "{part}: {mpd}");
    }
    let multivariant = server.text("/film/.m3u8");
    assert_eq!(
        multivariant.matches("#EXT-X-SESSION-KEY:").count(),
        3,
        "{multivariant}"
    );
    for playlist in playlists(&server, "film") {
        let text = server.text(&playlist);
        assert_eq!(
            text.matches("#EXT-X-KEY:METHOD=SAMPLE-AES,").count(),
            3,
            "{text}"
        );
        assert_eq!(text.matches("URI=\"skd://").count(), 1, "{text}");
    }
}

fn usage_error(flags: &[&str]) -> String {
    let flags = define_serve_command().get_matches_from([&["serve"], flags].concat());
    let layers = SettingLayers::new(&SettingSources {
        settings: SETTINGS,
        tables: &[],
        flags: &flags,
        env: &|_| None,
        read: &|path| std::fs::read_to_string(path),
    });
    let settings = layers.and_then(|layers| ServeSettings::new(&layers).map(drop));
    settings.err().unwrap().to_string()
}

#[test]
fn contradicting_settings_are_refused() {
    for (flags, wrong) in [
        (
            &["--drm-keys", "secret:a", "--aes-secret", "a"][..],
            "both encrypt the segments",
        ),
        (
            &["--drm-keys", "secret:a", "--drm-scheme", "cbc"],
            "expected cbcs or cenc",
        ),
        (
            &["--drm-keys", "secret:a", "--drm-source-keys", "secret:a"],
            "expected cpix:FILE, cpix:URL, udrm:URL or none",
        ),
        (
            &["--drm-source-keys", "cpix:a"],
            "drm-source-keys requires a source of keys",
        ),
        (
            &[
                "--drm-keys",
                "secret:a",
                "--drm-scheme",
                "cenc",
                "--drm-systems",
                "fairplay",
            ],
            "only cbcs",
        ),
        (&["--drm-keys", "other:a"], "expected secret:FILE"),
        (
            &["--drm-keys", "secret:a", "--drm-certificate", "a"],
            "drm-certificate requires the private key",
        ),
        (
            &[
                "--drm-keys",
                "secret:a",
                "--drm-license-url",
                "vine=http://h/",
            ],
            "expected widevine=… or playready=… or clearkey=…",
        ),
        (
            &["--drm-keys", "secret:a", "--drm-license-url", "widevine"],
            "drm-license-url = \"widevine\" (--drm-license-url): expected widevine=…",
        ),
        (
            &["--drm-license-url", "widevine=http://h/"],
            "drm-license-url-widevine requires a source of keys",
        ),
        (
            &["--drm-scheme", "cbcs"],
            "drm-scheme requires a source of keys",
        ),
        (
            &["--drm-keys", "cpix:https://u:p@h/{title}"],
            "without a user name",
        ),
        (
            &["--drm-keys", "cpix:https://{title}/x"],
            "without a user name",
        ),
    ] {
        let error = usage_error(flags);
        assert!(error.contains(wrong), "{error}");
        assert!(!error.contains(":p@"), "{error}");
    }
}

#[test]
fn the_table_of_the_file_nests() {
    let secret = TextFile::new(SECRET);
    let file = TextFile::new(&format!(
        "[drm]\nkeys = {:?}\nsystems = [\"widevine\"]\nlicense-url = {{ widevine = \"https://l.example/w\" }}\n",
        secret.keys("secret")
    ));
    let server = TestServer::new(&["--config", file.path().to_str().unwrap()]);
    let mpd = server.text("/film/.mpd");
    assert!(
        mpd.contains("<dashif:Laurl>https://l.example/w</dashif:Laurl>"),
        "{mpd}"
    );
}

/// Flags for each system override the table of the settings file.
#[test]
fn license_urls_are_set_by_system() {
    let secret = TextFile::new(SECRET);
    let file = TextFile::new(&format!(
        "[drm]\nkeys = {:?}\nsystems = [\"widevine\", \"playready\"]\nlicense-url = {{ widevine = \"https://l.example/w\" }}\n",
        secret.keys("secret")
    ));
    let flags = [
        "--config",
        file.path().to_str().unwrap(),
        "--drm-license-url",
        "widevine=https://f.example/w?a=b",
        "--drm-license-url",
        "playready=https://f.example/p",
    ]
    .map(str::to_owned);
    let server = TestServer::new(&flags.each_ref().map(String::as_str));
    let mpd = server.text("/film/.mpd");
    for url in ["https://f.example/w?a=b", "https://f.example/p"] {
        assert!(mpd.contains(&format!("<dashif:Laurl>{url}<")), "{mpd}");
    }
    assert!(!mpd.contains("l.example"), "{mpd}");
    let json = server.text("/film/.json");
    assert!(
        json.contains("\"systems\":[\"widevine\",\"playready\"]"),
        "{json}"
    );
}

#[test]
fn a_document_gives_each_rendition_its_key() {
    let document = TextFile::new(&three_keys());
    let server = serve_with_keys(&document.keys("cpix"), &["--drm-systems", "widevine"]);
    let mpd = server.text("/film/.mpd");
    for (kid, count) in [(LOW, 1), (HIGH, 1), (AUDIO, 2)] {
        let part = format!("cenc:default_KID=\"{kid}\"");
        assert_eq!(mpd.matches(&part).count(), count, "{mpd}");
    }
    // Players may switch between the two adaptation sets of the video.
    let switching = "urn:mpeg:dash:adaptation-set-switching:2016\" value=";
    assert!(mpd.contains(&format!("{switching}\"2\"")), "{mpd}");
    assert!(mpd.contains(&format!("{switching}\"1\"")), "{mpd}");
    let multivariant = server.text("/film/.m3u8");
    assert_eq!(
        multivariant.matches("#EXT-X-SESSION-KEY:").count(),
        3,
        "{multivariant}"
    );
    // A license of this server never contains the keys of a document, so there is no license URL.
    assert_eq!(server.request("POST", "/film/.license", "").status, 404);
    assert!(!server.text("/film/.json").contains("license"));
}

#[test]
fn a_track_without_a_key_needs_permission() {
    let document = TextFile::new(&cpix(&[(LOW, VALUE, "<VideoFilter/>")]));
    let refused = serve_with_keys(&document.keys("cpix"), &[]).get("/film/.m3u8");
    assert_eq!(refused.status, 415);
    let error = refused.header("headwater-error");
    assert!(error.contains("no key for audio"), "{error}");
    let allowed = serve_with_keys(&document.keys("cpix"), &["--drm-clear-tracks"]);
    for playlist in playlists(&allowed, "film") {
        let is_video = playlist.contains("/video=");
        let init = allowed.get(&segments(&allowed, &playlist)[0]).body;
        assert_eq!(contains(&init, b"sinf"), is_video, "{playlist}");
    }
}

/// Returns the init segment and the media segments of a title's video, in order.
fn video_bytes(server: &TestServer, title: &str) -> Vec<Vec<u8>> {
    let all = playlists(server, title);
    let is_video = |name: &&String| name.contains("/video=") && name.ends_with("/hls.m3u8");
    let playlist = all.iter().find(is_video).unwrap();
    let urls = segments(server, playlist);
    urls.iter().map(|url| server.get(url).body).collect()
}

#[test]
fn a_remote_title_has_the_same_bytes_and_takes_one_request_per_segment() {
    let secret = TextFile::new(SECRET);
    let keys = secret.keys("secret");
    let storage = TestServer::new(&[]);
    let url = format!("http://{}", storage.address());
    let flags = ["--segment", "2s", "--drm-keys", &keys];
    let running = support::start(std::path::Path::new(&url), &flags).unwrap();
    let remote = TestServer::from_running(running);
    let local = serve_with_keys(&keys, &[]);
    let playlist = |server: &TestServer| {
        let all = playlists(server, "film.mp4");
        all.into_iter()
            .find(|name| name.ends_with("/hls.m3u8"))
            .unwrap()
    };
    let (ours, theirs) = (
        segments(&remote, &playlist(&remote)),
        segments(&local, &playlist(&local)),
    );
    let requests = || remote.metric("headwater_storage_requests_total{reason=\"segment\"}");
    let before = requests();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(remote.get(ours).body, local.get(theirs).body, "{ours}");
    }
    let cold = requests() - before;
    assert_eq!(
        cold,
        ours.len() as u64 - 1,
        "one request for each segment, none for the init segment"
    );
}

#[test]
fn titles_that_name_other_files_are_protected() {
    let secret = TextFile::new(SECRET);
    let server = serve_with_keys(&secret.keys("secret"), &[]);
    let smil = "<smil><body><switch><video src=\"film.mp4\"/></switch></body></smil>";
    std::fs::write(server.path("named.ism"), smil).unwrap();
    for body in video_bytes(&server, "named.ism") {
        assert!(contains(&body, b"senc") || contains(&body, b"sinf"));
    }
    assert_eq!(server.get("/named.ism").status, 404);
}

#[test]
fn codecs_that_cannot_be_protected_are_refused_by_name() {
    let library =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fixtures/library");
    let secret = TextFile::new(SECRET);
    let server = serve_with_keys(&secret.keys("secret"), &[]);
    for (name, codec) in [("av1.mp4", "av01"), ("vp9.mp4", "vp09")] {
        if std::fs::copy(library.join(name), server.path(name)).is_err() {
            println!("SKIPPED {name}: fixtures/make.sh has not run");
            continue;
        }
        let response = server.get(&format!("/{name}/.m3u8"));
        let error = response.header("headwater-error");
        assert_eq!(response.status, 415, "{error}");
        assert!(
            error.contains(&format!("codec {codec} cannot be protected yet")),
            "{error}"
        );
    }
}
