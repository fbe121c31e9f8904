//! `headwater index`: what is served from index MP4s and server manifests is, byte for byte, what
//! is served from the films themselves; and an index MP4 asked for as a file is the film.

use crate::ffmpeg::{Stream, keep, pictures, streams};
use crate::support::{Folder, Server, fixture, fixtures};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs `headwater index`; what it printed, or what it complained of.
fn index(args: &[&str]) -> Result<String, String> {
    let said = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .arg("index")
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    match said.status.code() {
        Some(0) => Ok(text(said.stdout)),
        Some(1) => Err(text(said.stderr)),
        other => panic!("{args:?}: {other:?}"),
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A library with the fixtures in `films`, by links, and an empty folder `made`.
fn library() -> Option<Folder> {
    let folder = Folder::new();
    let films = fixtures()?.join("library");
    copy(&films, &folder.0.join("films"));
    std::fs::create_dir(folder.0.join("made")).unwrap();
    Some(folder)
}

/// Copies and no links: those of another test change the time (ctime) that tells a file's states apart.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn describe(server: &Server, title: &str) -> Value {
    serde_json::from_str(&server.text(&format!("/{title}/.json"))).unwrap()
}

/// Every init segment and media segment of a title, by address.
fn addresses(title: &Value) -> Vec<String> {
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

fn names(folder: &Path, keep: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| keep(name)).collect();
    names.sort();
    names
}

#[test]
fn every_film_is_served_from_its_index_byte_for_byte() {
    let Some(library) = library() else { return };
    let (films, made) = (library.0.join("films"), library.0.join("made"));
    let titles = names(&films, |name| {
        ["mp4", "mov"].iter().any(|end| name.ends_with(end))
            || ["ladder", "frag_ladder"].contains(&name)
    });
    for (n, title) in titles.iter().enumerate() {
        let out = made.join(n.to_string());
        index(&[
            path(&films.join(title)),
            "-o",
            path(&out),
            "--name",
            "title",
        ])
        .unwrap();
    }
    let server = Server::of(&library.0);
    for (n, title) in titles.iter().enumerate() {
        let (film, indexed) = (format!("films/{title}"), format!("made/{n}/title.ism"));
        let (from, to) = (describe(&server, &film), describe(&server, &indexed));
        assert_eq!(from["set"], to["set"], "{title}");
        assert_eq!(from["renditions"], to["renditions"], "{title}");
        assert_eq!(to["kind"], "index", "{title}");
        for manifest in [".m3u8", ".mpd"] {
            let of = |title: &str| server.text(&format!("/{title}/{manifest}"));
            assert_eq!(of(&film), of(&indexed), "{title}");
        }
        let addresses = addresses(&from);
        assert!(addresses.len() > 1, "{title}");
        for address in addresses {
            let of = |title: &str| server.body(&format!("/{title}/{address}"));
            assert_eq!(of(&film), of(&indexed), "{title}: {address}");
        }
    }
    assert!(titles.len() > 20, "{titles:?}");
}

/// What players see of a stream, wherever its packets lie.
fn seen(stream: &Stream) -> (String, Vec<(i64, i64, String)>) {
    let first = stream.packets[0].dts;
    let packets = stream.packets.iter();
    let packets = packets.map(|p| (p.pts - first, p.dts - first, p.hash.clone()));
    (stream.codec.clone(), packets.collect())
}

#[test]
fn ffmpeg_plays_a_server_manifest() {
    let Some(library) = library() else { return };
    let films = library.0.join("films");
    let out = library.0.join("made");
    for film in ["avc.mp4", "frag_mfra.mp4"] {
        let name = format!("my {film}");
        index(&[path(&films.join(film)), "-o", path(&out), "--name", &name]).unwrap();
        let server = Server::of(&library.0);
        let source = streams(path(&films.join(film)));
        for manifest in [".m3u8", ".mpd", "whatever.m3u8"] {
            let url = server.url(&format!("/made/my%20{film}.ism/{manifest}"));
            let played = streams(&url);
            assert_eq!(played.len(), source.len(), "{url}");
            // FFmpeg does not read all of an MPD's last segments: it must read what it does of the
            // film's own.
            let film_url = server.url(&format!("/films/{film}/{manifest}"));
            let source = if manifest == ".mpd" {
                streams(&film_url)
            } else {
                source.clone()
            };
            for stream in &source {
                let hashes =
                    |s: &Stream| s.packets.iter().map(|p| p.hash.clone()).collect::<Vec<_>>();
                let same = played.iter().any(|other| hashes(other) == hashes(stream));
                assert!(same, "{url}: {}", stream.codec);
            }
            assert_eq!(pictures(&url), pictures(path(&films.join(film))), "{url}");
        }
    }
}

#[test]
fn an_index_mp4_expands_to_the_film() {
    let Some(library) = library() else { return };
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
    let server = Server::of(&library.0);
    for title in titles
        .into_iter()
        .filter(|title| films.join(title).exists())
    {
        index(&[path(&films.join(title)), "-o", path(&made)]).unwrap();
        let stem = title.rsplit_once('.').unwrap().0;
        let body = server.body(&format!("/made/{stem}-index.mp4"));
        let file = keep(&library.0, "expanded.mp4", &body);
        assert_eq!(&body[4..8], b"ftyp");
        assert_eq!(&body[28..32], b"moov", "faststart");
        let (source, expanded) = (streams(path(&films.join(title))), streams(&file));
        let of = |streams: &[Stream]| streams.iter().map(seen).collect::<Vec<_>>();
        assert_eq!(of(&source), of(&expanded), "{title}");
        if ["audio_late.mp4", "frag_unequal.mp4"].contains(&title) {
            assert_eq!(
                pictures(path(&films.join(title))),
                pictures(&file),
                "{title}"
            );
        }
    }
}

#[test]
fn an_expanded_film_has_ranges_conditions_and_head() {
    let Some(film) = fixture("frag_mfra.mp4") else {
        return;
    };
    let library = Folder::new();
    std::fs::copy(&film, library.0.join("film.mp4")).unwrap();
    index(&[path(&library.0.join("film.mp4")), "-o", path(&library.0)]).unwrap();
    let server = Server::of(&library.0);
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
        let told = format!("bytes {from}-{to}/{len}");
        assert_eq!(part.header("content-range"), Some(&*told));
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
    // The index MP4 of another film is another file.
    let other = fixture("short.mp4").unwrap();
    std::fs::copy(other, library.0.join("next.mp4")).unwrap();
    std::fs::rename(library.0.join("next.mp4"), library.0.join("film.mp4")).unwrap();
    index(&[path(&library.0.join("film.mp4")), "-o", path(&library.0)]).unwrap();
    let changed = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = server.get(url);
        now.status == 200 && now.header("etag") != Some(&*etag)
    });
    assert!(changed, "an index MP4 that was made anew is noticed");
}

#[test]
fn what_cannot_be_indexed_says_why_and_leaves_nothing() {
    let Some(film) = fixture("short.mp4") else {
        return;
    };
    let folder = Folder::new();
    let out = folder.0.join("out");
    let bad = folder.put("bad.mp4", b"\0\0\0\x08ftyp");
    folder.put("empty/readme.txt", b"no film");
    for (args, what) in [
        (vec![path(&bad)], "bad.mp4"),
        (vec!["/nothing/there.mp4"], "No such file"),
        (vec![path(&folder.0.join("empty"))], "no film in it"),
        (
            vec![path(&film), "--name", "../x"],
            "a file's name is wanted",
        ),
        (vec![path(&film), "--base", "file:///films"], "http(s)"),
    ] {
        let args = [&args[..], &["-o", path(&out)]].concat();
        let said = index(&args).unwrap_err();
        assert!(said.contains(what), "{said}");
    }
    let left = names(&out, |name| name.ends_with(".ism") || name.contains("part"));
    assert!(left.is_empty(), "{left:?}");
    let said = index(&[path(&film), "-o", path(&out), "--json"]).unwrap();
    let made: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(made["files"].as_array().unwrap().len(), 1);
    assert!(Path::new(made["manifest"].as_str().unwrap()).exists());
}

#[test]
fn killed_at_any_moment_what_is_kept_on_disk_is_right_or_ignored() {
    let Some(library) = library() else { return };
    let films = library.0.join("films");
    let titles = names(&films, |name| name.ends_with(".mp4"));
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    for title in &titles {
        // The fixtures may have been made a moment ago; indexes of such films are not kept.
        let file = std::fs::File::options()
            .write(true)
            .open(films.join(title))
            .unwrap();
        file.set_modified(past).unwrap();
    }
    let films = path(&films).to_owned();
    let kept = path(&library.0.join("kept")).to_owned();
    let right = Server::start(&[&films, "--index-cache", "off"]);
    let kinds = ["--index-cache", "memory+disk", "--index-cache-dir", &kept];
    let args = [&[films.as_str()][..], &kinds].concat();
    let ask = |server: &Server, title: &str| server.text(&format!("/{title}/.mpd"));
    for round in 0..6 {
        let server = Server::start(&args);
        let addr = server.addr;
        // Many titles at once, and an end (SIGKILL) somewhere among them.
        let asking: Vec<_> = titles
            .iter()
            .map(|title| {
                let head = format!("GET /{title}/.mpd HTTP/1.1\r\nHost: x\r\n\r\n");
                let mut stream = std::net::TcpStream::connect(addr).unwrap();
                std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
                stream
            })
            .collect();
        ask(&server, &titles[round * 5]);
        drop(server);
        drop(asking);
    }
    let server = Server::start(&args);
    for title in &titles {
        assert_eq!(ask(&server, title), ask(&right, title), "{title}");
    }
    let metrics = server.text("/metrics");
    let hits = metrics
        .lines()
        .find_map(|line| line.strip_prefix("headwater_index_disk_requests_total{result=\"hit\"} "));
    assert!(
        hits.unwrap().parse::<u32>().unwrap() >= 1,
        "something was kept"
    );
}

#[test]
fn other_media_of_the_same_length_is_noticed() {
    let Some(source) = fixture("avc.mp4") else {
        return;
    };
    let folder = Folder::new();
    let mut film = std::fs::read(source).unwrap();
    let at = folder.put("film.mp4", &film);
    index(&[path(&at), "-o", path(&folder.0)]).unwrap();
    let server = Server::start(&[path(&folder.0), "--recheck", "0s"]);
    for title in ["film-index.mp4", "film.ism"] {
        server.text(&format!("/{title}/.m3u8"));
    }
    let len = film.len();
    film[len / 10..].iter_mut().for_each(|byte| *byte ^= 0xff);
    folder.put("film.mp4", &film);
    for title in ["film-index.mp4", "film.ism"] {
        let answer = server.get(&format!("/{title}/.m3u8"));
        assert_eq!(answer.status, 415, "{}", answer.reason());
        assert!(
            answer.reason().contains("index it again"),
            "{}",
            answer.reason()
        );
    }
}
