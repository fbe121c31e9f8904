//! Tests `headwater check` with the settings of `[drm]`: keys, DRM systems, and schemes that
//! players refuse.

use crate::support::{TempFolder, fixture_path};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

const SD: &str = "00000000-0000-0000-0000-0000000000a1";
const HD: &str = "00000000-0000-0000-0000-0000000000a2";
const AUDIO: &str = "00000000-0000-0000-0000-0000000000a3";
/// The base64 of the bytes 0 to 15.
const VALUE: &str = "AAECAwQFBgcICQoLDA0ODw==";
const VALUE_HEX: &str = "000102030405060708090a0b0c0d0e0f";

/// Returns the folder of the built-in film, which has video of 180, 360 and 540 lines, and audio.
fn demo_folder() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("media/demo").to_str().unwrap().to_owned()
}

fn run_check(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.arg("check").args(args).output().unwrap()
}

/// Runs `headwater check --json` for one title. Returns the report about the title, and the exit
/// code.
fn check_title(args: &[&str]) -> (Value, Option<i32>) {
    let output = run_check(&[args, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    (document["titles"][0].clone(), output.status.code())
}

/// Returns the level, the problem and the remedy of each finding about protection.
fn protection_findings(title: &Value) -> Vec<String> {
    let findings = title["findings"].as_array().unwrap().iter();
    let own = findings.filter(|finding| finding["place"] == "protection");
    let line = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        format!("{}: {} -> {}", text("level"), text("what"), text("fix"))
    };
    own.map(line).collect()
}

fn expect_finding(title: &Value, level: &str, part: &str) {
    let findings = protection_findings(title);
    let is_it = |line: &&String| line.starts_with(&format!("{level}: ")) && line.contains(part);
    assert_eq!(
        findings.iter().filter(is_it).count(),
        1,
        "{part}: {findings:#?}"
    );
}

/// Writes a CPIX document with one key for each pair of key ID and filter. Returns the value for
/// `--drm-keys`.
fn write_document(folder: &TempFolder, keys: &[(&str, &str)]) -> String {
    let key = |(id, _): &(&str, &str)| {
        format!(
            "<ContentKey kid=\"{id}\"><Data><Secret><PlainValue>{VALUE}</PlainValue></Secret></Data></ContentKey>"
        )
    };
    let rule = |(id, filter): &(&str, &str)| {
        format!("<ContentKeyUsageRule kid=\"{id}\">{filter}</ContentKeyUsageRule>")
    };
    let (keys, rules): (String, String) = (
        keys.iter().map(key).collect(),
        keys.iter().map(rule).collect(),
    );
    let document = format!(
        "<CPIX><ContentKeyList>{keys}</ContentKeyList><ContentKeyUsageRuleList>{rules}</ContentKeyUsageRuleList></CPIX>"
    );
    let path = folder.write_file("keys.cpix", document.as_bytes());
    format!("cpix:{}", path.display())
}

const THREE_KEYS: [(&str, &str); 3] = [
    (SD, "<VideoFilter maxPixels=\"442368\"/>"),
    (HD, "<VideoFilter minPixels=\"442369\"/>"),
    (AUDIO, "<AudioFilter/>"),
];

#[test]
fn each_rendition_is_listed_with_its_key_and_systems() {
    let folder = TempFolder::new();
    let keys = write_document(&folder, &THREE_KEYS);
    let film = demo_folder();
    let flags = [
        &*film,
        "--drm-keys",
        &keys,
        "--drm-systems",
        "widevine",
        "--drm-systems",
        "fairplay",
    ];
    let (title, code) = check_title(&flags);
    assert_eq!(code, Some(0), "{title}");
    for rendition in title["renditions"].as_array().unwrap() {
        let (key_id, class) = match rendition["what"].as_str().unwrap() {
            "960x540" => (HD, "HD"),
            size if size.contains('x') => (SD, "SD"),
            _ => (AUDIO, "AUDIO"),
        };
        let expected = serde_json::json!({
            "is_in_source": false,
            "scheme": "cbcs",
            "key_id": key_id,
            "class": class,
            "systems": ["widevine", "fairplay"],
        });
        assert_eq!(rendition["protection"], expected, "{rendition}");
    }
    // There is no finding about a shared key, because each class has its own key.
    assert!(!title.to_string().contains("one key"), "{title}");
    let text = String::from_utf8(run_check(&flags).stdout).unwrap();
    let line = format!("\nencrypted: cbcs, key id {HD} (HD), widevine, fairplay\n");
    assert_eq!(text.matches(&line).count(), 1, "{text}");
    for output in [text, title.to_string()] {
        assert!(
            !output.contains(VALUE) && !output.contains(VALUE_HEX),
            "{output}"
        );
    }
}

#[test]
fn schemes_that_players_refuse_are_named() {
    let folder = TempFolder::new();
    let keys = write_document(&folder, &THREE_KEYS);
    let film = demo_folder();
    let check = |scheme: &str, systems: &[&str]| {
        let systems = systems.iter().flat_map(|system| ["--drm-systems", *system]);
        let systems: Vec<&str> = systems.collect();
        let flags = [&*film, "--drm-keys", &keys, "--drm-scheme", scheme];
        check_title(&[&flags[..], &systems].concat()).0
    };
    let title = check("cenc", &["widevine"]);
    expect_finding(
        &title,
        "warning",
        "players of Apple's devices decrypt only cbcs",
    );
    let title = check("cbcs", &["widevine", "playready"]);
    let part = "PlayReady clients older than version 4.0 and Widevine on Android older than 7.1";
    expect_finding(&title, "hint", part);
    assert!(!title.to_string().contains("Apple's"), "{title}");
    let title = check("cbcs", &["fairplay"]);
    assert!(!title.to_string().contains("older than"), "{title}");
}

#[test]
fn systems_without_a_server_are_named() {
    let folder = TempFolder::new();
    let keys = write_document(&folder, &THREE_KEYS);
    let film = demo_folder();
    let base = [&*film, "--drm-keys", &*keys];
    let check = |flags: &[&str]| check_title(&[&base[..], flags].concat()).0;
    for (system, level, part) in [
        (
            "widevine",
            "hint",
            "MPDs contain no license URL of widevine",
        ),
        ("fairplay", "hint", "the key URI of fairplay"),
        ("clearkey", "warning", "clearkey has no license URL"),
    ] {
        expect_finding(&check(&["--drm-systems", system]), level, part);
    }
    expect_finding(&check(&[]), "warning", "playlists contain no EXT-X-KEY");
    let complete = [
        "--drm-systems",
        "fairplay",
        "--drm-fairplay-uri",
        "skd://a/{uuid}",
    ];
    assert_eq!(protection_findings(&check(&complete)), [""; 0]);
}

#[test]
fn a_key_that_audio_and_video_share_is_named() {
    let folder = TempFolder::new();
    let secret = folder.write_file("secret", b"0123456789abcdef0123456789abcdef\n");
    let (film, keys) = (demo_folder(), format!("secret:{}", secret.display()));
    let base = [&*film, "--drm-keys", &*keys];
    let systems = ["--drm-systems", "widevine"];
    let part = "encrypts AUDIO, SD, HD, so licenses cannot require hardware decryption";
    let (title, _) = check_title(&[&base[..], &systems].concat());
    expect_finding(&title, "hint", part);
    let per_type = ["--drm-key-per", "type"];
    let (title, _) = check_title(&[&base[..], &systems, &per_type].concat());
    assert!(!title.to_string().contains("one key"), "{title}");
    // A shared key is no problem for ClearKey, whose licenses contain no requirements.
    let (title, _) = check_title(&base);
    assert_eq!(protection_findings(&title), [""; 0]);
}

#[test]
fn codecs_that_are_not_encrypted_are_errors_with_protection() {
    let folder = TempFolder::new();
    let secret = folder.write_file("secret", b"0123456789abcdef0123456789abcdef\n");
    let keys = format!("secret:{}", secret.display());
    for (name, codec) in [("av1.mp4", "av01"), ("vp9.mp4", "vp09")] {
        let Some(film) = fixture_path(name) else {
            return;
        };
        let film = film.to_str().unwrap();
        for (flags, level, code) in [(&["--drm-keys", &keys][..], "error", 1), (&[], "hint", 0)] {
            let (title, status) = check_title(&[&[film], flags].concat());
            let findings = title["findings"].as_array().unwrap().iter();
            let named = format!("codec {codec} cannot be protected yet");
            let levels = findings.filter(|finding| finding["what"] == *named);
            let levels: Vec<_> = levels.map(|finding| finding["level"].clone()).collect();
            assert_eq!(
                (levels, status),
                (vec![level.into()], Some(code)),
                "{title}"
            );
        }
    }
}

/// Starts a key server that sends the same response to every request. Returns the server's address.
fn start_key_server(response: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut len) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                let lower = line.to_lowercase();
                if let Some(value) = lower.strip_prefix("content-length: ") {
                    len = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let _ = std::io::copy(&mut reader.by_ref().take(len), &mut std::io::sink());
            let _ = stream.write_all(response.as_bytes());
        }
    });
    address.to_string()
}

fn response(status: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}")
}

#[test]
fn errors_of_key_servers_are_findings_with_remedies() {
    let film = demo_folder();
    let bound = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = bound.local_addr().unwrap().to_string();
    drop(bound);
    let wrong = "Unsupported CPIX@version";
    for (kind, address, part, remedy) in [
        (
            "cpix",
            start_key_server(response("401 Unauthorized", "")),
            "status 401",
            "drm-headers-file",
        ),
        (
            "cpix",
            start_key_server(response("404 Not Found", "no such title")),
            "no such title",
            "create the keys of demo at the key server",
        ),
        (
            "speke",
            start_key_server(response("422 Unprocessable Entity", wrong)),
            wrong,
            "drm-speke-version",
        ),
        (
            "speke",
            start_key_server(response("200 OK", "<CPIX/>")),
            "does not declare x-speke-version: 2.0",
            "set drm-speke-version",
        ),
        ("udrm", unused, "keys: ", "start the key server"),
        (
            "cpix",
            start_key_server(response("200 OK", "<html/>")),
            "not a CPIX document",
            "correct the key document of demo",
        ),
    ] {
        let keys = format!("{kind}:http://{address}/{{title}}");
        let (title, code) = check_title(&[&film, "--drm-keys", &keys]);
        assert_eq!(code, Some(1), "{title}");
        expect_finding(&title, "error", part);
        expect_finding(&title, "error", remedy);
        assert!(
            title["renditions"][0].get("protection").is_none(),
            "{title}"
        );
    }
}

#[test]
fn rules_and_files_of_a_server_apply() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("secret", b"0123456789abcdef0123456789abcdef\n");
    for name in ["kids/a.mp4", "trailers/a.mp4"] {
        let path = folder.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(&film, path).unwrap();
    }
    let keys = format!("secret:{}/secret", folder.0.display());
    // `check` ignores `listen` and `tls`, which concern only `serve`.
    let settings = format!(
        "listen = [\"127.0.0.1:0\"]\n[drm]\nkeys = {keys:?}\n\
         [[drm.rule]]\npath = \"kids/**\"\nscheme = \"cenc\"\n\
         [[drm.rule]]\npath = \"trailers/**\"\nkeys = \"none\"\n\
         [tls]\ncert = \"c.pem\"\nkey = \"k.pem\"\n"
    );
    let config = folder.write_file("serve.toml", settings.as_bytes());
    let (library, config) = (folder.0.to_str().unwrap(), config.to_str().unwrap());
    let output = run_check(&[library, "--config", config, "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let schemes = document["titles"].as_array().unwrap().iter().map(|title| {
        let protection = &title["renditions"][0]["protection"];
        (
            title["title"].as_str().unwrap(),
            protection["scheme"].as_str(),
        )
    });
    for (title, scheme) in schemes {
        let expected = if title.ends_with("kids/a.mp4") {
            Some("cenc")
        } else {
            None
        };
        assert_eq!(scheme, expected, "{title}");
    }
    let wrong = run_check(&[library, "--drm-scheme", "cbcs"]);
    assert_eq!(wrong.status.code(), Some(2));
    let unknown = folder.write_file("wrong.toml", b"drm-kies = \"x\"\n");
    let wrong = run_check(&[library, "--config", unknown.to_str().unwrap()]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn films_that_are_already_encrypted_are_described() {
    let film = demo_folder();
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        println!("SKIPPED: ffmpeg is not installed");
        return;
    }
    let folder = TempFolder::new();
    let out = folder.0.join("film.mp4");
    let source = format!("{film}/video-180p.mp4");
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-i", &source, "-c", "copy"])
        .args(["-encryption_scheme", "cenc-aes-ctr"])
        .args(["-encryption_key", VALUE_HEX])
        .args(["-encryption_kid", &SD.replace('-', "")])
        .arg(&out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let out = out.to_str().unwrap();
    let (title, code) = check_title(&[out]);
    assert_eq!(code, Some(0), "{title}");
    let expected = serde_json::json!({
        "is_in_source": true, "scheme": "cenc", "key_id": SD, "class": "SD", "systems": [],
    });
    assert_eq!(title["renditions"][0]["protection"], expected);
    expect_finding(&title, "warning", "encrypt the film with cbcs");
    expect_finding(&title, "warning", "playlists contain no EXT-X-KEY");
    // The settings add DRM systems. No key is requested, because the film is already encrypted.
    let systems = ["--drm-keys", "cpix:unused", "--drm-systems", "widevine"];
    let (title, _) = check_title(&[&[out], &systems[..]].concat());
    assert_eq!(
        title["renditions"][0]["protection"]["systems"][0],
        "widevine"
    );
    assert!(!title.to_string().contains("EXT-X-KEY"), "{title}");
    let text = String::from_utf8(run_check(&[out]).stdout).unwrap();
    let line = format!("encrypted in the source: cenc, key id {SD} (SD), no system\n");
    assert!(text.contains(&line), "{text}");
}
