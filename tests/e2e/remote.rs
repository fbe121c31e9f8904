//! Films of an HTTP server (another headwater, which serves files as they are, with ranges and
//! conditions) are served as those of a folder are, for one request a segment.

use crate::ffmpeg;
use crate::nginx::Nginx;
use crate::support::{Folder, Server, fixture, fixtures};
use std::path::{Path, PathBuf};

/// A storage of the fixtures, and an origin whose library it is.
fn pair(library: &Path, more: &[&str]) -> (Server, Server) {
    let storage = Server::start(&[library.to_str().unwrap()]);
    let url = storage.url("/");
    let args = [&[url.as_str(), "--segment", "2s"][..], more].concat();
    let origin = Server::start(&args);
    (storage, origin)
}

pub fn metric(server: &Server, name: &str) -> u64 {
    let text = server.text("/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

pub fn requests(server: &Server, reason: &str) -> u64 {
    let name = format!("headwater_storage_requests_total{{reason=\"{reason}\"}}");
    metric(server, &name)
}

/// Every segment that a media playlist lists, resolved.
pub fn segments(server: &Server, playlist: &str) -> Vec<String> {
    let folder = &playlist[..playlist.rfind('/').unwrap()];
    let text = server.text(playlist);
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| format!("{folder}/{line}")).collect()
}

pub fn playlists(server: &Server, title: &str) -> Vec<String> {
    let text = server.text(&format!("{title}/.m3u8"));
    let quoted = text
        .lines()
        .filter_map(|line| line.split("URI=\"").nth(1)?.split('"').next());
    let plain = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let all = quoted
        .chain(plain)
        .filter(|line| !line.contains("keyframes"));
    all.map(|line| format!("{title}/{line}")).collect()
}

#[test]
fn pictures_and_packets_are_those_of_the_folder() {
    for name in [
        "avc.mp4",
        "avc_faststart.mp4",
        "frag_cmaf.mp4",
        "several_tracks.mp4",
    ] {
        let Some(path) = fixture(name) else { continue };
        let local = Server::of(path.parent().unwrap());
        let (_storage, remote) = pair(path.parent().unwrap(), &[]);
        for manifest in [".m3u8", ".mpd"] {
            let there = ffmpeg::pictures(&local.url(&format!("/{name}/{manifest}")));
            let here = ffmpeg::pictures(&remote.url(&format!("/{name}/{manifest}")));
            assert!(!here.is_empty() && here == there, "{name} {manifest}");
        }
        let plain = format!("/{name}");
        assert_eq!(remote.body(&plain), local.body(&plain), "{name} as it is");
        let part = |server: &Server| {
            server
                .request("GET", &plain, &[("Range", "bytes=77-9999")])
                .body
        };
        assert_eq!(part(&remote), part(&local), "a part of {name}");
    }
}

#[test]
fn a_cold_segment_is_one_request_and_a_warm_one_none() {
    let Some(path) = fixture("avc.mp4") else {
        return;
    };
    let (_storage, origin) = pair(path.parent().unwrap(), &[]);
    let lists = playlists(&origin, "/avc.mp4");
    assert!(lists.len() >= 2, "pictures and sound: {lists:?}");
    // One request that opens it and brings the first 64 KiB, one for the moov at its end.
    assert_eq!(
        (requests(&origin, "index"), requests(&origin, "look")),
        (2, 0)
    );
    let all: Vec<_> = lists.iter().map(|list| segments(&origin, list)).collect();
    let slots = all.iter().map(Vec::len).max().unwrap();
    for n in 0..slots {
        for list in &all {
            if let Some(segment) = list.get(n) {
                origin.body(segment);
            }
        }
        let asked = requests(&origin, "segment");
        assert!(
            asked <= n as u64 + 1,
            "{asked} requests for {} segments of each track",
            n + 1
        );
    }
    let cold = requests(&origin, "segment");
    all.iter()
        .flatten()
        .for_each(|segment| drop(origin.body(segment)));
    assert_eq!(requests(&origin, "segment"), cold, "none while warm");
    let read = metric(&origin, "headwater_storage_bytes_total{reason=\"segment\"}");
    let len = std::fs::metadata(&path).unwrap().len();
    assert!(read <= len, "{read} bytes read of a film of {len}");
    assert_eq!(
        metric(&origin, "headwater_storage_connections_opened_total"),
        1
    );
}

#[test]
fn reading_ahead_brings_the_next_segment_before_it_is_asked_for() {
    let Some(path) = fixture("avc.mp4") else {
        return;
    };
    let (_storage, origin) = pair(path.parent().unwrap(), &["--storage-read-ahead", "on"]);
    let list = playlists(&origin, "/avc.mp4").remove(0);
    let segments = segments(&origin, &list);
    for (n, segment) in segments.iter().enumerate() {
        origin.body(segment);
        let ahead = (n + 1).min(segments.len() - 1) as u64;
        // It is asked for by a task of its own, a moment later.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while requests(&origin, "ahead") < ahead && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let counted = (requests(&origin, "segment"), requests(&origin, "ahead"));
        assert_eq!(counted, (1, ahead), "after segment {n}");
    }
}

#[test]
fn faststart_films_are_opened_with_one_request() {
    let Some(path) = fixture("avc_faststart.mp4") else {
        return;
    };
    let (_storage, origin) = pair(path.parent().unwrap(), &[]);
    origin.text("/avc_faststart.mp4/.mpd");
    assert_eq!(
        (requests(&origin, "index"), requests(&origin, "look")),
        (1, 0)
    );
}

/// A folder with a film, and an index MP4 of it as `headwater index` makes it.
fn indexed(film: &Path) -> Folder {
    let folder = Folder::new();
    let film = folder.put("film.mp4", &std::fs::read(film).unwrap());
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["index", film.to_str().unwrap(), "-o"])
        .arg(&folder.0)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    folder
}

/// The folder as plain files: another headwater would serve an index MP4 as the film it stands for.
fn plain(folder: &Folder) -> Option<(Nginx, Server)> {
    let own = folder.0.join(".nginx");
    // There already, where it is started a second time.
    let _ = std::fs::create_dir(&own);
    let nginx = Nginx::of(&own, &folder.0, "", "")?;
    let url = nginx.url("");
    let args = [&url, "--segment", "2s", "--storage-memory", "0B"];
    Some((nginx, Server::start(&args)))
}

#[test]
fn with_an_index_mp4_a_cold_segment_is_two_requests() {
    let Some(path) = fixture("avc.mp4") else {
        return;
    };
    let folder = indexed(&path);
    let counted = |server: &Server| {
        ["look", "manifest", "index", "segment"].map(|reason| requests(server, reason))
    };
    for (title, manifests) in [("/film-index.mp4", 0), ("/film.ism", 1)] {
        let Some((_nginx, origin)) = plain(&folder) else {
            return;
        };
        let list = playlists(&origin, title).remove(0);
        let segment = segments(&origin, &list).remove(0);
        assert_eq!(counted(&origin), [0, manifests, 1, 0], "{title}");
        let body = origin.body(&segment);
        assert_eq!(counted(&origin), [0, manifests, 1, 1], "{title}");
        let local = Server::of(&folder.0);
        assert!(body == local.body(&segment), "{segment}");
    }
}

#[test]
fn media_that_is_not_as_its_index_says_is_noticed_when_it_is_read() {
    let Some(path) = fixture("avc.mp4") else {
        return;
    };
    let folder = indexed(&path);
    let right = std::fs::read(&path).unwrap();
    let title = "/film-index.mp4";
    for wrong in [
        &right[..right.len() - 1],
        &right[..10],
        &[&right[..], &[0]].concat(),
    ] {
        folder.put("film.mp4", wrong);
        let Some((_nginx, origin)) = plain(&folder) else {
            return;
        };
        let list = playlists(&origin, title).remove(0);
        for segment in segments(&origin, &list) {
            let answer = origin.get(&segment);
            assert_eq!(answer.status, 415, "{}", answer.reason());
            assert!(
                answer.reason().contains("index it again"),
                "{}",
                answer.reason()
            );
        }
        // Once it is right again, nothing is left of it.
        folder.put("film.mp4", &right);
        let first = &segments(&origin, &playlists(&origin, title)[0])[0];
        let answers = (0..200).map(|_| origin.get(first).status);
        assert!(answers.into_iter().any(|status| status == 200));
    }
    std::fs::remove_file(folder.0.join("film.mp4")).unwrap();
    let Some((_nginx, origin)) = plain(&folder) else {
        return;
    };
    let list = playlists(&origin, title).remove(0);
    let first = segments(&origin, &list).remove(0);
    assert_eq!(origin.get(&first).status, 404);
}

/// Segments of a film beside those of the same film in a folder: their names differ by what tells
/// states of it apart.
fn remote_and_local(here: &[String], local: &Server, title: &str) -> Vec<(String, String)> {
    let list = playlists(local, title).remove(0);
    here.iter().cloned().zip(segments(local, &list)).collect()
}

/// A film of noise, so that each of its seconds is some 250 KB.
fn noise(folder: &Folder, seconds: u32, more: &[&str]) -> Option<PathBuf> {
    let film = folder.0.join("film.mp4");
    let source = format!("nullsrc=s=320x180:r=10:d={seconds},geq=random(1)*255:128:128");
    let coded = [
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-qp",
        "20",
        "-g",
        "10",
    ];
    let made = std::process::Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", &source])
        .args(coded)
        .args(more)
        .arg(&film)
        .status();
    made.is_ok_and(|status| status.success()).then_some(film)
}

#[test]
fn a_segment_of_which_nothing_is_kept_passes_uncopied_and_is_the_same() {
    let folder = Folder::new();
    let Some(_film) = noise(&folder, 8, &[]) else {
        return;
    };
    let kept = ["--storage-memory", "0B", "--segment-memory", "0B"];
    let (_storage, origin) = pair(&folder.0, &kept);
    let local = Server::of(&folder.0);
    let list = playlists(&origin, "/film.mp4").remove(0);
    let all = remote_and_local(&segments(&origin, &list), &local, "/film.mp4");
    assert_eq!(all.len(), 4);
    let mut bytes = 0;
    for (here, there) in &all {
        let right = local.body(there);
        assert!(origin.body(here) == right, "{here}");
        let part = origin.request("GET", here, &[("Range", "bytes=1000-299999")]);
        assert_eq!(part.status, 206);
        assert!(part.body == right[1000..300_000], "{here}");
        bytes += right.len() as u64 + 299_000;
    }
    let piped = metric(&origin, "headwater_storage_piped_bytes_total");
    assert!(piped > bytes / 2, "{piped} of {bytes}");
}

#[test]
fn fragments_without_an_index_are_read_in_few_requests() {
    let folder = Folder::new();
    let fragmented = "+frag_keyframe+empty_moov+default_base_moof+skip_trailer";
    let Some(film) = noise(&folder, 120, &["-movflags", fragmented]) else {
        return;
    };
    let bytes = std::fs::metadata(&film).unwrap().len();
    assert!(bytes / 120 > 200_000, "fragments of {} bytes", bytes / 120);
    let (_storage, origin) = pair(&folder.0, &[]);
    let list = playlists(&origin, "/film.mp4").remove(0);
    let segments = segments(&origin, &list);
    assert_eq!(segments.len(), 60);
    // Some single steps, and the rest as a whole; 120 if each fragment were a request.
    let asked = requests(&origin, "index");
    assert!(asked <= 20, "{asked}");
    let local = Server::of(&folder.0);
    let same = remote_and_local(&segments, &local, "/film.mp4");
    for (here, there) in [&same[0], &same[31], &same[59]] {
        assert!(origin.body(here) == local.body(there), "{here}");
    }
}

#[test]
fn without_caches_each_request_reads_the_index_anew() {
    let Some(path) = fixture("avc.mp4") else {
        return;
    };
    let more = ["--index-cache", "off", "--storage-memory", "0B"];
    let more = [&more[..], &["--storage-connections", "fresh"]].concat();
    let (_storage, origin) = pair(path.parent().unwrap(), &more);
    let list = playlists(&origin, "/avc.mp4").remove(0);
    let segments = segments(&origin, &list);
    let before = requests(&origin, "index");
    segments
        .iter()
        .for_each(|segment| drop(origin.body(segment)));
    assert_eq!(
        requests(&origin, "index") - before,
        2 * segments.len() as u64
    );
    let opened = metric(&origin, "headwater_storage_connections_opened_total");
    let all: u64 = ["index", "segment", "look", "plain", "manifest"]
        .iter()
        .map(|reason| requests(&origin, reason))
        .sum();
    assert_eq!(opened, all, "a connection for every request");
}

#[test]
fn a_film_that_is_replaced_is_indexed_anew() {
    let (Some(old), Some(new)) = (fixture("avc.mp4"), fixture("avc_2997.mp4")) else {
        return;
    };
    let folder = Folder::new();
    let film = folder.put("film.mp4", &std::fs::read(old).unwrap());
    let more = ["--storage-memory", "0B", "--segment-memory", "0B"];
    let storage = Server::start(&[folder.0.to_str().unwrap(), "--recheck", "0s"]);
    let url = storage.url("/");
    let origin = Server::start(&[&[url.as_str(), "--segment", "2s"][..], &more].concat());
    let list = playlists(&origin, "/film.mp4").remove(0);
    let segment = segments(&origin, &list).remove(1);
    assert_eq!(origin.get(&segment).status, 200);
    let next = folder.put("next", &std::fs::read(&new).unwrap());
    std::fs::rename(next, film).unwrap();
    // Refused while it changes, then gone; never old tables over new bytes.
    let first = origin.get(&segment);
    assert!([503, 410].contains(&first.status), "{}", first.reason());
    let then = origin.get(&segment);
    assert_eq!(then.status, 410, "{}", then.reason());
    let same = Server::of(new.parent().unwrap());
    let here = ffmpeg::pictures(&origin.url("/film.mp4/.m3u8"));
    assert_eq!(here, ffmpeg::pictures(&same.url("/avc_2997.mp4/.m3u8")));
}

#[test]
fn what_is_wrong_with_the_storage_has_its_status() {
    let Some(root) = fixtures() else { return };
    let (storage, origin) = pair(&root.join("library"), &["--storage-retries", "1"]);
    assert_eq!(origin.get("/none.mp4/.m3u8").status, 404);
    assert_eq!(origin.get("/none.mp4").status, 404);
    drop(storage);
    let answer = origin.get("/avc.mp4/.m3u8");
    assert_eq!(answer.status, 502, "{}", answer.reason());
    assert!(answer.reason().contains("no connection to the storage"));
}
