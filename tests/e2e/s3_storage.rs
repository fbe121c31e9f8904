//! Checks that films on an S3 server that verifies signatures are served like films in a folder.

use crate::ffmpeg::decode_video_hashes;
use crate::http_storage::{count_requests, list_playlists, read_metric};
use crate::servers::{self, ACCESS, S3, SECRET};
use crate::support::{HeadwaterServer, TempFolder, fixture_path};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Starts an origin with the bucket as its library. Waits until the origin serves the path that
/// `there` contains.
pub fn start_origin(server: &S3, there: &str, more: &[&str]) -> HeadwaterServer {
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
    // Opening a folder takes one listing request, and one or two requests for each file in the
    // folder.
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
    // The requests are one listing of the root, two pages of the folder `many`, and one page of the
    // folder `one`.
    assert_eq!(count_requests(&remote, "look") - looks, 4);
}

/// Runs `headwater check` on a target of this S3 server, with `secret` as the secret key.
fn run_check(server: &S3, target: &str, secret: &str) -> Output {
    let endpoint = format!("aws_endpoint_url=http://127.0.0.1:{}", server.port);
    Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["check", target, "--storage-option", &endpoint])
        .env("AWS_ACCESS_KEY_ID", ACCESS)
        .env("AWS_SECRET_ACCESS_KEY", secret)
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap()
}

#[test]
fn check_reads_films_and_folders_from_s3() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let dir = TempFolder::new();
    let Some(server) = servers::start_s3(&dir.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    server.put("films/a/avc.mp4", &std::fs::read(&path).unwrap());
    server.put("films/a/x.mkv", b"not looked at");
    drop(start_origin(&server, "/a/avc.mp4", &[]));
    let here = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["check", path.to_str().unwrap()])
        .output()
        .unwrap();
    let here = String::from_utf8(here.stdout).unwrap();
    let film = "s3://films/a/avc.mp4";
    let there = run_check(&server, film, SECRET);
    let shown = String::from_utf8(there.stdout).unwrap();
    assert_eq!(shown, here.replace(path.to_str().unwrap(), film));
    let there = run_check(&server, "s3://films", SECRET);
    let shown = String::from_utf8(there.stdout).unwrap();
    let summary = "1 title: 1 fine, 0 with warnings, 0 rejected, 1 ignored: a/x.mkv is not MP4; ";
    assert!(shown.contains(summary), "{shown}");
    for (target, secret, words) in [
        (film, "guessed", "check the secret key"),
        ("s3://films", "guessed", "check the secret key"),
        ("s3://nowhere/a", SECRET, "NoSuchBucket; check the name"),
    ] {
        let refused = run_check(&server, target, secret);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains(words) && error.contains(target), "{error}");
    }
}

/// Starts an origin with the library `source`, without waiting for objects. Returns the server and
/// its standard output up to the address.
fn start_logged(server_port: u16, source: &str, secret: &str) -> (LoggedServer, String) {
    let endpoint = format!("aws_endpoint_url=http://127.0.0.1:{server_port}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["serve", source, "--listen", "127.0.0.1:0"])
        .args(["--storage-option", &endpoint])
        .env("AWS_ACCESS_KEY_ID", ACCESS)
        .env("AWS_SECRET_ACCESS_KEY", secret)
        .env("AWS_REGION", "us-east-1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = String::new();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines.map_while(Result::ok).find_map(|line| {
        shown += &format!("{line}\n");
        line.strip_prefix("listening on http://").map(str::to_owned)
    });
    let address = address.unwrap().parse().unwrap();
    (LoggedServer { child, address }, shown)
}

/// A server whose standard error is read as its log.
struct LoggedServer {
    child: Child,
    address: SocketAddr,
}

impl LoggedServer {
    /// Returns the status and the whole text of a response.
    fn get(&self, path: &str) -> (u16, String) {
        let response = servers::fetch_response(self.address.port(), "GET", path, "", b"").unwrap();
        let status = response.split(' ').nth(1).unwrap().parse().unwrap();
        (status, response)
    }

    fn wait_until_ready(&self) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            if self.get("/readyz").0 == 200 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }

    /// Returns whether the log contains a line with this text within 60 s.
    fn wait_for_line(mut self, text: &'static str) -> bool {
        let log = BufReader::new(self.child.stderr.take().unwrap());
        let (found, result) = channel();
        std::thread::spawn(move || {
            found.send(log.lines().any(|line| line.unwrap().contains(text)))
        });
        result
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or(false)
    }

    fn read_log(mut self) -> String {
        self.child.kill().unwrap();
        std::io::read_to_string(self.child.stderr.take().unwrap()).unwrap()
    }
}

impl Drop for LoggedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_bucket_that_cannot_be_listed_is_not_ready_and_names_the_remedy() {
    let dir = TempFolder::new();
    let Some(server) = servers::start_s3(&dir.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    server.put("films/movies/a.mp4", b"film");
    let unused_port = servers::free_ports(1)[0];
    for (port, source, secret, words) in [
        (
            server.port,
            "s3://films/movies",
            "guessed",
            "SignatureDoesNotMatch; check the secret key",
        ),
        (
            server.port,
            "s3://flims/movies",
            SECRET,
            "NoSuchBucket; check the name",
        ),
        (
            unused_port,
            "s3://films/movies",
            SECRET,
            "cannot connect to the storage",
        ),
    ] {
        let (origin, shown) = start_logged(port, source, secret);
        assert!(!shown.contains("titles"), "{shown}");
        for path in ["/readyz", "/-/library.json"] {
            let (status, text) = origin.get(path);
            assert!(status >= 500, "{path}: {text}");
            assert!(text.contains(words), "{path}: {text}");
            assert!(
                !text.contains("guessed") && !text.contains(ACCESS),
                "{text}"
            );
        }
        // `/healthz` responds with 200, because a restart of the process would not help.
        assert_eq!(origin.get("/healthz").0, 200);
        let log = origin.read_log();
        assert!(log.contains(words) && log.contains(source), "{log}");
        assert!(!log.contains("guessed"), "{log}");
    }
}

#[test]
fn a_listed_bucket_is_announced_with_its_titles() {
    let dir = TempFolder::new();
    let Some(server) = servers::start_s3(&dir.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    for name in ["a", "b", "c"] {
        server.put(&format!("films/movies/{name}.mp4"), b"film");
    }
    drop(start_origin(&server, "/movies/c.mp4", &[]));
    let (origin, shown) = start_logged(server.port, "s3://films/movies", SECRET);
    assert!(shown.contains("s3://films/movies: 3 titles\n"), "{shown}");
    assert_eq!(origin.get("/readyz").0, 200);
    let (_, list) = origin.get("/-/library.json");
    assert!(list.contains("\"source\":\"storage\""), "{list}");
    // A prefix without films is a valid, empty library. The log advises the operator to check the
    // prefix.
    let (origin, shown) = start_logged(server.port, "s3://films/other", SECRET);
    assert!(shown.contains("s3://films/other: 0 titles"), "{shown}");
    assert_eq!(origin.get("/readyz").0, 200);
    assert!(origin.read_log().contains("check the prefix"));
}

#[test]
fn readiness_recovers_with_the_storage() {
    let dir = TempFolder::new();
    let Some(server) = servers::start_s3(&dir.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    // The bucket does not exist yet.
    let (origin, _) = start_logged(server.port, "s3://later", SECRET);
    assert_eq!(origin.get("/readyz").0, 503);
    server.put("later/a.mp4", b"film");
    assert!(origin.wait_until_ready());
    // The server is ready before it has counted the titles.
    assert!(origin.wait_for_line("s3://later: 1 title"));
}
