//! Tests which references in index MP4s and server manifests are followed and which are refused.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use media::index::{Index, index_file_in_memory};
use media::{ism, mp4};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use support::{TestResponse, TestServer, demo_folder, wait_until};

fn film() -> Vec<u8> {
    fs::read(demo_folder().join("video-180p.mp4")).unwrap()
}

fn index() -> Index {
    index_file_in_memory(&film()).unwrap()
}

/// Returns an index MP4 of the demo film that refers to its media by `name`.
fn index_mp4_of(name: &str) -> Vec<u8> {
    mp4::write_index_mp4(&index(), name).unwrap()
}

/// Returns a server manifest that lists one file.
fn manifest(src: &str) -> String {
    let index = index();
    ism::write_server_manifest([(src, &index)].into_iter())
}

/// Serves a library. The film `secret.mp4` is outside of the library.
fn serve_library() -> (tempfile::TempDir, TestServer) {
    serve_library_with(&[])
}

fn serve_library_with(flags: &[&str]) -> (tempfile::TempDir, TestServer) {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.mp4"), film()).unwrap();
    let root = tempfile::tempdir_in(outside.path()).unwrap();
    fs::create_dir_all(root.path().join("deep/er")).unwrap();
    fs::write(root.path().join("film.mp4"), film()).unwrap();
    fs::write(root.path().join("deep/a film.mp4"), film()).unwrap();
    fs::write(root.path().join(".hidden.mp4"), film()).unwrap();
    let flags = [&["--recheck", "0s"], flags].concat();
    (outside, TestServer::from_folder(root, &flags))
}

fn assert_refused(response: &TestResponse, status: u16, why: &str) {
    let error = response.header("headwater-error");
    assert_eq!(response.status, status, "{error}");
    assert!(error.contains(why), "{error}");
}

#[test]
fn names_inside_are_followed() {
    let (_outside, server) = serve_library();
    let names = [
        "../a%20film.mp4",
        "../a film.mp4",
        "../../film.mp4",
        "./../er/../a%20film.mp4",
    ];
    for name in names {
        fs::write(server.path("deep/er/x.mp4"), index_mp4_of(name)).unwrap();
        fs::write(server.path("deep/er/x.ism"), manifest("x.mp4")).unwrap();
        fs::write(server.path("deep/er/y.ism"), manifest(name)).unwrap();
        for title in ["x.mp4", "x.ism", "y.ism"] {
            let text = server.text(&format!("/deep/er/{title}/.m3u8"));
            assert!(text.contains("EXT-X-STREAM-INF"), "{name}: {text}");
        }
        assert_eq!(server.get("/deep/er/x.mp4").status, 200);
    }
}

#[test]
fn names_outside_are_refused() {
    let (outside, server) = serve_library();
    let secret = outside.path().join("secret.mp4");
    let secret = secret.to_str().unwrap();
    // Failures are cached for one second, so each case uses its own title.
    for (n, (name, why)) in [
        ("../secret.mp4", "out of the library"),
        ("x/../../secret.mp4", "out of the library"),
        ("%2e%2e/secret.mp4", "out of the library"),
        ("..%2fsecret.mp4", "control character, a backslash"),
        ("x\\..\\secret.mp4", "backslash"),
        (secret, "starts with a slash"),
        (
            &format!("file://{secret}"),
            "only relative names and http(s)",
        ),
        (&format!("FILE:{secret}"), "only relative names and http(s)"),
        ("//localhost/secret.mp4", "only relative names and http(s)"),
        ("http://169.254.169.254/latest/meta-data", "not allowed"),
        (
            &format!("http://{}/film.mp4", server.address()),
            "not allowed",
        ),
        (
            "http://user@localhost/film.mp4",
            "only URLs of a host and a path",
        ),
        (".hidden.mp4", "begin with a dot"),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(server.path(&format!("{n}.mp4")), index_mp4_of(name)).unwrap();
        fs::write(server.path(&format!("{n}.ism")), manifest(name)).unwrap();
        for target in [
            ".mp4/.m3u8",
            ".mp4/.mpd",
            ".mp4/.json",
            ".mp4",
            ".ism/.m3u8",
        ] {
            assert_refused(&server.get(&format!("/{n}{target}")), 415, why);
        }
    }
}

#[test]
fn symlinks_out_of_the_library_are_refused() {
    let (outside, server) = serve_library();
    symlink(outside.path().join("secret.mp4"), server.path("link.mp4")).unwrap();
    symlink(outside.path(), server.path("up")).unwrap();
    symlink("circle.mp4", server.path("circle.mp4")).unwrap();
    for (n, (name, why)) in [
        ("link.mp4", "a link leads out of the library"),
        ("up/secret.mp4", "a link leads out of the library"),
        ("circle.mp4", "links lead in a circle"),
        ("missing.mp4", "there is no such file"),
        ("deep", "there is no such file"),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(server.path(&format!("{n}.mp4")), index_mp4_of(name)).unwrap();
        fs::write(server.path(&format!("{n}.ism")), manifest(name)).unwrap();
        for target in [".mp4/.m3u8", ".mp4", ".ism/.m3u8"] {
            assert_refused(&server.get(&format!("/{n}{target}")), 502, why);
        }
    }
}

#[test]
fn reference_cycles_are_not_followed() {
    let (_outside, server) = serve_library();
    fs::write(server.path("self.mp4"), index_mp4_of("self.mp4")).unwrap();
    fs::write(server.path("a.mp4"), index_mp4_of("b.mp4")).unwrap();
    fs::write(server.path("b.mp4"), index_mp4_of("a.mp4")).unwrap();
    fs::write(server.path("self.ism"), manifest("self.ism")).unwrap();
    fs::write(server.path("one.ism"), manifest("two.ism")).unwrap();
    fs::write(server.path("two.ism"), manifest("one.ism")).unwrap();
    for title in [
        "self.mp4", "a.mp4", "b.mp4", "self.ism", "one.ism", "two.ism",
    ] {
        let response = server.get(&format!("/{title}/.m3u8"));
        assert_eq!(response.status, 415, "{title}: {response:?}");
    }
}

#[test]
fn allowed_urls_resolve_to_their_folder_only() {
    let media = tempfile::tempdir().unwrap();
    fs::create_dir(media.path().join("films")).unwrap();
    fs::write(media.path().join("films/film.mp4"), film()).unwrap();
    fs::write(media.path().join("secret.mp4"), film()).unwrap();
    fs::write(
        media.path().join("films/near.mp4"),
        index_mp4_of("film.mp4"),
    )
    .unwrap();
    fs::write(
        media.path().join("films/far.mp4"),
        index_mp4_of("../secret.mp4"),
    )
    .unwrap();
    let allowed = format!(
        "https://media.example.com/f/={}/films",
        media.path().display()
    );
    let (_outside, server) = serve_library_with(&["--media-from", &allowed]);
    let at = |name: &str| format!("https://media.example.com{name}");
    for name in ["/f/film.mp4", "/f/x/../film.mp4", "/f/near.mp4"] {
        fs::write(server.path("x.ism"), manifest(&at(name))).unwrap();
        assert!(server.text("/x.ism/.mpd").contains("<MPD"), "{name}");
    }
    fs::write(server.path("x.mp4"), index_mp4_of(&at("/f/film.mp4"))).unwrap();
    assert_eq!(
        index_file_in_memory(&server.get("/x.mp4").body)
            .unwrap()
            .tracks
            .len(),
        1
    );
    for (n, (name, status, why)) in [
        ("/f/far.mp4", 415, "out of the library"),
        ("/f/../secret.mp4", 415, "not allowed"),
        ("/f/%2e%2e/secret.mp4", 415, "not allowed"),
        ("/film.mp4", 415, "not allowed"),
        ("/f/secret.mp4", 502, "there is no such file"),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(server.path(&format!("{n}.ism")), manifest(&at(name))).unwrap();
        assert_refused(&server.get(&format!("/{n}.ism/.m3u8")), status, why);
    }
}

#[test]
fn changed_media_is_not_served_with_old_tables() {
    let (_outside, server) = serve_library();
    fs::write(server.path("x.mp4"), index_mp4_of("film.mp4")).unwrap();
    fs::write(server.path("x.ism"), manifest("x.mp4")).unwrap();
    let playlist = server.text("/x.ism/.json");
    let json: serde_json::Value = serde_json::from_str(&playlist).unwrap();
    let init = json["renditions"][0]["init"].as_str().unwrap();
    assert_eq!(server.get(&format!("/x.ism/{init}")).status, 200);
    fs::copy(demo_folder().join("video-360p.mp4"), server.path("next")).unwrap();
    fs::rename(server.path("next"), server.path("film.mp4")).unwrap();
    for target in ["/x.ism/.m3u8", "/x.mp4/.m3u8", "/x.mp4"] {
        assert_refused(&server.get(target), 415, "index it again");
    }
    let other = fs::read(server.path("film.mp4")).unwrap();
    let other = mp4::write_index_mp4(&index_file_in_memory(&other).unwrap(), "film.mp4").unwrap();
    fs::write(server.path("x.mp4"), other).unwrap();
    // The server caches the failure for one second, so the test tries again.
    wait_until("the film that was indexed again is served", || {
        server.get("/x.ism/.m3u8").status == 200
    });
    assert!(server.text("/x.ism/.m3u8").contains("640x360"));
}

#[test]
fn a_server_manifest_selects_tracks_and_declares_languages() {
    let (_outside, server) = serve_library();
    let put = |name: &str, to: &str| fs::copy(demo_folder().join(name), server.path(to)).unwrap();
    put("audio-eng.m4a", "eng.m4a");
    put("audio-fra.m4a", "fra.m4a");
    let track = |element: &str, src: &str, id: u32, language: &str| {
        format!(
            r#"<{element} src="{src}" systemLanguage="{language}"><param name="trackID" value="{id}"/></{element}>"#
        )
    };
    let write = |tracks: &[String]| {
        let text = format!(
            "<smil><body><switch>{}</switch></body></smil>",
            tracks.concat()
        );
        fs::write(server.path("x.ism"), text).unwrap();
        let text = server.text("/x.ism/.json");
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let renditions = json["renditions"].as_array().unwrap().clone();
        let languages: Vec<String> = renditions
            .iter()
            .map(|r| format!("{} {}", r["kind"], r["language"]).replace('"', ""))
            .collect();
        (languages, json["set"].as_str().unwrap().to_owned())
    };
    let video = track("video", "film.mp4", 1, "");
    let (both, set) = write(&[video.clone(), track("audio", "eng.m4a", 1, "")]);
    assert_eq!(both, ["video und", "audio eng"]);
    let (named, other) = write(&[
        track("video", "film.mp4", 1, "deu"),
        track("audio", "eng.m4a", 1, "x"),
    ]);
    assert_eq!(
        named,
        ["video deu", "audio eng"],
        "the file's own word goes first"
    );
    assert_ne!(
        set, other,
        "segments that say another language have other names"
    );
    let text = track("textstream", "nothing.cmft", 1, "eng");
    assert_eq!(write(&[video, text]).0, ["video und"]);
}

#[test]
fn a_missing_text_file_of_a_manifest_is_reported_as_missing() {
    let (_outside, server) = serve_library();
    let text = "<smil><body><switch><video src=\"film.mp4\"/>\
                <textstream src=\"text.cmft\" systemLanguage=\"eng\"/></switch></body></smil>";
    fs::write(server.path("x.ism"), text).unwrap();
    let left_out = || {
        let json: serde_json::Value = serde_json::from_str(&server.text("/x.ism/.json")).unwrap();
        json["left_out"].to_string()
    };
    let first = left_out();
    assert!(
        first.contains("there is no such file; store it or correct the manifest"),
        "{first}"
    );
    // The server looks for the file again.
    fs::write(server.path("text.cmft"), vec![7; 5000]).unwrap();
    wait_until("the file is no longer reported as missing", || {
        left_out() != first
    });
}

#[test]
fn an_init_segment_is_served_as_a_static_file() {
    let (_outside, server) = serve_library();
    let json = server.text("/film.mp4/.json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let init = format!(
        "/film.mp4/{}",
        json["renditions"][0]["init"].as_str().unwrap()
    );
    let init = server.get(&init).body;
    fs::write(server.path("init.mp4"), &init).unwrap();
    assert_eq!(server.get("/init.mp4").body, init);
    let film = fs::read(Path::new(&server.path("film.mp4"))).unwrap();
    assert_eq!(server.get("/film.mp4").body, film);
}

/// Returns the child boxes in the body of a box.
fn boxes(body: &[u8]) -> Vec<&[u8]> {
    let (mut at, mut found) = (0, Vec::new());
    while at + 8 <= body.len() {
        let size = u32::from_be_bytes(body[at..at + 4].try_into().unwrap()) as usize;
        found.push(&body[at..at + size]);
        at += size;
    }
    found
}

/// Joins two index MP4s. The result refers to both media files and has the tracks of both.
fn join_index_mp4s(first: &[u8], second: &[u8]) -> Vec<u8> {
    let of = |file: &[u8], name: &[u8]| -> Vec<Vec<u8>> {
        let all = boxes(file);
        let moov = all.iter().find(|one| &one[4..8] == b"moov").unwrap();
        let children = boxes(&moov[8..]).into_iter();
        let named = children.filter(|one| &one[4..8] == name);
        named.map(<[u8]>::to_vec).collect()
    };
    let mut traks = of(second, b"trak");
    for (n, trak) in traks.iter_mut().enumerate() {
        // In a `tkhd` box, the track number follows the version, the flags and two times.
        trak[8 + 20..8 + 24].copy_from_slice(&(77 + n as u32).to_be_bytes());
    }
    let inside = [of(first, b"mvhd"), of(first, b"trak"), traks]
        .concat()
        .concat();
    let mut out = boxes(first)[0].to_vec();
    out.extend_from_slice(&(inside.len() as u32 + 8).to_be_bytes());
    out.extend_from_slice(b"moov");
    out.extend_from_slice(&inside);
    out
}

/// Returns the sample bytes of each track.
fn samples(file: &[u8]) -> Vec<Vec<u8>> {
    let index = index_file_in_memory(file).unwrap();
    let track = |track: &media::index::Track| {
        let all = track.samples.iter_range(0..track.samples.len());
        let bytes = all.map(|one| &file[one.offset as usize..][..one.size as usize]);
        bytes.flatten().copied().collect()
    };
    index.tracks.iter().map(track).collect()
}

#[test]
fn an_index_mp4_of_several_media_is_one_film() {
    let (_outside, server) = serve_library();
    let audio = fs::read(demo_folder().join("audio-eng.m4a")).unwrap();
    fs::write(server.path("sound.m4a"), &audio).unwrap();
    let second = mp4::write_index_mp4(&index_file_in_memory(&audio).unwrap(), "sound.m4a").unwrap();
    fs::write(
        server.path("both.mp4"),
        join_index_mp4s(&index_mp4_of("film.mp4"), &second),
    )
    .unwrap();
    let response = server.get("/both.mp4");
    assert_eq!(
        response.status,
        200,
        "{}",
        response.header("headwater-error")
    );
    let whole = response.body;
    let expected = [samples(&film()), samples(&audio)].concat();
    assert!(samples(&whole) == expected, "not the samples of both");
    let len = whole.len();
    // Requests a range at the start, in the middle and at the end of the joined film.
    for (from, to) in [
        (0, 1),
        (len / 3, len / 3 + 900_000.min(len / 3)),
        (len - 5, len),
    ] {
        let range = format!("bytes={from}-{}", to - 1);
        let response = server.request("GET", "/both.mp4", &format!("Range: {range}\r\n"));
        assert_eq!(response.status, 206);
        assert!(response.body == whole[from..to], "{range}");
    }
    assert!(server.text("/both.mp4/.m3u8").contains("audio"));
}
