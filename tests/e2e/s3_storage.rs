//! Films on an S3 server that checks signatures are served like films in a folder.

use crate::ffmpeg::decode_video_hashes;
use crate::http_storage::{count_requests, list_playlists, read_metric};
use crate::servers::{self, ACCESS, S3, SECRET};
use crate::support::{HeadwaterServer, TempFolder, fixture_path};
use serde_json::Value;

/// Starts an origin with the bucket as its library, and waits until one object is visible.
fn start_origin(server: &S3, there: &str, more: &[&str]) -> HeadwaterServer {
    let endpoint = format!("aws_endpoint_url=http://127.0.0.1:{}", server.port);
    let args = [
        "s3://films",
        "--segment",
        "2s",
        "--storage-option",
        &endpoint,
    ];
    let variables = [
        ("AWS_ACCESS_KEY_ID", ACCESS),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
    ];
    let origin = HeadwaterServer::serve_with_environment(&variables, &[&args[..], more].concat());
    // Objects become visible a moment after they were written.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while origin.get(there).status != 200 && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    origin
}

#[test]
fn ffmpeg_plays_from_s3_exactly_as_from_disk() {
    let names = [
        "avc.mp4",
        "avc_faststart.mp4",
        "frag_cmaf.mp4",
        "several_tracks.mp4",
    ];
    let Some(paths) = names
        .iter()
        .map(|name| fixture_path(name))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let dir = TempFolder::new();
    let Some(server) = servers::start_s3(&dir.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    for (name, path) in names.iter().zip(&paths) {
        server.put(&format!("films/{name}"), &std::fs::read(path).unwrap());
    }
    let folder = paths[0].parent().unwrap().join("ladder");
    let ladder: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    for file in &ladder {
        let name = format!("films/ladder/{}", file.file_name().display());
        server.put(&name, &std::fs::read(file.path()).unwrap());
    }
    let remote = start_origin(&server, "/several_tracks.mp4", &[]);
    let local = HeadwaterServer::serve_source(paths[0].parent().unwrap());
    for name in names {
        for manifest in [".m3u8", ".mpd"] {
            let there = decode_video_hashes(&local.url(&format!("/{name}/{manifest}")));
            let here = decode_video_hashes(&remote.url(&format!("/{name}/{manifest}")));
            assert!(!here.is_empty() && here == there, "{name} {manifest}");
        }
    }
    // A folder costs one listing. Its files are read concurrently, in one or two requests each.
    let counted = || ["look", "index", "retry"].map(|reason| count_requests(&remote, reason));
    let before = counted();
    list_playlists(&remote, "/ladder");
    let request_counts: Vec<u64> = counted()
        .iter()
        .zip(before)
        .map(|(now, then)| now - then)
        .collect();
    assert_eq!((request_counts[0], request_counts[2]), (1, 0));
    assert!(
        request_counts[1] <= 2 * ladder.len() as u64,
        "{request_counts:?}"
    );
}

#[test]
fn listing_a_large_bucket_reads_no_film() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let dir = TempFolder::new();
    let Some(server) = servers::start_s3(&dir.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    let film = std::fs::read(path).unwrap();
    for n in 0..1200 {
        server.put(&format!("films/many/{n:04}.mp4"), &film[..100]);
    }
    server.put("films/one/v.cmfv", &film);
    server.put("films/one/s.cmfa", &film);
    let remote = start_origin(&server, "/one/s.cmfa", &[]);
    let before = read_metric(&remote, "headwater_index_builds_total");
    let looks = count_requests(&remote, "look");
    let list: Value = serde_json::from_str(&remote.get_text("/-/library.json")).unwrap();
    let titles = list["titles"].as_array().unwrap();
    assert_eq!(titles.len(), 1201);
    assert_eq!(
        (&titles[0]["path"], &titles[0]["bytes"]),
        (&"many/0000.mp4".into(), &100.into())
    );
    assert_eq!(
        (&titles[1200]["path"], &titles[1200]["kind"]),
        (&"one".into(), &"folder".into())
    );
    assert_eq!(list["truncated"], false);
    assert_eq!(read_metric(&remote, "headwater_index_builds_total"), before);
    // One listing of the root, two pages of one folder, one page of the other.
    assert_eq!(count_requests(&remote, "look") - looks, 4);
}
