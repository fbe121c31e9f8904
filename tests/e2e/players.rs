//! `headwater load players` against nginx with what ffmpeg writes, against our own origin, and
//! against servers that wish no good.

use crate::nginx::Nginx;
use crate::support::{Folder, Server};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

/// Plays; gives the exit status, the result, and what was said.
fn players(words: &[&str]) -> (Option<i32>, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["load", "players", "--json", "-"])
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), json, said)
}

/// Ten seconds of a ladder of two bitrates with sound, as ffmpeg writes HLS and DASH.
fn title(folder: &Path) {
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

/// nginx over a folder.
fn served(folder: &Path) -> Option<Nginx> {
    Nginx::of(folder, folder, "", "location /round { return 302 /round; }")
}

#[test]
fn what_ffmpeg_writes_plays_from_nginx() {
    let folder = Folder::new();
    title(folder.0.as_path());
    let Some(nginx) = served(folder.0.as_path()) else {
        return;
    };
    for manifest in ["timeline.mpd", "number.mpd", "single.mpd", "muxed.m3u8"] {
        let url = nginx.url(manifest);
        let words = [
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
        let (code, json, said) = players(&words);
        assert_eq!(code, Some(0), "{manifest}: {said}");
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
    // Each segment of each viewer was asked for once, and each was there.
    let log = std::fs::read_to_string(folder.0.join("access.log")).unwrap();
    assert!(
        log.lines()
            .all(|line| line.contains("\" 200 ") || line.contains("\" 206 ")),
        "{log}"
    );
}

#[test]
fn our_own_origin_plays_in_every_way() {
    let folder = Folder::new();
    title(folder.0.as_path());
    let server = Server::of(&folder.0.join("src.mp4"));
    for manifest in ["/src.mp4/.m3u8", "/src.mp4/.mpd"] {
        let html = folder.0.join("report.html");
        let records = folder.0.join("records.jsonl");
        let url = server.url(manifest);
        let words = [
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
        let (code, json, said) = players(&words);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(json["viewing"]["viewers"], 3, "{json}");
        let page = std::fs::read_to_string(&html).unwrap();
        assert!(page.contains("Buffers of some viewers") && page.contains("buffer_p50_s"));
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
    let (code, json, said) = players(&[
        &film,
        "--mode",
        "sequence",
        "--viewers",
        "2",
        "--duration",
        "1s",
    ]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        json["summary"]["errors"] == 0 && json["summary"]["requests"].as_u64().unwrap() > 50,
        "{json}"
    );
}

#[test]
fn one_file_is_consumed_no_further_than_fifteen_seconds_ahead() {
    let folder = Folder::new();
    let film = "-f lavfi -i testsrc2=size=320x180:rate=10:duration=60 -c:v libx264 -preset ultrafast -b:v 400k -g 20 -movflags +faststart film.mp4";
    let made = Command::new("ffmpeg")
        .args(["-hide_banner", "-loglevel", "error", "-y"])
        .args(film.split(' '))
        .current_dir(folder.0.as_path())
        .status();
    assert!(made.unwrap().success());
    let Some(nginx) = served(folder.0.as_path()) else {
        return;
    };
    let url = nginx.url("film.mp4");
    let (code, json, said) = players(&[
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
    assert_eq!(code, Some(0), "{said}");
    let whole = std::fs::metadata(folder.0.join("film.mp4")).unwrap().len() as f64;
    let held = json["viewing"]["samples"][0]["buffer_p50_s"]
        .as_f64()
        .unwrap();
    assert!(
        held <= 60.0 * (1 << 20) as f64 / whole + 0.1 || held <= 15.0,
        "{held}: {json}"
    );
}

/// A server that says the same whatever it is asked, as often as it is asked; `endless`: for ever.
fn says(head: &'static str, body: Vec<u8>, endless: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let body = body.clone();
            std::thread::spawn(move || answer(stream, head, &body, endless));
        }
    });
    addr
}

fn answer(mut stream: TcpStream, head: &str, body: &[u8], endless: bool) {
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

/// An answer's head, its body, whether it goes on for ever, and what it must be counted as.
type Bad = (&'static str, Vec<u8>, bool, &'static str);

fn bad_answers() -> Vec<Bad> {
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
fn bad_manifests_are_counted_and_nobody_hangs() {
    for (head, body, endless, counted) in bad_answers() {
        let about = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let url = format!("http://{}/m", says(head, body, endless));
        let words = [
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
        let (code, json, said) = players(&words);
        assert_eq!(code, Some(1), "{head} {about}: {said}");
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
fn wrong_words_are_told() {
    for (words, said) in [
        (&["nonsense"][..], "no URL"),
        (&["ftp://x/"], "neither http nor https"),
        (&["http://127.0.0.1:1/m", "--viewers", "0"], "no viewers"),
        (&["http://127.0.0.1:1/m", "--abr", "best"], "a rule is"),
        (
            &["http://127.0.0.1:1/m", "--device", "fridge"],
            "a device is",
        ),
        (
            &["http://127.0.0.1:1/m", "--mode", "x"],
            "viewer, sequence or consumer",
        ),
        (
            &["http://127.0.0.1:1/m", "--expect", "joy > 3"],
            "an expectation is",
        ),
    ] {
        let (code, _, found) = players(words);
        assert_eq!(code, Some(2), "{words:?}: {found}");
        assert!(found.contains(said), "{words:?}: {found}");
    }
}
