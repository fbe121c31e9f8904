//! Tests films with parts that cannot be served. The rest of the film is served. The JSON
//! description, the log and `headwater check` name each such part with the reason.

use crate::ffmpeg::{probe_streams, write_probe_input};
use crate::hls_playlists as hls;
use crate::support::{HeadwaterServer, TempFolder, fixture_path, fixtures_folder};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of films with parts that cannot be served. Returns `None` if ffmpeg is not
/// installed.
fn tracks_folder() -> Option<PathBuf> {
    fixtures_folder().map(|folder| folder.join("tracks"))
}

fn describe(server: &HeadwaterServer, title: &str) -> Value {
    serde_json::from_str(&server.get_text(&format!("/{title}/.json"))).unwrap()
}

/// Returns `NAME: REASON` for each left-out part in the description.
fn left_out_of(description: &Value) -> Vec<String> {
    let parts = description["left_out"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    parts
        .map(|part| text(&part["name"]) + ": " + &text(&part["reason"]))
        .collect()
}

fn rendition_names(description: &Value) -> Vec<String> {
    let renditions = description["renditions"].as_array().unwrap().iter();
    renditions
        .map(|r| r["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Expected results: a film, its numbers of video and audio renditions, and one text for each
/// left-out part. The entry about the part must contain this text.
const FILMS: [(&str, usize, usize, &[&str]); 6] = [
    (
        "still.mp4",
        1,
        1,
        &["still.mp4, track 1 (video, avc1.640016): it has 1 picture in 1.3 s"],
    ),
    (
        "no_stsd.mp4",
        1,
        0,
        &["no_stsd.mp4, track 2 (audio): there is no stsd box"],
    ),
    ("cut.mp4", 1, 1, &["of track 2: the file ends at byte"]),
    (
        "text.mp4",
        1,
        1,
        &["text.en.ass: this format of text is not supported; convert it to WebVTT or SRT"],
    ),
    ("xhe_aac.mp4", 0, 1, &[]),
    ("vvc.mp4", 1, 0, &[]),
];

#[test]
fn films_are_served_without_the_parts_that_cannot_be() {
    let Some(folder) = tracks_folder() else {
        return;
    };
    let server = HeadwaterServer::serve_source(&folder);
    for (film, videos, audios, parts) in FILMS {
        let description = describe(&server, film);
        let names = rendition_names(&description);
        let count = |kind| names.iter().filter(|name| name.starts_with(kind)).count();
        assert_eq!((count("video"), count("audio")), (videos, audios), "{film}");
        let left_out = left_out_of(&description);
        assert_eq!(left_out.len(), parts.len(), "{film}: {left_out:?}");
        for (entry, part) in left_out.iter().zip(parts) {
            assert!(entry.contains(part), "{entry:?} does not contain {part:?}");
        }
        for playlist in hls::list_media_playlists(&server, &format!("/{film}/.m3u8")) {
            let media = hls::fetch_media_playlist(&server, &playlist);
            for (_, segment) in &media.segments {
                server.get_body(segment);
            }
        }
    }
}

#[test]
fn check_names_the_parts_that_are_left_out() {
    let Some(folder) = tracks_folder() else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let output = command.args(["check", "--json"]).arg(&folder).output();
    let document: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let titles = document["titles"].as_array().unwrap();
    for (film, _, _, parts) in FILMS {
        let is_film = |title: &&Value| title["title"].as_str().unwrap().ends_with(film);
        let title = titles.iter().find(is_film).unwrap();
        let findings = title["findings"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let left_out: Vec<String> = findings
            .map(|finding| text(&finding["place"]) + ": " + &text(&finding["what"]))
            .filter(|finding| finding.contains("left out, because "))
            .map(|finding| finding.replace("left out, because ", ""))
            .collect();
        assert_eq!(left_out.len(), parts.len(), "{film}: {left_out:?}");
        for (entry, part) in left_out.iter().zip(parts) {
            assert!(entry.contains(part), "{entry:?} does not contain {part:?}");
        }
    }
}

#[test]
fn text_files_that_cannot_be_read_are_named_with_reason_and_remedy() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("film.mp4", &std::fs::read(film).unwrap());
    folder.write_file("film.de.srt", b"<html>");
    let large = std::fs::File::create(folder.0.join("film.es.srt")).unwrap();
    large.set_len((16 << 20) + 1).unwrap();
    let expected = [
        "film.de.srt: no cue of it could be parsed; export it again as WebVTT or SRT",
        "film.es.srt: text files may have at most 16 MiB; shorten it",
    ];
    let server = HeadwaterServer::serve_source(&folder.0);
    let description = describe(&server, "film.mp4");
    let mut left_out = left_out_of(&description);
    left_out.sort();
    assert_eq!(left_out, expected);
    assert!(description["texts"].is_null(), "{description}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let output = command.args(["check", folder.0.to_str().unwrap()]).output();
    let report = String::from_utf8(output.unwrap().stdout).unwrap();
    for part in ["no cue of it could be parsed", "at most 16 MiB"] {
        assert!(report.contains(part), "{report}");
    }
}

#[test]
fn text_files_beyond_the_64th_are_named_by_the_server_and_by_check() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("film.mp4", &std::fs::read(film).unwrap());
    for n in 0..66 {
        let name = format!("film.en.label{n:02}.srt");
        folder.write_file(&name, b"1\n00:00:01,000 --> 00:00:02,000\nFirst\n");
    }
    let server = HeadwaterServer::serve_source(&folder.0);
    let description = describe(&server, "film.mp4");
    assert_eq!(description["texts"].as_array().unwrap().len(), 64);
    let left_out = left_out_of(&description);
    let reason = "a title may have at most 64 text files; remove others";
    let expected = [64, 65].map(|n| format!("film.en.label{n}.srt: {reason}"));
    assert_eq!(left_out, expected);
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let output = command.args(["check", folder.0.to_str().unwrap()]).output();
    let report = String::from_utf8(output.unwrap().stdout).unwrap();
    for part in ["film.en.label64.srt", "film.en.label65.srt", reason] {
        assert!(report.contains(part), "{report}");
    }
}

#[test]
fn the_log_names_the_parts_that_are_left_out() {
    let Some(folder) = tracks_folder() else {
        return;
    };
    let logs = TempFolder::new();
    let log = logs.0.join("log");
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2> \"$LOG\""]);
    shell.arg(env!("CARGO_BIN_EXE_headwater")).env("LOG", &log);
    let server = HeadwaterServer::spawn(shell, "serve", &[folder.to_str().unwrap()]);
    server.get_body("/text.mp4/.m3u8");
    let text = std::fs::read_to_string(&log).unwrap();
    let line = "left out: text.en.ass, because this format of text is not supported";
    assert!(text.contains(line), "{text}");
}

/// Returns, for each rendition, its kind (such as `video`) and its number of packets.
fn served_packets(
    server: &HeadwaterServer,
    film: &str,
    folder: &TempFolder,
) -> Vec<(String, usize)> {
    let playlists = hls::list_media_playlists(server, &format!("/{film}/.m3u8"));
    let served = playlists.iter().map(|playlist| {
        let media = hls::fetch_media_playlist(server, playlist);
        let mut bytes = media.fetch_init(server);
        for (_, segment) in &media.segments {
            bytes.extend(server.get_body(segment));
        }
        let file = write_probe_input(&folder.0, "served.mp4", &bytes);
        let stream = probe_streams(&file).remove(0);
        (stream.kind.clone(), stream.packets.len())
    });
    served.collect()
}

#[test]
fn a_film_cut_in_its_last_fragment_plays_up_to_there() {
    let Some(folder) = tracks_folder() else {
        return;
    };
    let server = HeadwaterServer::serve_source(&folder);
    let probes = TempFolder::new();
    let counts = served_packets(&server, "cut.mp4", &probes);
    let source = probe_streams(fixture_path("short.mp4").unwrap().to_str().unwrap());
    for (kind, count) in counts {
        let whole = source.iter().find(|stream| stream.kind == kind).unwrap();
        let whole = whole.packets.len();
        match kind.as_str() {
            // The fixture lacks its last 500 bytes, which are audio.
            "video" => assert_eq!(count, whole),
            _ => assert!(count < whole && count > whole / 2, "{count} of {whole}"),
        }
    }
}

#[test]
fn xhe_aac_is_cut_at_its_sync_samples() {
    let Some(folder) = tracks_folder() else {
        return;
    };
    let server = HeadwaterServer::serve_source(&folder);
    let description = describe(&server, "xhe_aac.mp4");
    let rendition = &description["renditions"][0];
    assert_eq!(rendition["codecs"], "mp4a.40.42");
    // Every 70th sample is a sync sample, and each sample lasts 1024 ticks.
    let segments = rendition["segments"].as_array().unwrap();
    assert!(segments.len() >= 4, "{segments:?}");
    for segment in segments {
        let start = segment["t"].as_u64().unwrap();
        assert_eq!(start % (70 * 1024), 0, "{segment}");
    }
}

#[test]
fn vvc_starts_with_its_earliest_leading_picture() {
    let Some(folder) = tracks_folder() else {
        return;
    };
    let source = probe_streams(folder.join("vvc.mp4").to_str().unwrap()).remove(0);
    let times = source.packets.iter().map(|packet| packet.pts);
    let earliest = times.min().unwrap();
    assert!(
        earliest < source.packets[0].pts,
        "the first key frame has no leading pictures"
    );
    let server = HeadwaterServer::serve(&[folder.to_str().unwrap(), "--segment", "2s"]);
    let description = describe(&server, "vvc.mp4");
    let rendition = &description["renditions"][0];
    assert_eq!(rendition["codecs"], "vvc1.1.L51.CQA");
    assert_eq!(rendition["timescale"], source.rate);
    let segments = rendition["segments"].as_array().unwrap();
    assert_eq!(segments[0]["t"], earliest);
    // The pictures follow one another without gaps at 25 per second, so their number determines the
    // duration.
    let frames = source.packets.len() as i64;
    let durations = segments.iter().map(|s| s["duration"].as_i64().unwrap());
    assert_eq!(durations.sum::<i64>(), frames * source.rate / 25);
    assert_eq!(description["duration_ms"], frames * 1000 / 25);
}

#[test]
fn purposes_and_captions_of_tracks_are_declared() {
    let Some(film) = fixture_path("purposes.mp4") else {
        return;
    };
    let library = film.parent().unwrap();
    let server = HeadwaterServer::serve_source(library);
    let text = server.get_text("/purposes.mp4/.m3u8");
    assert!(text.contains("CLOSED-CAPTIONS=\"cc\""), "{text}");
    let media: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("#EXT-X-MEDIA"))
        .collect();
    let [main, comment, described, captions] = &media[..] else {
        panic!("{text}")
    };
    assert!(
        comment.contains("NAME=\"English (commentary)\""),
        "{comment}"
    );
    let characteristics = "CHARACTERISTICS=\"public.accessibility.describes-video\"";
    assert!(described.contains(characteristics), "{described}");
    assert!(captions.contains("INSTREAM-ID=\"CC1\""), "{captions}");
    assert!(main.contains("DEFAULT=YES"), "{main}");
    assert_eq!(text.matches("DEFAULT=YES").count(), 1);
    let mpd = server.get_text("/purposes.mp4/.mpd");
    let purpose = "schemeIdUri=\"urn:tva:metadata:cs:AudioPurposeCS:2007\" value=\"1\"";
    assert!(mpd.contains(purpose), "{mpd}");
    assert!(mpd.contains("value=\"commentary\""), "{mpd}");
    assert_settings_apply(library);
}

/// Checks that `closed-captions` and `default-audio` change the manifests.
fn assert_settings_apply(library: &Path) {
    let args = ["--closed-captions", "none", "--default-audio", "fr"];
    let library = library.to_str().unwrap();
    let server = HeadwaterServer::serve(&[&[library][..], &args].concat());
    let text = server.get_text("/several_tracks.mp4/.m3u8");
    assert!(text.contains("CLOSED-CAPTIONS=NONE"), "{text}");
    let french = text.lines().find(|line| line.contains("LANGUAGE=\"fr\""));
    assert!(french.unwrap().contains("DEFAULT=YES"), "{text}");
}
