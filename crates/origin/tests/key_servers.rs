//! Tests of key documents from files and key servers, including key servers that fail.
#![allow(clippy::unwrap_used)]

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use media::protection::decode_base64;
use support::encrypted_films::{UUID, encrypt_film, has_ffmpeg, serve_film};
use support::key_server::{KeyServer, fill_request, respond};
use support::keys::*;

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
    // The server requests no keys for a missing title.
    assert_eq!(server.get("/missing/.m3u8").status, 404);
    assert_eq!(keys.requests().len(), 1);
}

/// Sends requests for `targets` concurrently. Returns the number of requests that a slow key server
/// receives.
fn count_fetches(path: &str, flags: &[&str], targets: &[&str]) -> usize {
    let keys = KeyServer::new(|_| {
        std::thread::sleep(std::time::Duration::from_secs(1));
        respond("200 OK", "", &three_keys())
    });
    let server = serve_with_keys(&format!("cpix:http://{}{path}", keys.address), flags);
    std::thread::scope(|scope| {
        let server = &server;
        for target in targets {
            scope.spawn(move || assert_eq!(server.get(target).status, 200, "{target}"));
        }
    });
    keys.requests().len()
}

#[test]
fn concurrent_requests_share_one_fetch() {
    let of_title = ["/film/.mpd", "/film/.m3u8", "/film/.json", "/film/.mpd"];
    assert_eq!(count_fetches("/keys/{title}", &[], &of_title), 1);
    // With this flag, the keys are loaded again for every check of the title's files.
    let rechecked = ["--recheck", "0s"];
    assert_eq!(count_fetches("/keys/{title}", &rechecked, &of_title), 1);
    let of_two = [
        "/film/.mpd",
        "/film.mp4/.mpd",
        "/film/.m3u8",
        "/film.mp4/.m3u8",
    ];
    assert_eq!(count_fetches("/keys/{title}", &[], &of_two), 2);
    // Both titles have the same document URL, so they share one fetch.
    assert_eq!(count_fetches("/keys", &[], &of_two), 1);
}

#[test]
fn source_keys_of_another_server_are_requested_without_the_headers() {
    if !has_ffmpeg() {
        return;
    }
    // `key_id` is the key id of the film in base64.
    let source = format!(r#"[{{"key":"{VALUE}","key_id":"oKGio6SlpqeoqaqrrK2urw=="}}]"#);
    let document = cpix(&[(LOW, VALUE, "<VideoFilter/><AudioFilter/>")]);
    let server = move || {
        let (source, document) = (source.clone(), document.clone());
        KeyServer::new(move |request| match request.contains("source=1") {
            true => respond("200 OK", "", &source),
            false => respond("200 OK", "", &document),
        })
    };
    let file = TextFile::new("Authorization: Basic c2VjcmV0\n");
    let headers = format!("--drm-headers-file={}", file.path().display());
    let (own, other) = (server(), server());
    for (keys, is_authorized) in [(&own, true), (&other, false)] {
        let flags = [
            format!("--drm-keys={}", own.url("cpix")),
            format!("--drm-source-keys={}?source=1", keys.url("udrm")),
            headers.clone(),
        ];
        let film = serve_film(&flags.each_ref().map(String::as_str), encrypt_film);
        let mpd = film.text("/film.mp4/.mpd");
        assert!(mpd.contains(LOW) && !mpd.contains(UUID), "{mpd}");
        let requests = keys.requests();
        let request = requests.iter().find(|request| request.contains("source=1"));
        let request = request.unwrap().to_lowercase();
        assert!(
            request.starts_with("get /keys/film.mp4?source=1 "),
            "{request}"
        );
        assert_eq!(
            request.contains("authorization"),
            is_authorized,
            "{request}"
        );
    }
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
    let newer = KeyServer::new(|request| {
        respond("200 OK", "X-Speke-Version: 2.1\r\n", &fill_request(request))
    });
    let server = serve_with_keys(&newer.url("speke"), &["--drm-speke-version", "2.1"]);
    server.text("/film/.mpd");
    let request = newer.requests().remove(0);
    assert!(request.contains("x-speke-version: 2.1\r\n"), "{request}");
    assert!(request.contains("version=\"2.4\""), "{request}");
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
                // Replaces the key id everywhere in the response.
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
    // The error must not show the path of the key folder to viewers.
    assert!(!error.contains(folder.path().to_str().unwrap()), "{error}");
}

const WISEPLAY: &str = "3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c";
const COMMON: &str = "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b";
/// A `pssh` box of WisePlay with the data `wise`, in base64.
const WISEPLAY_PSSH: &str = "AAAAJHBzc2gAAAAAPV5tNZuaQei4Q908bnLELAAAAAR3aXNl";
/// A `pssh` box with two key ids, in base64.
const COMMON_PSSH: &str =
    "AAAARHBzc2gBAAAAEHfv7MCyTQKs4zweUuL7SwAAAAIAAAAAAAAAAAAAAAAAAAChAAAAAAAAAAAAAAAAAAAAogAAAAA=";
const WISEPLAY_DASH: &str = "<wise:x xmlns:wise=\"urn:wise\">1</wise:x>";
const WISEPLAY_KEY: &str = "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"wise://1\",KEYFORMAT=\"wise\"\n";
const WISEPLAY_SESSION: &str =
    "#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI=\"wise://1\",KEYFORMAT=\"wise\"\n";

/// Returns a document with one key and a `DRMSystem` element for each system.
fn cpix_with_systems(systems: &[(&str, &str)]) -> String {
    let systems = systems.iter().map(|(uuid, content)| {
        format!("<DRMSystem kid=\"{LOW}\" systemId=\"{uuid}\">{content}</DRMSystem>")
    });
    let list = format!(
        "<DRMSystemList>{}</DRMSystemList></CPIX>",
        systems.collect::<String>()
    );
    cpix(&[(LOW, VALUE, "<VideoFilter/><AudioFilter/>")]).replace("</CPIX>", &list)
}

#[test]
fn explicit_signaling_of_any_system_is_written_unchanged() {
    let wiseplay = format!(
        "<PSSH>{WISEPLAY_PSSH}</PSSH><ContentProtectionData>{}</ContentProtectionData>\
         <HLSSignalingData playlist=\"media\">{}</HLSSignalingData>\
         <HLSSignalingData playlist=\"master\">{}</HLSSignalingData>",
        STANDARD.encode(WISEPLAY_DASH),
        STANDARD.encode(WISEPLAY_KEY),
        STANDARD.encode(WISEPLAY_SESSION),
    );
    let common = format!("<PSSH>{COMMON_PSSH}</PSSH>");
    let unsignaled = "00000000-0000-0000-0000-0000000000ff";
    let document = TextFile::new(&cpix_with_systems(&[
        (WISEPLAY, &wiseplay),
        (COMMON, &common),
        (WISEPLAY, &common),
        (unsignaled, "<PSSH/>"),
        ("edef8ba9-79d6-4ace-a3c8-27dcd51d21ed", ""),
    ]));
    let license = "https://l.example/ck";
    let flags = [
        "--drm-systems=clearkey",
        "--drm-license-url-clearkey",
        license,
    ];
    let server = serve_with_keys(&document.keys("cpix"), &flags);
    let mpd = server.text("/film/.mpd");
    let start = |uuid| format!("<ContentProtection schemeIdUri=\"urn:uuid:{uuid}\"");
    let wiseplay = format!("{}>{WISEPLAY_DASH}</ContentProtection>", start(WISEPLAY));
    let common = format!(
        "{}><cenc:pssh>{COMMON_PSSH}</cenc:pssh></ContentProtection>",
        start(COMMON)
    );
    // The systems of the settings come first. The systems of the document follow in the order of
    // the document.
    let places = ["value=\"ClearKey1.0\"", &wiseplay, &common].map(|part| mpd.find(part));
    assert!(
        places[0].is_some() && places.is_sorted(),
        "{places:?}: {mpd}"
    );
    let sets = mpd.matches("<AdaptationSet").count();
    for (uuid, count) in [(WISEPLAY, sets), (COMMON, sets), (unsignaled, 0)] {
        assert_eq!(mpd.matches(&start(uuid)).count(), count, "{uuid}: {mpd}");
    }
    let multivariant = server.text("/film/.m3u8");
    assert_eq!(
        multivariant.matches(WISEPLAY_SESSION).count(),
        1,
        "{multivariant}"
    );
    let boxes = [WISEPLAY_PSSH, COMMON_PSSH].map(|text| decode_base64(text).unwrap());
    for playlist in playlists(&server, "film") {
        let text = server.text(&playlist);
        assert_eq!(text.matches(WISEPLAY_KEY).count(), 1, "{text}");
        let init = server.get(&segments(&server, &playlist)[0]).body;
        let count = |bytes: &[u8]| init.windows(bytes.len()).filter(|w| *w == bytes).count();
        assert_eq!(
            boxes.each_ref().map(|pssh| count(pssh)),
            [1, 1],
            "{playlist}"
        );
        // The document already contains a common box, so ClearKey adds no second common box.
        assert_eq!(count(b"pssh"), 3, "{playlist}");
    }
}

/// Init segments contain `pssh` boxes and may be cached for a year, so different boxes need
/// different URLs.
#[test]
fn another_pssh_box_changes_the_urls_of_init_segments() {
    let urls = [WISEPLAY_PSSH, COMMON_PSSH].map(|pssh| {
        let system = format!("<PSSH>{pssh}</PSSH>");
        let document = TextFile::new(&cpix_with_systems(&[(WISEPLAY, &system)]));
        let server = serve_with_keys(&document.keys("cpix"), &[]);
        playlists(&server, "film")
    });
    assert_ne!(urls[0], urls[1]);
}

#[test]
fn other_systems_of_nginx_vod_key_servers_are_signaled() {
    let json = format!(
        r#"[{{"key":"{VALUE}","key_id":"{VALUE}","pssh":[{{"uuid":"{WISEPLAY}","data":"d2lzZQ=="}}]}}]"#
    );
    let keys = KeyServer::new(move |_| respond("200 OK", "", &json));
    let server = serve_with_keys(&keys.url("udrm"), &[]);
    let mpd = server.text("/film/.mpd");
    assert!(
        mpd.contains(&format!("<cenc:pssh>{WISEPLAY_PSSH}</cenc:pssh>")),
        "{mpd}"
    );
    let init = &segments(&server, &playlists(&server, "film")[0])[0];
    assert!(contains(&server.get(init).body, b"wise"));
}

/// Tests two attributes of CPIX 2.4. `HLSHDCPLevel` is the output protection that a key requires,
/// and `HLSAllowedCPC` lists the devices that a system trusts.
#[test]
fn variants_declare_what_their_keys_require_of_devices() {
    let hdcp = "<HDCPData HLSHDCPLevel=\"TYPE-1\"/><Data>";
    let start = format!("kid=\"{HIGH}\"><Data>");
    let with_hdcp = three_keys().replace(&start, &start.replace("<Data>", hdcp));
    let allowed = "com.apple.streamingkeydelivery:AppleMain/Main";
    let system = format!(
        "<DRMSystemList><DRMSystem kid=\"{HIGH}\" systemId=\"94ce86fb-07ff-4f43-adb8-93d2fa968ca2\" HLSAllowedCPC=\"{allowed}\"/></DRMSystemList></CPIX>"
    );
    let document = TextFile::new(&with_hdcp.replace("</CPIX>", &system));
    let server = serve_with_keys(&document.keys("cpix"), &["--drm-systems=fairplay"]);
    let text = server.text("/film/.m3u8");
    let variants = text.lines().filter(|line| line.contains("STREAM-INF:"));
    let (high, low): (Vec<_>, Vec<_>) = variants.partition(|line| line.contains("640x360"));
    assert!(high.len() > 1 && low.len() > 1, "{text}");
    let attributes = format!(",HDCP-LEVEL=TYPE-1,ALLOWED-CPC=\"{allowed}\"");
    assert!(high.iter().all(|line| line.contains(&attributes)), "{text}");
    for line in low {
        assert!(!line.contains("HDCP") && !line.contains("-CPC"), "{line}");
    }
}
