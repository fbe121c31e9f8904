//! Films of an S3 server that checks signatures are served as those of a folder are.

use crate::ffmpeg::pictures;
use crate::remote::{metric, playlists, requests};
use crate::servers::{self, ACCESS, S3, SECRET};
use crate::support::{Folder, Server, fixture};
use serde_json::Value;

/// An origin whose library is the bucket, where one object is there already.
fn origin(server: &S3, there: &str, more: &[&str]) -> Server {
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
    let origin = Server::start_with(&variables, &[&args[..], more].concat());
    // What was put there past the door is there a moment later.
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
        .map(|name| fixture(name))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let dir = Folder::new();
    let Some(server) = servers::s3(&dir.0, None) else {
        return servers::skip("no S3 server: run scripts/storage.sh");
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
    let remote = origin(&server, "/several_tracks.mp4", &[]);
    let local = Server::of(paths[0].parent().unwrap());
    for name in names {
        for manifest in [".m3u8", ".mpd"] {
            let there = pictures(&local.url(&format!("/{name}/{manifest}")));
            let here = pictures(&remote.url(&format!("/{name}/{manifest}")));
            assert!(!here.is_empty() && here == there, "{name} {manifest}");
        }
    }
    // A folder is one listing; its files are read at the same time, each in one request or two.
    let counted = || ["look", "index", "retry"].map(|reason| requests(&remote, reason));
    let before = counted();
    playlists(&remote, "/ladder");
    let asked: Vec<u64> = counted()
        .iter()
        .zip(before)
        .map(|(now, then)| now - then)
        .collect();
    assert_eq!((asked[0], asked[2]), (1, 0));
    assert!(asked[1] <= 2 * ladder.len() as u64, "{asked:?}");
}

#[test]
fn a_large_bucket_is_listed_and_no_film_of_it_read() {
    let Some(path) = fixture("avc.mp4") else {
        return;
    };
    let dir = Folder::new();
    let Some(server) = servers::s3(&dir.0, None) else {
        return servers::skip("no S3 server: run scripts/storage.sh");
    };
    let film = std::fs::read(path).unwrap();
    for n in 0..1200 {
        server.put(&format!("films/many/{n:04}.mp4"), &film[..100]);
    }
    server.put("films/one/v.cmfv", &film);
    server.put("films/one/s.cmfa", &film);
    let remote = origin(&server, "/one/s.cmfa", &[]);
    let before = metric(&remote, "headwater_index_builds_total");
    let looks = requests(&remote, "look");
    let list: Value = serde_json::from_str(&remote.text("/-/library.json")).unwrap();
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
    assert_eq!(metric(&remote, "headwater_index_builds_total"), before);
    // The root, one folder in two pages, one in one.
    assert_eq!(requests(&remote, "look") - looks, 4);
}
