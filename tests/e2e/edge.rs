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
