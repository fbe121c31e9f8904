//! Tests films on an HTTP server. These films are served like films in a folder, with one storage
//! request per segment. The storage is a second `headwater serve`, which supports ranges and
//! conditional requests.

use crate::ffmpeg;
use crate::nginx::Nginx;
use crate::support::{HeadwaterServer, TempFolder, fixture_path, fixtures_folder};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Starts a storage server for the folder `library`, and an origin that uses the storage as its
/// library.
fn start_storage_and_origin(library: &Path, more: &[&str]) -> (HeadwaterServer, HeadwaterServer) {
    let storage = HeadwaterServer::serve(&[library.to_str().unwrap()]);
    let url = storage.url("/");
    let args = [&[url.as_str(), "--segment", "2s"][..], more].concat();
    let origin = HeadwaterServer::serve(&args);
    (storage, origin)
}

pub fn read_metric(server: &HeadwaterServer, name: &str) -> u64 {
    let text = server.get_text("/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

pub fn count_requests(server: &HeadwaterServer, reason: &str) -> u64 {
    let name = format!("headwater_storage_requests_total{{reason=\"{reason}\"}}");
    read_metric(server, &name)
}

/// Returns the targets of all segments in a media playlist.
pub fn list_segments(server: &HeadwaterServer, playlist: &str) -> Vec<String> {
    let folder = &playlist[..playlist.rfind('/').unwrap()];
    let text = server.get_text(playlist);
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| format!("{folder}/{line}")).collect()
}

pub fn list_playlists(server: &HeadwaterServer, title: &str) -> Vec<String> {
    let text = server.get_text(&format!("{title}/.m3u8"));
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

/// Returns the status and the text of the readiness check.
fn readiness(server: &HeadwaterServer) -> (u16, String) {
    let response = server.get("/readyz");
    (response.status, response.error_reason())
}

#[test]
fn an_unreachable_http_library_is_not_ready_until_its_server_responds() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let origin = HeadwaterServer::serve(&[&format!("http://{address}/films")]);
    let (status, reason) = readiness(&origin);
    assert_eq!(status, 503, "{reason}");
    assert!(reason.contains("cannot connect to the storage"), "{reason}");
    assert!(reason.contains("; check "), "{reason}");
    // The folder does not exist on the server, but any response proves that the server is
    // reachable.
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let until = Instant::now() + Duration::from_secs(60);
    while readiness(&origin).0 != 200 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(readiness(&origin).0, 200);
}

#[test]
fn remote_films_decode_like_local_ones() {
    for name in [
        "avc.mp4",
        "avc_faststart.mp4",
        "frag_cmaf.mp4",
        "several_tracks.mp4",
    ] {
        let Some(path) = fixture_path(name) else {
            continue;
        };
        let local = HeadwaterServer::serve_source(path.parent().unwrap());
        let (_storage, remote) = start_storage_and_origin(path.parent().unwrap(), &[]);
        for manifest in [".m3u8", ".mpd"] {
            let there = ffmpeg::decode_video_hashes(&local.url(&format!("/{name}/{manifest}")));
            let here = ffmpeg::decode_video_hashes(&remote.url(&format!("/{name}/{manifest}")));
            assert!(!here.is_empty() && here == there, "{name} {manifest}");
        }
        let plain = format!("/{name}");
        assert_eq!(
            remote.get_body(&plain),
            local.get_body(&plain),
            "{name} as it is"
        );
        let part = |server: &HeadwaterServer| {
            server
                .request("GET", &plain, &[("Range", "bytes=77-9999")])
                .body
        };
        assert_eq!(part(&remote), part(&local), "a part of {name}");
    }
}

#[test]
fn a_cold_segment_costs_one_request_and_a_warm_one_none() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let (_storage, origin) = start_storage_and_origin(path.parent().unwrap(), &[]);
    let lists = list_playlists(&origin, "/avc.mp4");
    assert!(lists.len() >= 2, "video and audio: {lists:?}");
    // One request opens the film and reads the first 64 KiB. The other request reads the moov box
    // at the end of the film.
    assert_eq!(
        (
            count_requests(&origin, "index"),
            count_requests(&origin, "look")
        ),
        (2, 0)
    );
    let all: Vec<_> = lists
        .iter()
        .map(|list| list_segments(&origin, list))
        .collect();
    let slots = all.iter().map(Vec::len).max().unwrap();
    for n in 0..slots {
        for list in &all {
            if let Some(segment) = list.get(n) {
                origin.get_body(segment);
            }
        }
        let request_count = count_requests(&origin, "segment");
        assert!(
            request_count <= n as u64 + 1,
            "{request_count} requests for {} segments of each track",
            n + 1
        );
    }
    let cold = count_requests(&origin, "segment");
    all.iter()
        .flatten()
        .for_each(|segment| drop(origin.get_body(segment)));
    assert_eq!(count_requests(&origin, "segment"), cold, "none while warm");
    let read = read_metric(&origin, "headwater_storage_bytes_total{reason=\"segment\"}");
    let len = std::fs::metadata(&path).unwrap().len();
    assert!(read <= len, "{read} bytes read of a film of {len}");
    assert_eq!(
        read_metric(&origin, "headwater_storage_connections_opened_total"),
        1
    );
}

#[test]
fn read_ahead_fetches_the_next_segment_before_its_request() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let (_storage, origin) =
        start_storage_and_origin(path.parent().unwrap(), &["--storage-read-ahead", "on"]);
    let list = list_playlists(&origin, "/avc.mp4").remove(0);
    let segments = list_segments(&origin, &list);
    for (n, segment) in segments.iter().enumerate() {
        origin.get_body(segment);
        let ahead = (n + 1).min(segments.len() - 1) as u64;
        // A background task requests the next segment shortly afterwards.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while count_requests(&origin, "ahead") < ahead && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let counted = (
            count_requests(&origin, "segment"),
            count_requests(&origin, "ahead"),
        );
        assert_eq!(counted, (1, ahead), "after segment {n}");
    }
}

#[test]
fn faststart_films_are_opened_with_one_request() {
    let Some(path) = fixture_path("avc_faststart.mp4") else {
        return;
    };
    let (_storage, origin) = start_storage_and_origin(path.parent().unwrap(), &[]);
    origin.get_text("/avc_faststart.mp4/.mpd");
    assert_eq!(
        (
            count_requests(&origin, "index"),
            count_requests(&origin, "look")
        ),
        (1, 0)
    );
}

/// Makes a folder with a film and the index MP4 that `headwater index` writes for it.
fn write_index(film: &Path) -> TempFolder {
    let folder = TempFolder::new();
    let film = folder.write_file("film.mp4", &std::fs::read(film).unwrap());
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["index", film.to_str().unwrap(), "-o"])
        .arg(&folder.0)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    folder
}

/// Serves the folder with nginx, because headwater would expand an index MP4 to its film.
fn serve_with_nginx(folder: &TempFolder) -> Option<(Nginx, HeadwaterServer)> {
    let own = folder.0.join(".nginx");
    // Ignores an error, because the folder already exists when nginx starts a second time.
    let _ = std::fs::create_dir(&own);
    let nginx = Nginx::of(&own, &folder.0, "", "")?;
    let url = nginx.url("");
    let args = [&url, "--segment", "2s", "--storage-memory", "0B"];
    Some((nginx, HeadwaterServer::serve(&args)))
}

#[test]
fn a_cold_segment_of_an_index_mp4_costs_two_requests() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = write_index(&path);
    let counted = |server: &HeadwaterServer| {
        ["look", "manifest", "index", "segment"].map(|reason| count_requests(server, reason))
    };
    for (title, manifests) in [("/film-index.mp4", 0), ("/film.ism", 1)] {
        let Some((_nginx, origin)) = serve_with_nginx(&folder) else {
            return;
        };
        let list = list_playlists(&origin, title).remove(0);
        let segment = list_segments(&origin, &list).remove(0);
        assert_eq!(counted(&origin), [0, manifests, 1, 0], "{title}");
        let body = origin.get_body(&segment);
        assert_eq!(counted(&origin), [0, manifests, 1, 1], "{title}");
        let local = HeadwaterServer::serve_source(&folder.0);
        assert!(body == local.get_body(&segment), "{segment}");
    }
}

#[test]
fn media_that_contradicts_its_index_is_refused_on_read() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = write_index(&path);
    let right = std::fs::read(&path).unwrap();
    let title = "/film-index.mp4";
    for wrong in [
        &right[..right.len() - 1],
        &right[..10],
        &[&right[..], &[0]].concat(),
    ] {
        folder.write_file("film.mp4", wrong);
        let Some((_nginx, origin)) = serve_with_nginx(&folder) else {
            return;
        };
        let list = list_playlists(&origin, title).remove(0);
        for segment in list_segments(&origin, &list) {
            let response = origin.get(&segment);
            assert_eq!(response.status, 415, "{}", response.error_reason());
            assert!(
                response.error_reason().contains("index it again"),
                "{}",
                response.error_reason()
            );
        }
        // After the media is restored, the title is served again.
        folder.write_file("film.mp4", &right);
        let first = &list_segments(&origin, &list_playlists(&origin, title)[0])[0];
        let responses = (0..200).map(|_| origin.get(first).status);
        assert!(responses.into_iter().any(|status| status == 200));
    }
    std::fs::remove_file(folder.0.join("film.mp4")).unwrap();
    let Some((_nginx, origin)) = serve_with_nginx(&folder) else {
        return;
    };
    let list = list_playlists(&origin, title).remove(0);
    let first = list_segments(&origin, &list).remove(0);
    assert_eq!(origin.get(&first).status, 404);
}

/// Pairs the segments of a remote film with the segments of the same film in a folder. The two
/// names of a pair differ only in the version of the film.
fn pair_with_local_segments(
    here: &[String],
    local: &HeadwaterServer,
    title: &str,
) -> Vec<(String, String)> {
    let list = list_playlists(local, title).remove(0);
    here.iter()
        .cloned()
        .zip(list_segments(local, &list))
        .collect()
}

/// Makes a film of noise with about 250 KB per second.
fn make_noise_film(folder: &TempFolder, seconds: u32, more: &[&str]) -> Option<PathBuf> {
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
fn an_uncached_segment_is_piped_without_a_copy() {
    let folder = TempFolder::new();
    let Some(_film) = make_noise_film(&folder, 8, &[]) else {
        return;
    };
    let kept = ["--storage-memory", "0B", "--segment-memory", "0B"];
    let (_storage, origin) = start_storage_and_origin(&folder.0, &kept);
    let local = HeadwaterServer::serve_source(&folder.0);
    let list = list_playlists(&origin, "/film.mp4").remove(0);
    let all = pair_with_local_segments(&list_segments(&origin, &list), &local, "/film.mp4");
    assert_eq!(all.len(), 4);
    let mut bytes = 0;
    for (here, there) in &all {
        let right = local.get_body(there);
        assert!(origin.get_body(here) == right, "{here}");
        let part = origin.request("GET", here, &[("Range", "bytes=1000-299999")]);
        assert_eq!(part.status, 206);
        assert!(part.body == right[1000..300_000], "{here}");
        bytes += right.len() as u64 + 299_000;
    }
    let piped = read_metric(&origin, "headwater_storage_piped_bytes_total");
    assert!(piped > bytes / 2, "{piped} of {bytes}");
}

#[test]
fn fragments_without_an_index_are_read_in_few_requests() {
    let folder = TempFolder::new();
    let fragmented = "+frag_keyframe+empty_moov+default_base_moof+skip_trailer";
    let Some(film) = make_noise_film(&folder, 120, &["-movflags", fragmented]) else {
        return;
    };
    let bytes = std::fs::metadata(&film).unwrap().len();
    assert!(bytes / 120 > 200_000, "fragments of {} bytes", bytes / 120);
    let (_storage, origin) = start_storage_and_origin(&folder.0, &[]);
    let list = list_playlists(&origin, "/film.mp4").remove(0);
    let segments = list_segments(&origin, &list);
    assert_eq!(segments.len(), 60);
    // A few of the 120 fragments are read one by one, and the rest in one request.
    let request_count = count_requests(&origin, "index");
    assert!(request_count <= 20, "{request_count}");
    let local = HeadwaterServer::serve_source(&folder.0);
    let same = pair_with_local_segments(&segments, &local, "/film.mp4");
    for (here, there) in [&same[0], &same[31], &same[59]] {
        assert!(origin.get_body(here) == local.get_body(there), "{here}");
    }
}

#[test]
fn each_request_reads_the_index_again_without_caches() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let more = ["--index-cache", "off", "--storage-memory", "0B"];
    let more = [&more[..], &["--storage-connections", "fresh"]].concat();
    let (_storage, origin) = start_storage_and_origin(path.parent().unwrap(), &more);
    let list = list_playlists(&origin, "/avc.mp4").remove(0);
    let segments = list_segments(&origin, &list);
    let before = count_requests(&origin, "index");
    segments
        .iter()
        .for_each(|segment| drop(origin.get_body(segment)));
    assert_eq!(
        count_requests(&origin, "index") - before,
        2 * segments.len() as u64
    );
    let opened = read_metric(&origin, "headwater_storage_connections_opened_total");
    let all: u64 = ["index", "segment", "look", "plain", "manifest", "text"]
        .iter()
        .map(|reason| count_requests(&origin, reason))
        .sum();
    assert_eq!(
        readiness(&origin).0,
        200,
        "the probe at the start has ended"
    );
    assert_eq!(
        opened,
        all + 1,
        "a connection for every request and the probe"
    );
}

#[test]
fn a_replaced_film_is_indexed_again() {
    let (Some(old), Some(new)) = (fixture_path("avc.mp4"), fixture_path("avc_2997.mp4")) else {
        return;
    };
    let folder = TempFolder::new();
    let film = folder.write_file("film.mp4", &std::fs::read(old).unwrap());
    let more = ["--storage-memory", "0B", "--segment-memory", "0B"];
    let storage = HeadwaterServer::serve(&[folder.0.to_str().unwrap(), "--recheck", "0s"]);
    let url = storage.url("/");
    let origin = HeadwaterServer::serve(&[&[url.as_str(), "--segment", "2s"][..], &more].concat());
    let list = list_playlists(&origin, "/film.mp4").remove(0);
    let segment = list_segments(&origin, &list).remove(1);
    assert_eq!(origin.get(&segment).status, 200);
    let next = folder.write_file("next", &std::fs::read(&new).unwrap());
    std::fs::rename(next, film).unwrap();
    // The first request may notice the change and return 503. Later requests return 410. The old
    // index is never applied to the new bytes.
    let first = origin.get(&segment);
    assert!(
        [503, 410].contains(&first.status),
        "{}",
        first.error_reason()
    );
    let then = origin.get(&segment);
    assert_eq!(then.status, 410, "{}", then.error_reason());
    let same = HeadwaterServer::serve_source(new.parent().unwrap());
    let here = ffmpeg::decode_video_hashes(&origin.url("/film.mp4/.m3u8"));
    assert_eq!(
        here,
        ffmpeg::decode_video_hashes(&same.url("/avc_2997.mp4/.m3u8"))
    );
}

#[test]
fn a_segment_without_an_index_cache_needs_no_search_for_captions() {
    // The moov box is at the end of the film. A search for captions would therefore need a separate
    // storage request.
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let (_storage, origin) =
        start_storage_and_origin(film.parent().unwrap(), &["--index-cache", "off"]);
    let playlists = list_playlists(&origin, "/avc.mp4");
    let segments = list_segments(&origin, playlists.last().unwrap());
    let counts = || ["text", "index", "segment"].map(|reason| count_requests(&origin, reason));
    let [text, index, segment] = counts();
    assert!(text > 0, "playlists announce captions");
    assert_eq!(origin.get(&segments[0]).status, 200);
    let [text_after, index_after, segment_after] = counts();
    assert_eq!((text_after, segment_after), (text, segment + 1));
    assert!(index_after > index, "nothing is cached");
}

#[test]
fn storage_errors_have_their_own_status() {
    let Some(root) = fixtures_folder() else {
        return;
    };
    let (storage, origin) =
        start_storage_and_origin(&root.join("library"), &["--storage-retries", "1"]);
    assert_eq!(origin.get("/none.mp4/.m3u8").status, 404);
    assert_eq!(origin.get("/none.mp4").status, 404);
    drop(storage);
    let response = origin.get("/avc.mp4/.m3u8");
    assert_eq!(response.status, 502, "{}", response.error_reason());
    assert!(
        response
            .error_reason()
            .contains("cannot connect to the storage")
    );
}

#[test]
fn a_library_that_cannot_be_listed_is_ready_and_says_so() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let (_storage, origin) = start_storage_and_origin(film.parent().unwrap(), &[]);
    assert_eq!(origin.get("/readyz").status, 200);
    let list = origin.get_text("/-/library.json");
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["source"], "unlisted");
    assert_eq!(list["titles"].as_array().unwrap().len(), 0);
    assert!(origin.get_text("/avc.mp4/.m3u8").starts_with("#EXTM3U"));
}
