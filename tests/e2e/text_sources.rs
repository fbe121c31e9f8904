//! Tests text in all places where films can be: folders, object storage, index MP4s and encrypted
//! titles. Also checks that `headwater check` reports the defects of text files.

use crate::http_storage::{count_requests, list_playlists, list_segments, read_metric};
use crate::s3_storage::start_origin;
use crate::servers;
use crate::support::{HeadwaterServer, TempFolder, fixture_path};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const SRT: &[u8] = b"1\n00:00:00,500 --> 00:00:02,500\nFirst\n";
const VTT: &[u8] = b"WEBVTT\n\n00:00.500 --> 00:02.500\nFirst\n";
const TTML: &[u8] = b"<tt xmlns='http://www.w3.org/ns/ttml'><body><div><p begin='0.5s' end='2.5s'>First</p></div></body></tt>";
/// The cue in each of the three files above, as Headwater writes it.
const CUE: &str = "00:00:00.500 --> 00:00:02.500\nFirst\n";

/// Values of the label `reason` for storage requests that text could cause.
const REASONS: [&str; 5] = ["look", "index", "text", "segment", "plain"];

fn run_ffmpeg(folder: &Path, args: &[&str]) {
    let mut command = Command::new("ffmpeg");
    let status = command.args(["-v", "error", "-y"]).args(args);
    let status = status.current_dir(folder).status();
    assert!(status.unwrap().success(), "{args:?}");
}

/// Writes `film.mp4` with a `tx3g` track in French, and `film.en.srt` beside it.
fn write_film_with_text(folder: &TempFolder) -> Option<()> {
    let film = fixture_path("avc.mp4")?;
    folder.write_file("film.en.srt", SRT);
    let film = film.to_str()?;
    let inputs = ["-i", film, "-i", "film.en.srt", "-map", "0", "-map", "1"];
    let codecs = ["-c", "copy", "-c:s", "mov_text"];
    let language = ["-metadata:s:s:0", "language=fra", "film.mp4"];
    run_ffmpeg(&folder.0, &[&inputs[..], &codecs, &language].concat());
    Some(())
}

/// Returns the language and the WebVTT file of each text, sorted.
fn read_texts(server: &HeadwaterServer, title: &str) -> Vec<(String, String)> {
    let description = server.get_text(&format!("{title}/.json"));
    let description: Value = serde_json::from_str(&description).unwrap();
    let texts = description["texts"].as_array().unwrap().iter();
    let read = |text: &Value| {
        let url = format!("{title}/{}", text["url"].as_str().unwrap());
        let language = text["language"].as_str().unwrap_or_default();
        (language.to_owned(), server.get_text(&url))
    };
    let mut texts: Vec<_> = texts.map(read).collect();
    texts.sort();
    texts
}

/// Asserts that a title has texts in exactly these languages, and that each text contains [`CUE`].
fn assert_cue_in(server: &HeadwaterServer, title: &str, languages: &[&str]) {
    let texts = read_texts(server, title);
    let found: Vec<&str> = texts.iter().map(|(language, _)| &**language).collect();
    assert_eq!(found, languages, "{title}");
    for (language, text) in texts {
        assert!(text.contains(CUE), "{title} {language}: {text}");
    }
}

#[test]
fn text_files_of_every_format_in_the_folder_of_a_title_are_served() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("title/video.mp4", &std::fs::read(film).unwrap());
    for (name, bytes) in [
        ("en.srt", SRT),
        ("video.fr.vtt", VTT),
        ("title.de.ttml", TTML),
        ("Another.Name.es.dfxp", TTML),
        ("it.imsc", TTML),
    ] {
        folder.write_file(&format!("title/{name}"), bytes);
    }
    let server = HeadwaterServer::serve_source(&folder.0);
    assert_cue_in(&server, "/title", &["de", "en", "es", "fr", "it"]);
}

#[test]
fn text_of_a_remote_film_costs_one_listing_and_no_request_per_segment() {
    let folder = TempFolder::new();
    if write_film_with_text(&folder).is_none() {
        return;
    }
    let storage = TempFolder::new();
    let Some(s3) = servers::start_s3(&storage.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    let film = std::fs::read(folder.0.join("film.mp4")).unwrap();
    s3.put("films/film.mp4", &film);
    s3.put("films/film.de.ttml", TTML);
    s3.put("films/film.es.vtt", VTT);
    s3.put("films/other.it.srt", SRT);
    s3.put("films/film.en.srt", SRT);
    let origin = start_origin(&s3, "/film.en.srt", &["--recheck", "1h"]);
    let count = || REASONS.map(|reason| count_requests(&origin, reason));
    let looks = count()[0];
    assert_cue_in(&origin, "/film.mp4", &["de", "en", "es", "fr"]);
    let opened = count();
    assert_eq!(opened[0] - looks, 1, "one listing");
    let playlists = list_playlists(&origin, "/film.mp4");
    let text = playlists.iter().filter(|name| name.contains("/text="));
    let mut fetched = 0;
    for playlist in text {
        for form in ["hls.m3u8", "ts.m3u8", "imsc.m3u8"] {
            let playlist = playlist.replace("hls.m3u8", form);
            for segment in list_segments(&origin, &playlist) {
                origin.get_body(&segment);
                fetched += 1;
            }
        }
    }
    assert_eq!(fetched, 4 * 3 * 5, "{playlists:?}");
    assert_eq!(count(), opened, "{REASONS:?}");
}

/// Number of cues in the long film.
const CUES: usize = 36;

/// Writes `film.mp4` from video noise. More than 1 MiB of video separates each cue from the next
/// cue.
fn write_interleaved_film(folder: &TempFolder) -> Option<()> {
    fixture_path("avc.mp4")?;
    let cue = |n: usize| {
        let (minute, second) = (n / 30, n * 2 % 60);
        format!(
            "{n}\n00:{minute:02}:{second:02},000 --> 00:{minute:02}:{:02},900\nCue {n}.\n\n",
            second + 1
        )
    };
    let cues: String = (0..CUES).map(cue).collect();
    folder.write_file("film.srt", cues.as_bytes());
    let noise = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", "320x180"];
    let input = ["-r", "16", "-t", "73", "-i", "/dev/urandom"];
    let text = [
        "-i", "film.srt", "-map", "0", "-map", "1", "-c:s", "mov_text",
    ];
    let video = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "4"];
    let output = ["-pix_fmt", "yuv420p", "-g", "32", "film.mp4"];
    run_ffmpeg(
        &folder.0,
        &[&noise[..], &input, &text, &video, &output].concat(),
    );
    Some(())
}

#[test]
fn text_that_is_spread_over_a_remote_film_costs_one_small_request_per_cue_and_none_per_segment() {
    let folder = TempFolder::new();
    if write_interleaved_film(&folder).is_none() {
        return;
    }
    let storage = TempFolder::new();
    let Some(s3) = servers::start_s3(&storage.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    let film = std::fs::read(folder.0.join("film.mp4")).unwrap();
    assert!(film.len() > CUES << 20, "{} bytes", film.len());
    s3.put("films/film.mp4", &film);
    s3.put("films/ready.vtt", VTT);
    let origin = start_origin(&s3, "/ready.vtt", &["--recheck", "1h"]);
    let texts = read_texts(&origin, "/film.mp4");
    assert_eq!(texts.len(), 1);
    for n in 0..CUES {
        assert!(texts[0].1.contains(&format!("Cue {n}.")), "{n}: {texts:?}");
    }
    let requests = count_requests(&origin, "text");
    assert!(requests <= CUES as u64 + 3, "{requests}, 3 for captions");
    let bytes = read_metric(&origin, "headwater_storage_bytes_total{reason=\"text\"}");
    assert!(bytes < 1 << 20, "{bytes} bytes for {CUES} cues");
    let counts = |origin: &HeadwaterServer| ["look", "text"].map(|why| count_requests(origin, why));
    let segments_of = |origin: &HeadwaterServer| {
        let playlists = list_playlists(origin, "/film.mp4");
        let video = playlists.iter().find(|name| name.contains("/video="));
        list_segments(origin, video.unwrap())
    };
    // Without the index cache, each request for a segment opens the film again.
    let uncached = start_origin(&s3, "/ready.vtt", &["--index-cache", "off"]);
    for origin in [origin, uncached] {
        let segments = segments_of(&origin);
        let before = counts(&origin);
        for segment in segments.iter().take(3) {
            origin.get_body(segment);
        }
        assert_eq!(counts(&origin), before);
    }
}

#[test]
fn an_index_mp4_has_the_text_inside_of_its_film_and_beside_it() {
    let folder = TempFolder::new();
    if write_film_with_text(&folder).is_none() {
        return;
    }
    let film = folder.0.join("film.mp4");
    let made = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["index", film.to_str().unwrap(), "-o"])
        .arg(&folder.0)
        .output();
    assert!(made.unwrap().status.success());
    let server = HeadwaterServer::serve_source(&folder.0);
    for title in ["/film.mp4", "/film.ism", "/film-index.mp4"] {
        assert_cue_in(&server, title, &["en", "fr"]);
    }
}

/// Returns the URL and the body of each text resource of the film. The part of the URL that
/// contains the version is removed.
fn fetch_text(server: &HeadwaterServer) -> Vec<(String, Vec<u8>)> {
    let playlists = list_playlists(server, "/film.mp4");
    let text = playlists.iter().filter(|name| name.contains("/text="));
    let mut fetched = Vec::new();
    for playlist in text {
        let folder = playlist.strip_suffix("hls.m3u8").unwrap();
        let forms = ["hls.m3u8", "imsc.m3u8"].map(|name| format!("{folder}{name}"));
        for form in forms {
            assert!(!server.get_text(&form).contains("EXT-X-KEY"), "{form}");
            fetched.extend(list_segments(server, &form));
        }
        let cmaf = ["init.mp4", "init.imsc.mp4", "n/1.m4s", "n/2.m4s", "all.vtt"];
        fetched.extend(cmaf.map(|name| format!("{folder}{name}")));
    }
    let without_version = |url: &str| url.split_once("/text=").unwrap().1.to_owned();
    let fetch = |url: String| (without_version(&url), server.get_body(&url));
    fetched.into_iter().map(fetch).collect()
}

#[test]
fn text_of_a_title_with_common_encryption_is_that_of_the_unencrypted_title() {
    let folder = TempFolder::new();
    if write_film_with_text(&folder).is_none() {
        return;
    }
    let secret = TempFolder::new();
    let secret = secret.write_file("secret", b"0123456789abcdef0123456789abcdef\n");
    let keys = format!("secret:{}", secret.display());
    let library = folder.0.to_str().unwrap();
    let expected = fetch_text(&HeadwaterServer::serve(&[library, "--segment", "2s"]));
    assert!(expected.iter().any(|(url, _)| url.starts_with("fr/")));
    for scheme in ["cbcs", "cenc"] {
        let protection = ["--drm-keys", &keys, "--drm-scheme", scheme];
        let flags = [&[library, "--segment", "2s"][..], &protection].concat();
        let server = HeadwaterServer::serve(&flags);
        let playlists = list_playlists(&server, "/film.mp4");
        let video = playlists.iter().find(|name| name.contains("/video="));
        let video = server.get_text(video.unwrap());
        assert!(video.contains("#EXT-X-KEY:METHOD=SAMPLE-AES"), "{video}");
        assert!(fetch_text(&server) == expected, "{scheme}");
        let mpd = server.get_text("/film.mp4/.mpd");
        let sets = mpd.split("<AdaptationSet ").skip(1);
        for set in sets {
            let is_text = set.contains("contentType=\"text\"");
            assert_eq!(set.contains("<ContentProtection"), !is_text, "{set}");
        }
    }
}

#[test]
fn check_reports_each_defect_of_text_files() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("film.mp4", &std::fs::read(film).unwrap());
    let cues = "1\n00:00:03,000 --> 00:00:05,000\nCaf\u{e9}\n\n2\n00:00:04,000 --> 00:00:06,000\nOverlapping\n\n3\n00:00:01,000 --> 00:00:02,000\nUnsorted\n\n4\n00:00:07,000 --> 00:00:08,000\n\n5\n00:00:09,000 --> 00:00:08,000\nReversed\n\n6\n00:01:00,000 --> 00:01:01,000\nLate\n\nNot a time\nx\n";
    let windows_1252: Vec<u8> = cues.chars().map(|c| u8::try_from(c).unwrap()).collect();
    folder.write_file("film.klingonese.srt", &windows_1252);
    folder.write_file("film.en.srt", SRT);
    let output = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["check", "--json", folder.0.to_str().unwrap()])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let texts = report["titles"][0]["texts"].as_array().unwrap();
    let named = texts.iter().map(|text| {
        let label = text["label"].as_str().unwrap();
        (text["source"].as_str().unwrap(), label)
    });
    let named: Vec<_> = named.collect();
    assert_eq!(
        named,
        [
            ("film.en.srt", "English"),
            ("film.klingonese.srt", "klingonese")
        ]
    );
    let findings = report["titles"][0]["findings"].as_array().unwrap();
    let field = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let places = findings.iter().map(|finding| field(finding, "place"));
    for place in places {
        assert_eq!(place, "text=und (film.klingonese.srt)", "{findings:?}");
    }
    let mut messages: Vec<_> = findings.iter().map(|f| field(f, "what")).collect();
    messages.sort();
    assert_eq!(
        messages,
        [
            "cues end before they start and are left out: 1, the first at 9.000 s",
            "cues have no text and are left out: 1, the first at 7.000 s",
            "cues start after the end of the film: 1, the first at 60.000 s",
            "cues start before the previous one has ended: 1, the first at 4.000 s",
            "cues start before the previous one in the file: 1, the first at 1.000 s",
            "the file is not Unicode and is read as Windows-1252: 1, the first at its start",
            "the text declares no language, so players cannot choose it",
        ]
    );
}

#[test]
fn the_roles_and_flags_of_tracks_are_the_purpose_and_default_of_their_text() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("cues.srt", SRT);
    let film = film.to_str().unwrap();
    let inputs = ["-i", film, "-i", "cues.srt", "-map", "0"];
    let tracks = ["-map", "1", "-map", "1", "-c", "copy", "-c:s", "mov_text"];
    let languages = [
        "-metadata:s:s:0",
        "language=fra",
        "-metadata:s:s:1",
        "language=eng",
    ];
    let flags = [
        "-disposition:s:0",
        "0",
        "-disposition:s:1",
        "default+hearing_impaired",
    ];
    run_ffmpeg(
        &folder.0,
        &[&inputs[..], &tracks, &languages, &flags, &["film.mp4"]].concat(),
    );
    let server = HeadwaterServer::serve_source(&folder.0);
    let description: Value = serde_json::from_str(&server.get_text("/film.mp4/.json")).unwrap();
    let texts = description["texts"].as_array().unwrap().iter();
    let facts = |text: &Value| {
        let name = |field: &str| text[field].as_str().unwrap().to_owned();
        (name("language"), name("kind"), text["default"] == true)
    };
    let found: Vec<_> = texts.map(facts).collect();
    let expected = [("fr", "subtitles", false), ("en", "captions", true)];
    let expected =
        expected.map(|(tag, kind, is_default)| (tag.to_owned(), kind.to_owned(), is_default));
    assert_eq!(found, expected);
}
