//! Tests `headwater edge` in front of `headwater serve`.

use crate::ffmpeg;
use crate::support::{HeadwaterServer, fixture_path};
use std::collections::HashMap;
use std::net::TcpListener;
use std::process::Command;

#[test]
fn a_film_plays_through_the_edge_and_the_origin_sends_each_segment_once() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let records = crate::support::TempFolder::new();
    let path = records.0.join("origin.jsonl");
    let source = film.to_str().unwrap();
    let flags = [
        source,
        "--segment",
        "2s",
        "--records",
        path.to_str().unwrap(),
    ];
    let mut origin = HeadwaterServer::serve(&flags);
    let url = origin.url("");
    let mut edge = HeadwaterServer::start_program("edge", &["--origin", &url]);
    let direct = ffmpeg::decode_video_hashes(&film.display().to_string());
    for manifest in [".m3u8", ".mpd"] {
        let through = edge.url(&format!("/avc.mp4/{manifest}"));
        assert_eq!(ffmpeg::decode_video_hashes(&through), direct, "{manifest}");
        assert_eq!(
            ffmpeg::decode_video_hashes(&through),
            direct,
            "{manifest} again"
        );
    }
    assert_eq!(edge.terminate(), Some(0));
    assert_eq!(origin.terminate(), Some(0));
    let text = std::fs::read_to_string(path).unwrap();
    let mut segments = HashMap::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["kind"] == "segment" || line["kind"] == "init" {
            let requests = segments.entry(line["path"].to_string()).or_insert(0);
            *requests += 1;
        }
    }
    assert!(segments.len() > 3, "{segments:?}");
    assert!(
        segments.values().all(|requests| *requests == 1),
        "{segments:?}"
    );
}

/// SIGHUP reloads the settings. Invalid settings change nothing.
#[test]
fn sighup_reloads_the_settings() {
    let folder = crate::support::TempFolder::new();
    let mut origin = HeadwaterServer::serve(&[]);
    let settings = |status: &str| {
        let url = origin.url("");
        let rule = format!("[[rule]]\nwhen = 'path == \"/no\"'\ndeny = {status}\n");
        folder.write_file(
            "edge.toml",
            format!("origin = \"{url}\"\n{rule}").as_bytes(),
        )
    };
    let path = settings("403");
    let mut edge = HeadwaterServer::start_program("edge", &["--config", path.to_str().unwrap()]);
    assert_eq!(edge.get("/no").status, 403);
    settings("410");
    edge.send_signal("HUP");
    let mut tries = 0;
    while edge.get("/no").status != 410 {
        tries += 1;
        assert!(tries < 1000, "the settings were not reloaded");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    settings("9999");
    edge.send_signal("HUP");
    assert_eq!(edge.get("/no").status, 410);
    assert_eq!(edge.get("/").status, 200);
    assert_eq!(edge.terminate(), Some(0));
    assert_eq!(origin.terminate(), Some(0));
}

/// `edge explain` reports which rule applies, why other rules do not apply, and errors in the
/// arguments.
#[test]
fn explain_reports_the_matching_rule_and_the_reasons() {
    let folder = crate::support::TempFolder::new();
    let rules = "[networks]\nmobile = [\"10.0.0.0/8\"]\n\
        [[rule]]\nname = \"far\"\nwhen = 'client.net == \"mobile\" && cache == \"miss\"'\npace = 9000\n\
        [[rule]]\nname = \"slow\"\nwhen = 'path.endsWith(\".m4s\")'\n\
        pace = \"2.0 * cmcd.tb\"\ncongestion = \"reno\"\n";
    let config = folder.write_file("edge.toml", rules.as_bytes());
    let explain = |more: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args(["edge", "explain", "--config", config.to_str().unwrap()]);
        let output = command.args(more).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.success(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let url = "http://edge/film/1.m4s?CMCD=tb%3D6000";
    let (well, stdout, _) = explain(&[url, "--client", "10.1.2.3"]);
    assert!(well, "{stdout}");
    let (first, second) = stdout.split_once("slow: matches").unwrap();
    assert!(first.contains("far: does not match"), "{stdout}");
    assert!(
        second.contains("reno") && second.contains("pace: 12000 kbit/s"),
        "{stdout}"
    );
    let (_, stdout, _) = explain(&[url, "--client", "10.1.2.3", "--cache", "miss"]);
    assert!(
        stdout.contains("far: matches") && !stdout.contains("slow"),
        "{stdout}"
    );
    let (_, stdout, _) = explain(&["/film.mpd"]);
    assert!(stdout.contains("no rule matches"), "{stdout}");
    for wrong in [["--client", "ten"], ["--cache", "lucky"], ["--header", "x"]] {
        let (well, _, why) = explain(&[url, wrong[0], wrong[1]]);
        assert!(!well && why.contains(wrong[1]), "{wrong:?}: {why}");
    }
}

#[test]
fn an_unreachable_origin_is_a_sentence_for_viewers_and_a_cause_in_the_logs() {
    let folder = crate::support::TempFolder::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let [log, records] = ["log", "records"].map(|name| folder.0.join(name));
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2> \"$LOG\""]);
    shell.arg(env!("CARGO_BIN_EXE_headwater")).env("LOG", &log);
    let origin = format!("http://{address}");
    let records_path = records.to_str().unwrap();
    let arguments = ["--origin", &origin, "--records", records_path];
    let mut edge = HeadwaterServer::spawn(shell, "edge", &arguments);
    let response = edge.get("/film.mp4/.m3u8");
    edge.terminate();
    assert_eq!(response.status, 502);
    assert_eq!(
        response.header("headwater-error"),
        Some("upstream; the origin is not reachable")
    );
    assert_eq!(
        String::from_utf8(response.body).unwrap(),
        "502 Bad Gateway: the origin is not reachable\n"
    );
    for file in [&log, &records] {
        let text = std::fs::read_to_string(file).unwrap();
        let cause = format!("{address}: Connection refused");
        assert!(text.contains(&cause), "{}: {text}", file.display());
    }
}
