//! Common Encryption: what a protecting server serves and refuses, and its key servers.
#![allow(clippy::unwrap_used)]

mod support;

use net::config::SettingSources;
use origin::config::{SETTINGS, ServeSettings, SettingLayers, serve_command};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use support::TestServer;

const SECRET: &str = "0123456789abcdef0123456789abcdef\n";

/// A file in a temporary folder.
struct TextFile {
    folder: tempfile::TempDir,
}

impl TextFile {
    fn new(text: &str) -> TextFile {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), text).unwrap();
        TextFile { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn keys(&self, kind: &str) -> String {
        format!("{kind}:{}", self.path().display())
    }
}

fn serve_with_keys(keys: &str, flags: &[&str]) -> TestServer {
    let own = ["--segment", "2s", "--drm-keys", keys];
    TestServer::new(&[&own, flags].concat())
}

/// Returns the media and I-frame playlists of a title.
fn playlists(server: &TestServer, title: &str) -> Vec<String> {
    let text = server.text(&format!("/{title}/.m3u8"));
    let words = text
        .split(['"', '\n'])
        .filter(|word| word.ends_with(".m3u8"));
    let mut found: Vec<_> = words.map(|uri| format!("/{title}/{uri}")).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the URLs of init segment and segments.
fn segments(server: &TestServer, playlist: &str) -> Vec<String> {
    let folder = playlist.rsplit_once('/').unwrap().0;
    let text = server.text(playlist);
    let lines = text.lines().filter(|line| line.ends_with(".m4s"));
    let names = std::iter::once("init.mp4").chain(lines);
    names.map(|name| format!("{folder}/{name}")).collect()
}

fn contains(bytes: &[u8], name: &[u8; 4]) -> bool {
    bytes.windows(4).any(|four| four == name)
}

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
    // With a license server, this one keeps the keys.
    let mpd = server.text("/film/.mpd");
    assert!(
        mpd.contains("<dashif:Laurl>/film/.license</dashif:Laurl>"),
        "{mpd}"
    );
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
    let flags = serve_command().get_matches_from([&["serve"], flags].concat());
    let layers = SettingLayers::new(&SettingSources {
        settings: SETTINGS,
        tables: &[],
        flags: &flags,
        env: &|_| None,
        read: &|path| std::fs::read_to_string(path),
    });
    ServeSettings::new(&layers.unwrap())
        .err()
        .unwrap()
        .to_string()
}

#[test]
fn contradicting_settings_are_refused() {
    for (flags, wrong) in [
        (
            &["--drm-keys", "secret:a", "--aes-secret", "a"][..],
            "two encryptions",
        ),
        (
            &["--drm-keys", "secret:a", "--drm-scheme", "cbc"],
            "expected cbcs or cenc",
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

fn cpix(keys: &[(&str, &str, &str)]) -> String {
    let key = |(kid, value, _): &(&str, &str, &str)| {
        format!(
            "<ContentKey kid=\"{kid}\"><Data><Secret><PlainValue>{value}</PlainValue></Secret></Data></ContentKey>"
        )
    };
    let rule = |(kid, _, filter): &(&str, &str, &str)| {
        format!("<ContentKeyUsageRule kid=\"{kid}\">{filter}</ContentKeyUsageRule>")
    };
    let all =
        |part: &dyn Fn(&(&str, &str, &str)) -> String| keys.iter().map(part).collect::<String>();
    format!(
        "<CPIX version=\"2.3\" xmlns=\"urn:dashif:org:cpix\"><ContentKeyList>{}</ContentKeyList><ContentKeyUsageRuleList>{}</ContentKeyUsageRuleList></CPIX>",
        all(&key),
        all(&rule)
    )
}

const LOW: &str = "00000000-0000-0000-0000-0000000000a1";
const HIGH: &str = "00000000-0000-0000-0000-0000000000a2";
const AUDIO: &str = "00000000-0000-0000-0000-0000000000a3";
const VALUE: &str = "AAECAwQFBgcICQoLDA0ODw==";

fn three_keys() -> String {
    cpix(&[
        (LOW, VALUE, "<VideoFilter maxPixels=\"100000\"/>"),
        (HIGH, VALUE, "<VideoFilter minPixels=\"100001\"/>"),
        (AUDIO, VALUE, "<AudioFilter/>"),
    ])
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
    // Players may switch between the two sets of the video.
    let switching = "urn:mpeg:dash:adaptation-set-switching:2016\" value=";
    assert!(mpd.contains(&format!("{switching}\"2\"")), "{mpd}");
    assert!(mpd.contains(&format!("{switching}\"1\"")), "{mpd}");
    let multivariant = server.text("/film/.m3u8");
    assert_eq!(
        multivariant.matches("#EXT-X-SESSION-KEY:").count(),
        3,
        "{multivariant}"
    );
    // Keys of a key server are not given away.
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

/// A key server that sends one response to every request, or none.
struct KeyServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl KeyServer {
    fn new(respond: impl Fn(&str) -> Option<String> + Send + 'static) -> KeyServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        std::thread::spawn(move || {
            // Connections without a response stay open.
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                let response = respond(&request);
                seen.lock().unwrap().push(request);
                match response {
                    Some(response) => _ = stream.write_all(response.as_bytes()),
                    None => silent.push(stream),
                }
            }
        });
        KeyServer { address, requests }
    }

    fn url(&self, kind: &str) -> String {
        format!("{kind}:http://{}/keys/{{title}}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let len = text.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse::<usize>()
                .ok()
        });
        if let Some(end) = text.find("\r\n\r\n")
            && bytes.len() >= end + 4 + len.unwrap_or(0)
        {
            return text;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return text,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn respond(status: &str, headers: &str, body: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}Connection: close\r\n\r\n{body}",
        body.len()
    ))
}

#[test]
fn a_key_server_is_requested_once_per_title() {
    let keys = KeyServer::new(|_| respond("200 OK", "", &three_keys()));
    let headers = TextFile::new("Authorization: Basic c2VjcmV0\n");
    let flags = [
        "--drm-headers-file",
        headers.path().to_str().unwrap(),
        "--recheck",
        "0s",
    ]
    .map(str::to_owned);
    let server = serve_with_keys(&keys.url("cpix"), &flags.each_ref().map(String::as_str));
    for _ in 0..3 {
        server.text("/film/.mpd");
        server.text("/film/.m3u8");
    }
    let requests = keys.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(
        requests[0].starts_with("GET /keys/film HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(
        requests[0]
            .to_lowercase()
            .contains("\r\nauthorization: basic c2vjcmv0\r\n"),
        "{requests:?}"
    );
    // No title, no request.
    assert_eq!(server.get("/missing/.m3u8").status, 404);
    assert_eq!(keys.requests().len(), 1);
}

#[test]
fn a_failing_key_server_is_reported_without_its_documents() {
    let too_long = "x".repeat((1 << 20) + 1);
    for (status, body, wrong) in [
        (
            "404 Not Found",
            "no such title",
            "status 404 Not Found: \"no such title\"",
        ),
        ("302 Found", "", "status 302 Found"),
        ("200 OK", "<CPIX", "keys: "),
        (
            "200 OK",
            &three_keys().replace("<AudioFilter/>", "<AudioFilter/><X/>"),
            "the filter X",
        ),
        (
            "200 OK",
            &three_keys().replacen(VALUE, "AAEC", 1),
            "not 16 bytes",
        ),
        ("200 OK", &too_long, "more than 1048576 bytes"),
    ] {
        let (status, body) = (status.to_owned(), body.to_owned());
        let keys = KeyServer::new(move |_| respond(&status, "", &body));
        let response = serve_with_keys(&keys.url("cpix"), &[]).get("/film/.m3u8");
        let error = response.header("headwater-error");
        assert_eq!(
            (response.status, response.header("retry-after")),
            (503, "1"),
            "{error}"
        );
        assert!(
            error.starts_with("upstream; keys: ") && error.contains(wrong),
            "{error}"
        );
        assert!(!error.contains(VALUE), "{error}");
    }
}

#[test]
fn a_key_server_that_is_down_or_silent_is_unavailable() {
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let silent = KeyServer::new(|_| None);
    for url in [
        format!("cpix:http://{unused}/{{title}}"),
        silent.url("cpix"),
    ] {
        let response = serve_with_keys(&url, &[]).get("/film/.mpd");
        let error = response.header("headwater-error");
        assert_eq!(response.status, 503, "{error}");
        assert!(error.starts_with("upstream; keys: "), "{error}");
    }
}

#[test]
fn cached_keys_survive_a_failing_key_server() {
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let down = is_down.clone();
    let keys = KeyServer::new(
        move |_| match down.load(std::sync::atomic::Ordering::SeqCst) {
            false => respond("200 OK", "", &three_keys()),
            true => respond("500 Internal Server Error", "", ""),
        },
    );
    let server = serve_with_keys(&keys.url("cpix"), &["--drm-cache", "0s", "--recheck", "0s"]);
    let before = server.text("/film/.mpd");
    is_down.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(server.text("/film/.mpd"), before);
    assert!(keys.requests().len() > 1);
}

#[test]
fn a_changed_key_changes_the_segment_urls() {
    let document = TextFile::new(&three_keys());
    let server = serve_with_keys(
        &document.keys("cpix"),
        &["--drm-cache", "0s", "--recheck", "0s"],
    );
    let before = playlists(&server, "film");
    std::fs::write(
        document.path(),
        three_keys().replace(VALUE, "Dw4NDAsKCQgHBgUEAwIBAA=="),
    )
    .unwrap();
    let after = playlists(&server, "film");
    assert_eq!(before.len(), after.len());
    assert!(before.iter().all(|url| !after.contains(url)), "{after:?}");
}

/// Fills a SPEKE request in, as a key server does.
fn fill_request(request: &str) -> String {
    let body = request.split_once("\r\n\r\n").unwrap().1;
    let value = format!(
        "><Data><Secret><PlainValue>{VALUE}</PlainValue></Secret></Data></cpix:ContentKey>"
    );
    body.split_inclusive('\n')
        .map(|line| match line.starts_with("<cpix:ContentKey ") {
            true => line.replace("/>", &value),
            false => line.to_owned(),
        })
        .collect()
}

#[test]
fn speke_keys_are_those_that_were_requested() {
    let keys = KeyServer::new(|request| {
        respond("200 OK", "X-Speke-Version: 2.0\r\n", &fill_request(request))
    });
    let server = serve_with_keys(
        &keys.url("speke"),
        &["--drm-key-per", "type", "--drm-systems", "widevine"],
    );
    assert_eq!(
        server
            .text("/film/.mpd")
            .matches("cenc:default_KID=")
            .count(),
        3
    );
    let request = keys.requests().remove(0);
    assert!(
        request.starts_with("POST /keys/film HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("x-speke-version: 2.0\r\n"), "{request}");
    assert!(
        request.contains("contentId=\"film\" version=\"2.3\""),
        "{request}"
    );
    for (headers, replaced, wrong) in [
        ("", "", "does not declare x-speke-version: 2.0"),
        (
            "X-Speke-Version: 2.1\r\n",
            "",
            "does not declare x-speke-version: 2.0",
        ),
        (
            "X-Speke-Version: 2.0\r\n",
            "kid=\"",
            "lacks the requested key",
        ),
    ] {
        let lying = KeyServer::new(move |request| {
            let filled = fill_request(request);
            let body = match replaced {
                "" => filled,
                // Another key id everywhere.
                _ => {
                    let kid = filled
                        .split("kid=\"")
                        .nth(1)
                        .unwrap()
                        .split('"')
                        .next()
                        .unwrap();
                    filled.replace(kid, LOW)
                }
            };
            respond("200 OK", headers, &body)
        });
        let response = serve_with_keys(&lying.url("speke"), &[]).get("/film/.mpd");
        let error = response.header("headwater-error");
        assert_eq!(response.status, 503, "{error}");
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn keys_of_nginx_vod_key_servers_are_used() {
    let json = format!(
        "[{{\"key\":\"{VALUE}\",\"key_id\":\"{VALUE}\",\"pssh\":[{{\"uuid\":\"edef8ba9-79d6-4ace-a3c8-27dcd51d21ed\",\"data\":\"AQI=\"}}]}}]"
    );
    let keys = KeyServer::new(move |_| respond("200 OK", "", &json));
    let server = serve_with_keys(&keys.url("udrm"), &[]);
    let mpd = server.text("/film/.mpd");
    assert!(
        mpd.contains("cenc:default_KID=\"00010203-0405-0607-0809-0a0b0c0d0e0f\""),
        "{mpd}"
    );
    assert!(mpd.contains("urn:uuid:edef8ba9"), "{mpd}");
}

/// Returns init segment and segments of a title's video, one after another.
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

#[test]
fn key_documents_are_found_by_the_titles_path() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("film.cpix"), three_keys()).unwrap();
    let keys = format!("cpix:{}/{{title}}.cpix", folder.path().display());
    let server = serve_with_keys(&keys, &[]);
    assert!(server.text("/film/.mpd").contains(LOW));
    let other = server.get("/film.mp4/.mpd");
    let error = other.header("headwater-error");
    assert_eq!(other.status, 503, "{error}");
    // The path of the key folder is not for viewers.
    assert!(!error.contains(folder.path().to_str().unwrap()), "{error}");
}
