//! Tests `headwater index`. A title that is served through a server manifest and an index MP4 has
//! the same bytes as the film itself. If the index MP4 is requested as a file, the response is the
//! whole film as a progressive MP4.

use crate::ffmpeg::{ProbedStream, decode_video_hashes, probe_streams, write_probe_input};
use crate::support::{HeadwaterServer, TempFolder, fixture_path, fixtures_folder};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs `headwater index`. Returns standard output, or standard error if the command failed.
fn run_index(args: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .arg("index")
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    match output.status.code() {
        Some(0) => Ok(text(output.stdout)),
        Some(1) => Err(text(output.stderr)),
        other => panic!("{args:?}: {other:?}"),
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Makes a library with copies of the fixtures in `films`, and an empty folder `made`.
fn make_library() -> Option<TempFolder> {
    let folder = TempFolder::new();
    let films = fixtures_folder()?.join("library");
    copy_folder(&films, &folder.0.join("films"));
    std::fs::create_dir(folder.0.join("made")).unwrap();
    Some(folder)
}

/// Copies files instead of hard-linking them. A hard link by another test would change the ctime,
/// which is part of a file's version.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn fetch_description(server: &HeadwaterServer, title: &str) -> Value {
    serde_json::from_str(&server.get_text(&format!("/{title}/.json"))).unwrap()
}

/// Returns the relative URLs of all init and media segments of a title.
fn list_segment_addresses(title: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let renditions = title["renditions"].as_array().unwrap().iter();
    renditions
        .flat_map(|rendition| {
            let media = text(&rendition["media"]);
            let segments = rendition["segments"].as_array().unwrap().iter();
            let names = segments.map(move |s| media.replace("{t}", &s["t"].to_string()));
            [text(&rendition["init"])].into_iter().chain(names)
        })
        .collect()
}

fn list_names(folder: &Path, keep: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| keep(name)).collect();
    names.sort();
    names
}

#[test]
fn every_film_is_served_from_its_index_byte_for_byte() {
    let Some(library) = make_library() else {
        return;
    };
    let (films, made) = (library.0.join("films"), library.0.join("made"));
    let titles = list_names(&films, |name| {
        ["mp4", "mov"].iter().any(|end| name.ends_with(end))
            || ["ladder", "frag_ladder"].contains(&name)
    });
    for (n, title) in titles.iter().enumerate() {
        let out = made.join(n.to_string());
        run_index(&[
            path_text(&films.join(title)),
            "-o",
            path_text(&out),
            "--name",
            "title",
        ])
        .unwrap();
    }
    let server = HeadwaterServer::serve_source(&library.0);
    for (n, title) in titles.iter().enumerate() {
        let (film, indexed) = (format!("films/{title}"), format!("made/{n}/title.ism"));
        let (from, to) = (
            fetch_description(&server, &film),
            fetch_description(&server, &indexed),
        );
        assert_eq!(from["set"], to["set"], "{title}");
        assert_eq!(from["renditions"], to["renditions"], "{title}");
        assert_eq!(to["kind"], "index", "{title}");
        for manifest in [".m3u8", ".mpd"] {
            let of = |title: &str| server.get_text(&format!("/{title}/{manifest}"));
            assert_eq!(of(&film), of(&indexed), "{title}");
        }
        let addresses = list_segment_addresses(&from);
        assert!(addresses.len() > 1, "{title}");
        for address in addresses {
            let of = |title: &str| server.get_body(&format!("/{title}/{address}"));
            assert_eq!(of(&film), of(&indexed), "{title}: {address}");
        }
    }
    assert!(titles.len() > 20, "{titles:?}");
}

/// Returns the codec of a stream, and the relative times and hashes of its packets.
fn packet_content(stream: &ProbedStream) -> (String, Vec<(i64, i64, String)>) {
    let first = stream.packets[0].dts;
    let packets = stream.packets.iter();
    let packets = packets.map(|p| (p.pts - first, p.dts - first, p.hash.clone()));
    (stream.codec.clone(), packets.collect())
}

#[test]
fn ffmpeg_plays_a_server_manifest() {
    let Some(library) = make_library() else {
        return;
    };
    let films = library.0.join("films");
    let out = library.0.join("made");
    for film in ["avc.mp4", "frag_mfra.mp4"] {
        let name = format!("my {film}");
        run_index(&[
            path_text(&films.join(film)),
            "-o",
            path_text(&out),
            "--name",
            &name,
        ])
        .unwrap();
        let server = HeadwaterServer::serve_source(&library.0);
        let source = probe_streams(path_text(&films.join(film)));
        for manifest in [".m3u8", ".mpd", "whatever.m3u8"] {
            let url = server.url(&format!("/made/my%20{film}.ism/{manifest}"));
            let played = probe_streams(&url);
            assert_eq!(played.len(), source.len(), "{url}");
            // ffmpeg skips some of the last segments of an MPD. The test therefore expects the
            // packets that ffmpeg reads from the MPD of the film itself.
            let film_url = server.url(&format!("/films/{film}/{manifest}"));
            let source = if manifest == ".mpd" {
                probe_streams(&film_url)
            } else {
                source.clone()
            };
            for stream in &source {
                let hashes =
                    |s: &ProbedStream| s.packets.iter().map(|p| p.hash.clone()).collect::<Vec<_>>();
                let same = played.iter().any(|other| hashes(other) == hashes(stream));
                assert!(same, "{url}: {}", stream.codec);
            }
            assert_eq!(
                decode_video_hashes(&url),
                decode_video_hashes(path_text(&films.join(film))),
                "{url}"
            );
        }
    }
}

#[test]
fn an_index_mp4_expands_to_the_film() {
    let Some(library) = make_library() else {
        return;
    };
    let (films, made) = (library.0.join("films"), library.0.join("made"));
    let titles = [
        "avc.mp4",
        "avc_container.mov",
        "avc_no_edits.mp4",
        "audio_late.mp4",
        "video_late.mp4",
        "several_tracks.mp4",
        "frag_unequal.mp4",
        "frag_no_base.mp4",
        "frag_sidx_audio.mp4",
        "hevc.mp4",
        "opus.mp4",
    ];
    let server = HeadwaterServer::serve_source(&library.0);
    for title in titles
        .into_iter()
        .filter(|title| films.join(title).exists())
    {
        run_index(&[path_text(&films.join(title)), "-o", path_text(&made)]).unwrap();
        let stem = title.rsplit_once('.').unwrap().0;
        let body = server.get_body(&format!("/made/{stem}-index.mp4"));
        let file = write_probe_input(&library.0, "expanded.mp4", &body);
        assert_eq!(&body[4..8], b"ftyp");
        assert_eq!(&body[28..32], b"moov", "faststart");
        let (source, expanded) = (
            probe_streams(path_text(&films.join(title))),
            probe_streams(&file),
        );
        let of = |streams: &[ProbedStream]| streams.iter().map(packet_content).collect::<Vec<_>>();
        assert_eq!(of(&source), of(&expanded), "{title}");
        if ["audio_late.mp4", "frag_unequal.mp4"].contains(&title) {
            assert_eq!(
                decode_video_hashes(path_text(&films.join(title))),
                decode_video_hashes(&file),
                "{title}"
            );
        }
    }
}

#[test]
fn an_expanded_film_has_ranges_conditions_and_head() {
    let Some(film) = fixture_path("frag_mfra.mp4") else {
        return;
    };
    let library = TempFolder::new();
    std::fs::copy(&film, library.0.join("film.mp4")).unwrap();
    run_index(&[
        path_text(&library.0.join("film.mp4")),
        "-o",
        path_text(&library.0),
    ])
    .unwrap();
    let server = HeadwaterServer::serve_source(&library.0);
    let url = "/film-index.mp4";
    let whole = server.get(url);
    let (len, etag) = (whole.body.len(), whole.header("etag").unwrap().to_owned());
    assert_eq!(whole.header("content-type"), Some("video/mp4"));
    assert!(whole.header("last-modified").is_some());
    let head = server.request("HEAD", url, &[]);
    assert_eq!(head.header("content-length"), Some(&*len.to_string()));
    assert_eq!(head.header("etag"), Some(&*etag));
    for (from, to) in [
        (0, 0),
        (0, len - 1),
        (100, 5000),
        (len / 3, len / 2),
        (len - 9, len - 1),
    ] {
        let range = format!("bytes={from}-{to}");
        let part = server.request("GET", url, &[("Range", &range), ("If-Range", &etag)]);
        assert_eq!(part.status, 206, "{range}");
        assert_eq!(part.body, whole.body[from..=to], "{range}");
        let expected = format!("bytes {from}-{to}/{len}");
        assert_eq!(part.header("content-range"), Some(&*expected));
    }
    assert_eq!(
        server
            .request("GET", url, &[("Range", &format!("bytes={len}-"))])
            .status,
        416
    );
    assert_eq!(
        server
            .request("GET", url, &[("If-None-Match", &etag)])
            .status,
        304
    );
    assert_eq!(server.get(url).header("etag"), Some(&*etag), "stable");
    // If the film is replaced and indexed again, the ETag changes.
    let other = fixture_path("short.mp4").unwrap();
    std::fs::copy(other, library.0.join("next.mp4")).unwrap();
    std::fs::rename(library.0.join("next.mp4"), library.0.join("film.mp4")).unwrap();
    run_index(&[
        path_text(&library.0.join("film.mp4")),
        "-o",
        path_text(&library.0),
    ])
    .unwrap();
    let changed = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = server.get(url);
        now.status == 200 && now.header("etag") != Some(&*etag)
    });
    assert!(changed, "a regenerated index MP4 is noticed");
}

#[test]
fn failed_indexing_reports_the_reason_and_writes_nothing() {
    let Some(film) = fixture_path("short.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    let out = folder.0.join("out");
    let bad = folder.write_file("bad.mp4", b"\0\0\0\x08ftyp");
    folder.write_file("empty/readme.txt", b"no film");
    for (args, what) in [
        (vec![path_text(&bad)], "bad.mp4"),
        (vec!["/nothing/there.mp4"], "o such file"),
        (vec![path_text(&folder.0.join("empty"))], "no film found"),
        (
            vec![path_text(&film), "--name", "../x"],
            "expected a file name",
        ),
        (vec![path_text(&film), "--base", "file:///films"], "http(s)"),
    ] {
        let args = [&args[..], &["-o", path_text(&out)]].concat();
        let printed = run_index(&args).unwrap_err();
        assert!(printed.contains(what), "{printed}");
    }
    let left = list_names(&out, |name| name.ends_with(".ism") || name.contains("part"));
    assert!(left.is_empty(), "{left:?}");
    let printed = run_index(&[path_text(&film), "-o", path_text(&out), "--json"]).unwrap();
    let made: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(made["files"].as_array().unwrap().len(), 1);
    assert!(Path::new(made["manifest"].as_str().unwrap()).exists());
}

#[test]
fn a_killed_server_leaves_only_usable_indexes_on_disk() {
    let Some(library) = make_library() else {
        return;
    };
    let films = library.0.join("films");
    let titles = list_names(&films, |name| name.ends_with(".mp4"));
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    for title in &titles {
        // Sets an old modification time, because indexes of recently changed films are not
        // persisted.
        let file = std::fs::File::options()
            .write(true)
            .open(films.join(title))
            .unwrap();
        file.set_modified(past).unwrap();
    }
    let films = path_text(&films).to_owned();
    let kept = path_text(&library.0.join("kept")).to_owned();
    let right = HeadwaterServer::serve(&[&films, "--index-cache", "off"]);
    let kinds = ["--index-cache", "memory+disk", "--index-cache-dir", &kept];
    let args = [&[films.as_str()][..], &kinds].concat();
    let fetch_mpd =
        |server: &HeadwaterServer, title: &str| server.get_text(&format!("/{title}/.mpd"));
    for round in 0..6 {
        let server = HeadwaterServer::serve(&args);
        let addr = server.addr;
        // Requests many titles at once, and kills the server before it has indexed all titles.
        let pending: Vec<_> = titles
            .iter()
            .map(|title| {
                let head = format!("GET /{title}/.mpd HTTP/1.1\r\nHost: x\r\n\r\n");
                let mut stream = std::net::TcpStream::connect(addr).unwrap();
                std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
                stream
            })
            .collect();
        fetch_mpd(&server, &titles[round * 5]);
        drop(server);
        drop(pending);
    }
    let server = HeadwaterServer::serve(&args);
    for title in &titles {
        assert_eq!(
            fetch_mpd(&server, title),
            fetch_mpd(&right, title),
            "{title}"
        );
    }
    let metrics = server.get_text("/metrics");
    let hits = metrics
        .lines()
        .find_map(|line| line.strip_prefix("headwater_index_disk_requests_total{result=\"hit\"} "));
    assert!(
        hits.unwrap().parse::<u32>().unwrap() >= 1,
        "an index was persisted"
    );
}

#[test]
fn replaced_media_of_the_same_length_is_noticed() {
    let Some(source) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    let mut film = std::fs::read(source).unwrap();
    let at = folder.write_file("film.mp4", &film);
    run_index(&[path_text(&at), "-o", path_text(&folder.0)]).unwrap();
    let server = HeadwaterServer::serve(&[path_text(&folder.0), "--recheck", "0s"]);
    for title in ["film-index.mp4", "film.ism"] {
        server.get_text(&format!("/{title}/.m3u8"));
    }
    let len = film.len();
    film[len / 10..].iter_mut().for_each(|byte| *byte ^= 0xff);
    folder.write_file("film.mp4", &film);
    for title in ["film-index.mp4", "film.ism"] {
        let response = server.get(&format!("/{title}/.m3u8"));
        assert_eq!(response.status, 415, "{}", response.error_reason());
        assert!(
            response.error_reason().contains("index it again"),
            "{}",
            response.error_reason()
        );
    }
}
