//! Tests storage that cannot deliver text for a while. The origin must serve the text as soon as
//! the storage recovers. The storage is a real S3 server behind a proxy, which refuses requests for
//! text for a while.

use crate::s3_storage::start_origin;
use crate::servers::{self, S3};
use crate::support::{HeadwaterServer, TempFolder, fixture_path};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const SRT: &[u8] = b"1\n00:00:00,500 --> 00:00:02,500\nFirst\n";

/// A proxy that forwards connections to a port. While `is_failing` is true, the proxy responds to
/// requests for text with 503.
struct FailingProxy {
    port: u16,
    is_failing: Arc<AtomicBool>,
}

impl FailingProxy {
    fn start(port: u16) -> FailingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let is_failing = Arc::new(AtomicBool::new(true));
        let failing = is_failing.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let failing = failing.clone();
                std::thread::spawn(move || forward(client, port, &failing));
            }
        });
        FailingProxy {
            port: own_port,
            is_failing,
        }
    }
}

/// Returns whether a request reads text. Text is in the subtitle file and in the film, but not in
/// the first bytes of the film, which contain the index.
fn reads_text(head: &str) -> bool {
    let path = head.lines().next().unwrap_or_default();
    let is_start = head.to_ascii_lowercase().contains("range: bytes=0-");
    path.contains("film.en.srt") || (path.contains("film.mp4") && !is_start)
}

/// Forwards requests that have no body and are not pipelined.
fn forward(mut client: TcpStream, port: u16, is_failing: &AtomicBool) {
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    // Ignores errors, because either side may close the connection first.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        head.extend_from_slice(&buffer[..count]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        let written = match is_failing.load(SeqCst) && reads_text(&text) {
            true => client.write_all(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n"),
            false => server.write_all(&head),
        };
        if written.is_err() {
            break;
        }
        head.clear();
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// Stores a film with a text track on the S3 server, and a text file beside the film. The film's
/// index is at the start of the file.
fn store_film(s3: &S3) -> Option<()> {
    let folder = TempFolder::new();
    let film = fixture_path("avc.mp4")?;
    folder.write_file("cues.srt", SRT);
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-i", film.to_str()?, "-i", "cues.srt"])
        .args(["-map", "0", "-map", "1", "-c", "copy", "-c:s", "mov_text"])
        .args(["-metadata:s:s:0", "language=fra"])
        .args(["-movflags", "+faststart", "film.mp4"])
        .current_dir(&folder.0)
        .status();
    assert!(status.unwrap().success());
    s3.put(
        "films/film.mp4",
        &std::fs::read(folder.0.join("film.mp4")).unwrap(),
    );
    s3.put("films/film.en.srt", SRT);
    s3.put("films/ready.vtt", b"WEBVTT\n");
    Some(())
}

/// Returns the names of the parts that the origin left out, and the languages of the texts.
fn describe_text(origin: &HeadwaterServer) -> (Vec<String>, Vec<String>) {
    let description = origin.get_text("/film.mp4/.json");
    let description: Value = serde_json::from_str(&description).unwrap();
    let list = |name: &str, field: &str| {
        let entries = description[name].as_array().cloned().unwrap_or_default();
        let mut values: Vec<String> = entries
            .iter()
            .map(|entry| entry[field].as_str().unwrap().to_owned())
            .collect();
        values.sort();
        values
    };
    (list("left_out", "name"), list("texts", "language"))
}

#[test]
fn text_that_the_storage_could_not_deliver_is_served_after_the_failure() {
    let storage = TempFolder::new();
    let Some(s3) = servers::start_s3(&storage.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    if store_film(&s3).is_none() {
        return;
    }
    // Waits until the objects are visible, so that only the proxy makes requests fail.
    drop(start_origin(&s3, "/ready.vtt", &[]));
    let proxy = FailingProxy::start(s3.port);
    let endpoint = format!("aws_endpoint_url=http://127.0.0.1:{}", proxy.port);
    let origin = start_origin(&s3, "/ready.vtt", &["--storage-option", &endpoint]);
    let (left_out, languages) = describe_text(&origin);
    assert_eq!(left_out, ["film.en.srt", "film.mp4, track 3 (text)"]);
    assert!(languages.is_empty(), "{languages:?}");
    proxy.is_failing.store(false, SeqCst);
    let until = Instant::now() + Duration::from_secs(60);
    let mut found = describe_text(&origin);
    while found.1.len() < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        found = describe_text(&origin);
    }
    let both = vec!["en".to_owned(), "fr".to_owned()];
    assert_eq!(found, (Vec::new(), both));
}
