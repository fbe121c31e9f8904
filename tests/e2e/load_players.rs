//! Tests `headwater load players` against nginx with manifests that ffmpeg wrote, against
//! `headwater serve`, and against hostile servers.

use crate::nginx::Nginx;
use crate::support::{HeadwaterServer, TempFolder};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

/// Runs `headwater load players`. Returns the exit code, the JSON result and standard error.
fn run_players(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["load", "players", "--json", "-"])
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), json, stderr)
}

/// Makes a film of ten seconds with two video bitrates and audio. ffmpeg packages the film as HLS
/// and DASH.
fn make_title(folder: &Path) {
    let run = |args: &str| {
        let done = Command::new("ffmpeg")
            .args(["-hide_banner", "-loglevel", "error", "-y"])
            .args(args.split(' ').map(|word| word.replace('~', " ")))
            .current_dir(folder)
            .status();
        assert!(done.unwrap().success(), "{args}");
    };
    run(
        "-f lavfi -i testsrc2=size=320x180:rate=10:duration=10 -f lavfi -i sine=duration=10 -map 0:v -map 0:v -map 1:a \
         -c:v libx264 -preset ultrafast -g 10 -b:v:0 100k -b:v:1 400k -c:a aac -b:a 64k src.mp4",
    );
    run("-i src.mp4 -map 0 -c copy -f dash -seg_duration 2 timeline.mpd");
    run(
        "-i src.mp4 -map 0 -c copy -f dash -seg_duration 2 -use_timeline 0 -init_seg_name n$RepresentationID$.mp4 -media_seg_name n$RepresentationID$-$Number$.m4s number.mpd",
    );
    run("-i src.mp4 -map 0 -c copy -f dash -seg_duration 2 -single_file 1 single.mpd");
    run(
        "-i src.mp4 -map 0:0 -map 0:2 -map 0:1 -map 0:2 -c copy -f hls -hls_time 2 -hls_playlist_type vod -var_stream_map v:0,a:0~v:1,a:1 -master_pl_name muxed.m3u8 ts%v.m3u8",
    );
}

fn start_nginx(folder: &Path) -> Option<Nginx> {
    Nginx::of(folder, folder, "", "location /round { return 302 /round; }")
}

#[test]
fn manifests_by_ffmpeg_play_from_nginx() {
    let folder = TempFolder::new();
    make_title(folder.0.as_path());
    let Some(nginx) = start_nginx(folder.0.as_path()) else {
        return;
    };
    for manifest in ["timeline.mpd", "number.mpd", "single.mpd", "muxed.m3u8"] {
        let url = nginx.url(manifest);
        let arguments = [
            &*url,
            "--viewers",
            "3",
            "--duration",
            "2s",
            "--spread",
            "100ms",
            "--abr",
            "highest",
            "--expect",
            "stalls = 0",
            "--expect",
            "failed = 0",
            "--expect",
            "errors = 0",
        ];
        let (code, json, stderr) = run_players(&arguments);
        assert_eq!(code, Some(0), "{manifest}: {stderr}");
        let viewing = &json["viewing"];
        assert_eq!(
            (&viewing["viewers"], &viewing["ends"]["stopped"]),
            (&3.into(), &3.into()),
            "{manifest}: {viewing}"
        );
        assert!(
            viewing["played_s"].as_f64().unwrap() > 4.0,
            "{manifest}: {viewing}"
        );
        assert!(
            json["summary"]["requests"].as_u64().unwrap() >= 3 * 6,
            "{manifest}: {json}"
        );
    }
    // Checks that players requested only existing files.
    let log = std::fs::read_to_string(folder.0.join("access.log")).unwrap();
    assert!(
        log.lines()
            .all(|line| line.contains("\" 200 ") || line.contains("\" 206 ")),
        "{log}"
    );
}

#[test]
fn our_origin_plays_in_every_mode() {
    let folder = TempFolder::new();
    make_title(folder.0.as_path());
    let server = HeadwaterServer::serve_source(&folder.0.join("src.mp4"));
    for manifest in ["/src.mp4/.m3u8", "/src.mp4/.mpd"] {
        let html = folder.0.join("report.html");
        let records = folder.0.join("records.jsonl");
        let url = server.url(manifest);
        let arguments = [
            &*url,
            "--viewers",
            "steps:1+2/1s..3",
            "--duration",
            "3s",
            "--cmcd",
            "2-query",
            "--html",
            html.to_str().unwrap(),
            "--records",
            records.to_str().unwrap(),
            "--expect",
            "failed = 0",
        ];
        let (code, json, stderr) = run_players(&arguments);
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(json["viewing"]["viewers"], 3, "{json}");
        let page = std::fs::read_to_string(&html).unwrap();
        assert!(page.contains("Buffers by place") && page.contains("buffer_p50_s"));
        let lines = std::fs::read_to_string(&records).unwrap();
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let of_players: Vec<&Value> = lines
            .iter()
            .filter(|line| line["record"] == "player")
            .collect();
        assert_eq!(of_players.len(), 3);
        let requests: u64 = of_players
            .iter()
            .map(|line| line["requests"].as_u64().unwrap())
            .sum();
        assert_eq!(requests as usize, lines.len() - 3);
    }
    let film = server.url("/src.mp4/.mpd");
    let (code, json, stderr) = run_players(&[
        &film,
        "--mode",
        "sequence",
        "--viewers",
        "2",
        "--duration",
        "1s",
    ]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        json["summary"]["errors"] == 0 && json["summary"]["requests"].as_u64().unwrap() > 50,
        "{json}"
    );
}

#[test]
fn viewers_fetch_the_text_that_they_choose() {
    let folder = TempFolder::new();
    make_title(folder.0.as_path());
    let cue = "1\n00:00:01,000 --> 00:00:02,000\nA cue\n";
    std::fs::write(folder.0.join("src.en.srt"), cue).unwrap();
    let server = HeadwaterServer::serve_source(folder.0.as_path());
    for (manifest, suffix) in [("/src.mp4/.m3u8", ".vtt"), ("/src.mp4/.mpd", ".m4s")] {
        let records = folder.0.join("records.jsonl");
        let (url, records) = (server.url(manifest), records.to_str().unwrap());
        let arguments = ["--viewers", "1", "--duration", "5s", "--text", "en"];
        let expectations = ["--expect", "text.requests > 1", "--expect", "failed = 0"];
        let output = [&*url, "--records", records];
        let (code, _, stderr) = run_players(&[&output[..], &arguments, &expectations].concat());
        assert_eq!(code, Some(0), "{manifest}: {stderr}");
        let lines = std::fs::read_to_string(records).unwrap();
        let requests = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let of_text: Vec<Value> = requests
            .filter(|line: &Value| line["kind"] == "text")
            .collect();
        let is_text = |line: &Value| {
            let url = line["url"].as_str().unwrap_or_default();
            url.contains("/text=en/") && url.ends_with(suffix) && line["status"] == 200
        };
        assert!(
            of_text.len() > 1 && of_text.iter().all(is_text),
            "{of_text:?}"
        );
    }
}

#[test]
fn a_consumer_buffers_at_most_fifteen_seconds() {
    let folder = TempFolder::new();
    let film = "-f lavfi -i testsrc2=size=320x180:rate=10:duration=60 -c:v libx264 -preset ultrafast -b:v 400k -g 20 -movflags +faststart film.mp4";
    let made = Command::new("ffmpeg")
        .args(["-hide_banner", "-loglevel", "error", "-y"])
        .args(film.split(' '))
        .current_dir(folder.0.as_path())
        .status();
    assert!(made.unwrap().success());
    let Some(nginx) = start_nginx(folder.0.as_path()) else {
        return;
    };
    let url = nginx.url("film.mp4");
    let (code, json, stderr) = run_players(&[
        &url,
        "--mode",
        "consumer",
        "--range-size",
        "64KiB",
        "--viewers",
        "1",
        "--duration",
        "2s",
        "--expect",
        "stalls = 0",
    ]);
    assert_eq!(code, Some(0), "{stderr}");
    let whole = std::fs::metadata(folder.0.join("film.mp4")).unwrap().len() as f64;
    let buffer_s = json["viewing"]["samples"][0]["buffer_p50_s"]
        .as_f64()
        .unwrap();
    assert!(
        buffer_s <= 60.0 * (1 << 20) as f64 / whole + 0.1 || buffer_s <= 15.0,
        "{buffer_s}: {json}"
    );
}

/// Starts a server that sends the same response to every request. If `endless` is true, the server
/// repeats the body without end.
fn start_scripted_server(head: &'static str, body: Vec<u8>, endless: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let body = body.clone();
            std::thread::spawn(move || send_scripted_response(stream, head, &body, endless));
        }
    });
    addr
}

fn send_scripted_response(mut stream: TcpStream, head: &str, body: &[u8], endless: bool) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|n| n > 2) {
        line.clear();
    }
    let _ = stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes());
    while stream.write_all(body).is_ok() && endless {}
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read(&mut [0; 1024]);
}

/// A response head, a body, whether the body is repeated without end, and the counter that must
/// count the failure.
type BadResponse = (&'static str, Vec<u8>, bool, &'static str);

fn list_bad_responses() -> Vec<BadResponse> {
    let timeline = "<MPD mediaPresentationDuration='PT9S'><Period><AdaptationSet contentType='video'><SegmentTemplate media='$Time$'>\
        <SegmentTimeline><S t='0' d='1' r='999999999'/></SegmentTimeline></SegmentTemplate><Representation id='v'/></AdaptationSet></Period></MPD>";
    vec![
        (
            "200 OK",
            b"garbage \xff\x00 garbage".to_vec(),
            false,
            "unreadable",
        ),
        (
            "200 OK",
            b"#EXTM3U\n#EXTINF:2\nhttp://127.0.0.1:1/a.ts\n".to_vec(),
            false,
            "errors",
        ),
        ("200 OK", timeline.into(), false, "unreadable"),
        (
            "200 OK",
            b"#EXTM3U\n#EXTINF:2\na.ts\n".repeat(10_000),
            true,
            "errors",
        ),
        (
            "302 Found\r\nLocation: /again\r\nContent-Length: 0",
            Vec::new(),
            false,
            "errors",
        ),
        (
            "404 Not Found\r\nContent-Length: 0",
            Vec::new(),
            false,
            "errors",
        ),
    ]
}

#[test]
fn bad_manifests_are_counted_without_hanging() {
    for (head, body, endless, counted) in list_bad_responses() {
        let about = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let url = format!("http://{}/m", start_scripted_server(head, body, endless));
        let arguments = [
            &*url,
            "--viewers",
            "2",
            "--spread",
            "0s",
            "--retries",
            "0",
            "--duration",
            "2s",
            "--timeout",
            "1s",
            "--expect",
            "failed = 0",
        ];
        let (code, json, stderr) = run_players(&arguments);
        assert_eq!(code, Some(1), "{head} {about}: {stderr}");
        let viewing = &json["viewing"];
        assert!(
            viewing["ends"]["failed"].as_u64().unwrap_or(0) >= 2,
            "{head} {about}: {viewing}"
        );
        let unreadable = viewing["unreadable"]
            .as_object()
            .is_some_and(|map| !map.is_empty());
        let errors = json["summary"]["errors"].as_u64().unwrap() > 0;
        assert!(
            if counted == "unreadable" {
                unreadable
            } else {
                errors
            },
            "{head} {about}: {json}"
        );
    }
}

#[test]
fn bad_arguments_are_refused_with_a_reason() {
    for (arguments, stderr) in [
        (&["nonsense"][..], "invalid URL"),
        (&["ftp://x/"], "unsupported scheme ftp"),
        (&["http://127.0.0.1:1/m", "--viewers", "0"], "no viewers"),
        (&["http://127.0.0.1:1/m", "--abr", "best"], "unknown rule"),
        (
            &["http://127.0.0.1:1/m", "--device", "fridge"],
            "unknown device fridge",
        ),
        (
            &["http://127.0.0.1:1/m", "--mode", "x"],
            "viewer or sequence or consumer",
        ),
        (
            &["http://127.0.0.1:1/m", "--expect", "joy > 3"],
            "invalid expectation",
        ),
    ] {
        let (code, _, found) = run_players(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {found}");
        assert!(found.contains(stderr), "{arguments:?}: {found}");
    }
}
