//! Tests subtitle files beside films. The server notices new, replaced and removed files, and does
//! not change the URLs of the video.

use crate::http_storage::{count_requests, read_metric};
use crate::nginx::Nginx;
use crate::support::{HeadwaterServer, TempFolder, fixture_path};
use std::time::{Duration, Instant};

const SRT: &[u8] =
    b"1\n00:00:00,500 --> 00:00:02,500\nFirst\n\n2\n00:00:03,000 --> 00:00:07,200\nCaf\xe9\n";

/// Serves a film from its own folder.
fn serve_film() -> Option<(TempFolder, HeadwaterServer)> {
    let bytes = std::fs::read(fixture_path("avc.mp4")?).unwrap();
    let folder = TempFolder::new();
    folder.write_file("films/film.mp4", &bytes);
    let server = HeadwaterServer::serve_source(&folder.0);
    Some((folder, server))
}

/// Requests the multivariant playlist until `wanted` accepts it. The server checks paths for
/// changes only once per second.
fn wait_for_playlist(server: &HeadwaterServer, wanted: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let text = server.get_text("/films/film.mp4/.m3u8");
        if wanted(&text) {
            return text;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn media_lines(playlist: &str) -> Vec<&str> {
    let lines = playlist.lines().filter(|line| !line.starts_with('#'));
    lines.collect()
}

/// Returns the folder of the first text rendition, such as `/films/film.mp4/t-…/text=en`.
fn text_folder(playlist: &str) -> String {
    let line = playlist
        .lines()
        .find(|line| line.contains("TYPE=SUBTITLES"));
    let url = line.unwrap().split("URI=\"").nth(1).unwrap();
    let folder = url.split_once("/hls.m3u8").unwrap().0;
    format!("/films/film.mp4/{folder}")
}

#[test]
fn new_subtitles_change_no_video_url() {
    let Some((folder, server)) = serve_film() else {
        return;
    };
    let before = server.get_text("/films/film.mp4/.m3u8");
    assert!(!before.contains("SUBTITLES"), "{before}");
    folder.write_file("films/film.en.srt", SRT);
    folder.write_file("films/other.en.srt", SRT);
    let english = wait_for_playlist(&server, |text| text.contains("SUBTITLES"));
    assert_eq!(media_lines(&before), media_lines(&english));
    assert_eq!(english.matches("TYPE=SUBTITLES").count(), 1, "{english}");
    let old = text_folder(&english);
    let segment = server.get(&format!("{old}/26624.vtt"));
    assert_eq!(segment.status, 200);
    assert_eq!(
        String::from_utf8(segment.body.clone()).unwrap(),
        "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:7200,LOCAL:00:00:00.000\n\n00:00:00.500 --> 00:00:02.500\nFirst\n\n00:00:03.000 --> 00:00:07.200\nCafé\n\n"
    );
    assert_eq!(
        segment.header("cache-control"),
        Some("public, max-age=31536000, immutable")
    );

    // After the subtitle file is replaced, old segment URLs get 410, and old playlist URLs redirect
    // to the new version.
    let new = folder.write_file("films/new", b"1\n00:00:01,000 --> 00:00:02,000\nNew\n");
    std::fs::rename(new, folder.0.join("films/film.en.srt")).unwrap();
    let newer = wait_for_playlist(&server, |text| text_folder(text) != old);
    assert_eq!(media_lines(&before), media_lines(&newer));
    assert_eq!(server.get(&format!("{old}/26624.vtt")).status, 410);
    let moved = server.get(&format!("{old}/hls.m3u8"));
    assert_eq!(moved.status, 307);
    let place = moved.header("location").unwrap();
    assert_eq!(
        place,
        format!(
            "../..{}/hls.m3u8",
            text_folder(&newer).trim_start_matches("/films/film.mp4")
        )
    );
    std::fs::remove_file(folder.0.join("films/film.en.srt")).unwrap();
    let after = wait_for_playlist(&server, |text| !text.contains("SUBTITLES"));
    assert_eq!(before, after);
}

#[test]
fn every_text_resource_is_served_and_no_other() {
    let Some((folder, server)) = serve_film() else {
        return;
    };
    folder.write_file("films/film.en.srt", SRT);
    let text = text_folder(&wait_for_playlist(&server, |text| {
        text.contains("SUBTITLES")
    }));
    for playlist in ["hls", "ts"] {
        let body = server.get_text(&format!("{text}/{playlist}.m3u8"));
        let names = media_lines(&body);
        assert_eq!(names.len(), 5, "{body}");
        for name in names {
            assert!(
                server
                    .get_text(&format!("{text}/{name}"))
                    .starts_with("WEBVTT\n")
            );
            let cmaf = name.split('.').next().unwrap();
            assert_eq!(
                &server.get_body(&format!("{text}/{cmaf}.m4s"))[4..8],
                b"styp"
            );
        }
    }
    let imsc = server.get_text(&format!("{text}/imsc.m3u8"));
    for name in media_lines(&imsc) {
        let segment = server.get_body(&format!("{text}/{name}"));
        assert!(
            String::from_utf8_lossy(&segment).contains("</tt>"),
            "{name}"
        );
    }
    for (form, profile) in [("", b"cwvt"), ("imsc.", b"im1t")] {
        let init = server.get_body(&format!("{text}/init.{form}mp4"));
        assert_eq!((&init[4..8], &init[32..36]), (&b"ftyp"[..], &profile[..]));
        assert_eq!(
            server.get_body(&format!("{text}/n/1.{form}m4s")),
            server.get_body(&format!("{text}/1024.{form}m4s"))
        );
    }
    assert!(
        server
            .get_text(&format!("{text}/all.vtt"))
            .contains("First")
    );
    for missing in [
        "n/0.m4s",
        "n/6.m4s",
        "0.vtt",
        "1025.m4s",
        "1.srt",
        "1025.imsc.m4s",
        "imsc.mp4",
        "keyframes.m3u8",
        "n/hls.m3u8",
    ] {
        assert_eq!(
            server.get(&format!("{text}/{missing}")).status,
            404,
            "{missing}"
        );
    }
    let french = text.replace("text=en", "text=fr");
    assert_eq!(server.get(&format!("{french}/hls.m3u8")).status, 404);
    assert_eq!(server.get(&format!("{french}/all.vtt")).status, 404);
}

#[test]
fn text_streams_of_a_server_manifest_are_served() {
    let Some((folder, server)) = serve_film() else {
        return;
    };
    folder.write_file("films/cues.srt", SRT);
    let status = std::process::Command::new("ffmpeg")
        .args([
            "-v", "error", "-i", "cues.srt", "-c:s", "mov_text", "text.mp4",
        ])
        .current_dir(folder.0.join("films"))
        .status();
    assert!(status.unwrap().success());
    let stream = |src: &str| {
        format!(
            "<textstream src='{src}' systemLanguage='fra'><param name='trackID' value='1'/><param name='Subtype' value='CAPT'/></textstream>"
        )
    };
    let manifest = |streams: String| {
        format!(
            "<?xml version='1.0' encoding='utf-8'?><smil xmlns='http://www.w3.org/2001/SMIL20/Language'><body><switch><video src='film.mp4'/>{streams}</switch></body></smil>"
        )
    };
    folder.write_file("films/plain.ism", manifest(String::new()).as_bytes());
    let streams = stream("text.mp4") + &stream("missing.mp4");
    folder.write_file("films/text.ism", manifest(streams).as_bytes());
    let plain = server.get_text("/films/plain.ism/.m3u8");
    assert!(!plain.contains("TYPE=SUBTITLES"), "{plain}");
    let playlist = server.get_text("/films/text.ism/.m3u8");
    let captions = "NAME=\"French (captions)\",LANGUAGE=\"fr\"";
    assert!(playlist.contains(captions), "{playlist}");
    assert_eq!(playlist.matches("TYPE=SUBTITLES").count(), 1, "{playlist}");
    let line = playlist.lines().find(|line| line.contains("SUBTITLES"));
    let url = line.unwrap().split("URI=\"").nth(1).unwrap();
    let whole = format!(
        "/films/text.ism/{}/all.vtt",
        url.split_once("/hls").unwrap().0
    );
    assert!(server.get_text(&whole).contains("First"));
}

/// Writes a film whose key frames carry CEA-608 captions, and returns its path. An SEI message is
/// inserted in front of each IDR picture of a byte stream, and ffmpeg muxes the stream.
fn build_captioned_film(folder: &TempFolder) -> Option<std::path::PathBuf> {
    let ffmpeg = |args: &[&str]| {
        let status = std::process::Command::new("ffmpeg")
            .args(["-v", "error", "-y"])
            .args(args)
            .current_dir(&folder.0)
            .status();
        assert!(status.unwrap().success(), "{args:?}");
    };
    let source = fixture_path("avc.mp4")?;
    ffmpeg(&[
        "-i",
        source.to_str()?,
        "-c:v",
        "copy",
        "-an",
        "-f",
        "h264",
        "plain.h264",
    ]);
    let stream = std::fs::read(folder.0.join("plain.h264")).unwrap();
    let captions = b"\x06\x04\x0e\xb5\x00\x31GA94\x03\x41\xff\xfc\x94\x20\xff\x80";
    let mut out = Vec::new();
    for (n, byte) in stream.iter().enumerate() {
        // An IDR slice starts here.
        if stream[n..].starts_with(b"\0\0\x01\x65") {
            out.extend(b"\0\0\x01");
            out.extend(captions);
        }
        out.push(*byte);
    }
    std::fs::write(folder.0.join("captioned.h264"), out).unwrap();
    ffmpeg(&[
        "-r",
        "25",
        "-i",
        "captioned.h264",
        "-c",
        "copy",
        "captioned.mp4",
    ]);
    Some(folder.0.join("captioned.mp4"))
}

#[test]
fn captions_inside_of_the_video_are_announced() {
    let folder = TempFolder::new();
    if build_captioned_film(&folder).is_none() {
        return;
    }
    let server = HeadwaterServer::serve_source(&folder.0);
    let hls = server.get_text("/captioned.mp4/.m3u8");
    assert!(
        hls.contains("TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\"") && hls.contains("INSTREAM-ID=\"CC1\""),
        "{hls}"
    );
    let variants = hls
        .lines()
        .filter(|line| line.starts_with("#EXT-X-STREAM-INF"));
    assert!(variants.clone().count() > 0);
    for variant in variants {
        assert!(variant.ends_with(",CLOSED-CAPTIONS=\"cc\""), "{variant}");
    }
    let mpd = server.get_text("/captioned.mp4/.mpd");
    assert!(
        mpd.contains("urn:scte:dash:cc:cea-608:2015\" value=\"CC1\""),
        "{mpd}"
    );
}

#[test]
fn a_library_of_one_film_has_the_text_beside_it() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    let film = folder.write_file("film.mp4", &std::fs::read(film).unwrap());
    folder.write_file("film.en.srt", SRT);
    folder.write_file("other.de.srt", SRT);
    let server = HeadwaterServer::serve_source(&film);
    let playlist = server.get_text("/film.mp4/.m3u8");
    assert_eq!(playlist.matches("TYPE=SUBTITLES").count(), 1, "{playlist}");
    assert!(playlist.contains("LANGUAGE=\"en\""), "{playlist}");
    assert_eq!(server.get("/other.de.srt").status, 404);
}

/// Returns the attributes between `GROUP-ID` and `URI` of each `EXT-X-MEDIA` tag of subtitles.
fn subtitle_attributes(playlist: &str) -> Vec<&str> {
    let tags = playlist.lines().filter_map(|line| {
        let attributes = line.strip_prefix("#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"text\",")?;
        attributes.split(",URI=").next()
    });
    tags.collect()
}

/// Returns the language, label, roles and accessibility of each AdaptationSet of text.
fn text_sets(mpd: &str) -> Vec<Vec<&str>> {
    let sets = mpd.split("<AdaptationSet ").skip(1);
    let text = sets.filter(|set| set.contains("contentType=\"text\""));
    let quoted = |part: &'static str| move |line: &&str| line.trim().starts_with(part);
    let properties = text.map(|set| {
        let language = set.split("lang=\"").nth(1).unwrap().split('"').next();
        let label = set.split("<Label>").nth(1).unwrap().split('<').next();
        let values = set
            .lines()
            .filter(|line| quoted("<Role ")(line) || quoted("<Accessibility ")(line));
        let values = values.filter_map(|line| line.split("value=\"").nth(1)?.split('"').next());
        language.into_iter().chain(label).chain(values).collect()
    });
    properties.collect()
}

#[test]
fn manifests_describe_language_purpose_and_default_of_each_text() {
    let Some((folder, server)) = serve_film() else {
        return;
    };
    for words in [
        "de.forced",
        "en.commentary",
        "en.default",
        "fr.sdh",
        "it.easy-to-read",
        "pt-BR",
    ] {
        folder.write_file(&format!("films/film.{words}.srt"), SRT);
    }
    let count = |text: &str| text.matches("TYPE=SUBTITLES").count();
    let playlist = wait_for_playlist(&server, |text| count(text) == 6);
    let captions = "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound";
    assert_eq!(
        subtitle_attributes(&playlist),
        [
            "NAME=\"German (forced)\",LANGUAGE=\"de\",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES",
            // Two renditions are in English. Only the default rendition has AUTOSELECT=YES, so
            // players do not select the commentary by themselves.
            "NAME=\"Commentary\",LANGUAGE=\"en\",DEFAULT=NO,AUTOSELECT=NO,FORCED=NO",
            "NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO",
            &format!(
                "NAME=\"French (captions)\",LANGUAGE=\"fr\",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,CHARACTERISTICS=\"{captions}\""
            ),
            "NAME=\"Italian (easy to read)\",LANGUAGE=\"it\",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,CHARACTERISTICS=\"public.easy-to-read\"",
            "NAME=\"Portuguese\",LANGUAGE=\"pt-BR\",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO",
        ]
    );
    assert_eq!(
        text_sets(&server.get_text("/films/film.mp4/.mpd")),
        [
            vec!["de", "German (forced)", "forced-subtitle"],
            vec!["en", "Commentary", "subtitle"],
            vec!["en", "English", "subtitle", "main"],
            vec!["fr", "French (captions)", "2", "caption"],
            vec!["it", "Italian (easy to read)", "subtitle", "easyreader"],
            vec!["pt-BR", "Portuguese", "subtitle"],
        ]
    );
}

#[test]
fn text_of_an_encrypted_title_is_not_encrypted() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("films/film.mp4", &std::fs::read(film).unwrap());
    folder.write_file("films/film.en.srt", SRT);
    let secret = folder.write_file("secret", b"0123456789abcdef0123456789abcdef\n");
    let (library, secret) = (folder.0.to_str().unwrap(), secret.to_str().unwrap());
    let server = HeadwaterServer::serve(&[library, "--aes-secret", secret]);
    let playlist = server.get_text("/films/film.mp4/.m3u8");
    let video = media_lines(&playlist)[0];
    let video = server.get_text(&format!("/films/film.mp4/{video}"));
    assert!(video.contains("#EXT-X-KEY:METHOD=AES-128"), "{video}");
    let text = text_folder(&playlist);
    let list = server.get_text(&format!("{text}/hls.m3u8"));
    assert!(!list.contains("EXT-X-KEY"), "{list}");
    for segment in media_lines(&list) {
        let segment = server.get_text(&format!("{text}/{segment}"));
        assert!(segment.starts_with("WEBVTT\n"), "{segment}");
    }
}

const CAPTIONS: &str = "TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\"";

/// Serves the captioned film with nginx. The film has an old modification time, because the index
/// cache does not store recently modified films.
fn serve_captioned_film_with_nginx(folder: &TempFolder) -> Option<Nginx> {
    let film = build_captioned_film(folder)?;
    let file = std::fs::File::options().write(true).open(film).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(1000);
    file.set_modified(long_ago).unwrap();
    let own = folder.0.join(".nginx");
    std::fs::create_dir(&own).unwrap();
    Nginx::of(&own, &folder.0, "", "")
}

#[test]
fn captions_inside_of_a_remote_film_are_read_once() {
    let (folder, cache) = (TempFolder::new(), TempFolder::new());
    let Some(nginx) = serve_captioned_film_with_nginx(&folder) else {
        return;
    };
    let (url, cache) = (nginx.url(""), cache.0.to_str().unwrap());
    let disk = ["--index-cache", "memory+disk", "--index-cache-dir", cache];
    let serve = || HeadwaterServer::serve(&[&[url.as_str()][..], &disk].concat());
    let first = serve();
    let playlist = first.get_text("/captioned.mp4/.m3u8");
    assert!(playlist.contains(CAPTIONS), "{playlist}");
    let requests = count_requests(&first, "text");
    assert!(requests <= 3, "{requests} requests for three key frames");
    let read = read_metric(&first, "headwater_storage_bytes_total{reason=\"text\"}");
    assert!(read <= 3 << 20, "{read} bytes of three key frames");
    drop(first);
    let second = serve();
    let playlist = second.get_text("/captioned.mp4/.m3u8");
    assert!(playlist.contains(CAPTIONS), "{playlist}");
    assert_eq!(count_requests(&second, "index"), 1, "only the open");
    assert_eq!(count_requests(&second, "text"), 0, "after a restart");
}

#[test]
fn an_index_mp4_contains_the_captions_of_its_film() {
    let folder = TempFolder::new();
    let Some(nginx) = serve_captioned_film_with_nginx(&folder) else {
        return;
    };
    let film = folder.0.join("captioned.mp4");
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["index", film.to_str().unwrap(), "-o"])
        .arg(&folder.0)
        .output();
    assert!(made.unwrap().status.success());
    let origin = HeadwaterServer::serve(&[nginx.url("").as_str()]);
    let playlist = origin.get_text("/captioned.ism/.m3u8");
    assert!(playlist.contains(CAPTIONS), "{playlist}");
    assert_eq!(count_requests(&origin, "text"), 0);
}
