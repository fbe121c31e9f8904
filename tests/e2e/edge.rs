//! `headwater edge` in front of `headwater serve`: a real player's film, through both.

use crate::ffmpeg;
use crate::support::{Server, fixture};
use std::collections::HashMap;

/// Both players' ways: each URL is asked of the origin once, and the pictures are the same.
#[test]
fn a_film_plays_through_the_edge_and_the_origin_sends_each_thing_once() {
    let Some(film) = fixture("avc.mp4") else {
        return;
    };
    let records = crate::support::Folder::new();
    let path = records.0.join("origin.jsonl");
    let source = film.to_str().unwrap();
    let flags = [
        source,
        "--segment",
        "2s",
        "--records",
        path.to_str().unwrap(),
    ];
    let mut origin = Server::start(&flags);
    let url = origin.url("");
    let mut edge = Server::start_as("edge", &["--origin", &url]);
    let direct = ffmpeg::pictures(&film.display().to_string());
    for manifest in [".m3u8", ".mpd"] {
        let through = edge.url(&format!("/avc.mp4/{manifest}"));
        assert_eq!(ffmpeg::pictures(&through), direct, "{manifest}");
        assert_eq!(ffmpeg::pictures(&through), direct, "{manifest} again");
    }
    assert_eq!(edge.terminate(), Some(0));
    assert_eq!(origin.terminate(), Some(0));
    let text = std::fs::read_to_string(path).unwrap();
    let mut segments = HashMap::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["kind"] == "segment" || line["kind"] == "init" {
            let asked = segments.entry(line["path"].to_string()).or_insert(0);
            *asked += 1;
        }
    }
    assert!(segments.len() > 3, "{segments:?}");
    assert!(segments.values().all(|asked| *asked == 1), "{segments:?}");
}

/// SIGHUP reads the settings again; what means nothing changes nothing; and nobody is hung up on.
#[test]
fn a_hangup_reads_the_settings_again() {
    let folder = crate::support::Folder::new();
    let mut origin = Server::start(&[]);
    let settings = |status: &str| {
        let url = origin.url("");
        let rule = format!("[[rule]]\nwhen = 'path == \"/no\"'\ndeny = {status}\n");
        folder.put(
            "edge.toml",
            format!("origin = \"{url}\"\n{rule}").as_bytes(),
        )
    };
    let path = settings("403");
    let mut edge = Server::start_as("edge", &["--config", path.to_str().unwrap()]);
    assert_eq!(edge.get("/no").status, 403);
    settings("410");
    edge.signal("HUP");
    let mut tries = 0;
    while edge.get("/no").status != 410 {
        tries += 1;
        assert!(tries < 1000, "the settings are the old ones");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    settings("9999");
    edge.signal("HUP");
    assert_eq!(edge.get("/no").status, 410);
    assert_eq!(edge.get("/").status, 200);
    assert_eq!(edge.terminate(), Some(0));
    assert_eq!(origin.terminate(), Some(0));
}

/// `edge explain` says which rule wins, why others do not, and what is wrong with what it is given.
#[test]
fn explain_says_which_rule_applies_and_why() {
    let folder = crate::support::Folder::new();
    let rules = "[networks]\nmobile = [\"10.0.0.0/8\"]\n\
        [[rule]]\nname = \"far\"\nwhen = 'client.net == \"mobile\" && cache == \"miss\"'\npace = 9000\n\
        [[rule]]\nname = \"slow\"\nwhen = 'path.endsWith(\".m4s\")'\n\
        pace = \"2.0 * cmcd.tb\"\ncongestion = \"reno\"\n";
    let config = folder.put("edge.toml", rules.as_bytes());
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
    let (well, said, _) = explain(&[url, "--client", "10.1.2.3"]);
    assert!(well, "{said}");
    let (first, second) = said.split_once("slow: matches").unwrap();
    assert!(first.contains("far: does not match"), "{said}");
    assert!(
        second.contains("reno") && second.contains("pace: 12000 kbit/s"),
        "{said}"
    );
    let (_, said, _) = explain(&[url, "--client", "10.1.2.3", "--cache", "miss"]);
    assert!(
        said.contains("far: matches") && !said.contains("slow"),
        "{said}"
    );
    let (_, said, _) = explain(&["/film.mpd"]);
    assert!(said.contains("no rule matches"), "{said}");
    for wrong in [["--client", "ten"], ["--cache", "lucky"], ["--header", "x"]] {
        let (well, _, why) = explain(&[url, wrong[0], wrong[1]]);
        assert!(!well && why.contains(wrong[1]), "{wrong:?}: {why}");
    }
}
