//! The disk tier: what leaves memory comes back from disk, over restarts too.

use crate::KEEP;
use crate::support::{Answer, Edge, Origin};

const BODY_BYTES: usize = 1 << 20;

fn body(target: &str) -> Vec<u8> {
    let seed: usize = target.bytes().map(usize::from).sum();
    (0..BODY_BYTES)
        .map(|n| (n / 5 + n * 7 + seed) as u8)
        .collect()
}

/// An origin with a body, a tag and a validator for each target.
fn origin() -> (
    std::net::SocketAddr,
    std::sync::Arc<std::sync::Mutex<Vec<String>>>,
) {
    Origin::answering(|exchange| {
        let target = exchange.target();
        let tag = format!("Surrogate-Key: all {}", target.trim_start_matches('/'));
        let lines = vec![KEEP.into(), tag, "ETag: \"1\"".into()];
        (200, lines, body(target))
    })
}

fn edge(address: std::net::SocketAddr, folder: &std::path::Path) -> Edge {
    let folder = folder.to_str().unwrap();
    Edge::new(address, &["--memory", "16MiB", "--disk-dir", folder])
}

fn on_disk(answer: &Answer) -> bool {
    answer.cache() == "headwater; hit; detail=disk"
}

#[test]
fn what_leaves_memory_is_served_from_disk_and_the_origin_asked_once() {
    let folder = tempfile::tempdir().unwrap();
    let (address, seen) = origin();
    let edge = edge(address, folder.path());
    let mut client = edge.connect();
    let targets: Vec<String> = (0..40).map(|n| format!("/{n}")).collect();
    let mut from_disk = 0;
    for round in 0..3 {
        for target in &targets {
            let answer = client.ask("GET", target, &[]);
            assert!(answer.body == body(target), "{target} in round {round}");
            from_disk += usize::from(on_disk(&answer));
            edge.until("headwater_cache_flights", 0);
            edge.until("headwater_cache_disk_waiting", 0);
        }
    }
    assert_eq!(seen.lock().unwrap().len(), targets.len());
    assert!(from_disk > targets.len(), "{from_disk}");
    assert!(edge.metric("headwater_cache_memory_bytes") <= 16 << 20);
    let kept = targets
        .iter()
        .find(|target| on_disk(&client.ask("GET", target, &[])));
    let target = kept.unwrap();
    for (line, range) in [
        ("Range: bytes=0-0", 0..1),
        ("Range: bytes=4095-8192", 4095..8193),
        ("Range: bytes=-5", BODY_BYTES - 5..BODY_BYTES),
    ] {
        let part = client.ask("GET", target, &[line]);
        assert_eq!(part.status, 206);
        assert!(part.body == body(target)[range], "{line}");
    }
    let same = client.ask("GET", target, &["If-None-Match: \"1\""]);
    assert_eq!(same.status, 304);
}

#[test]
fn a_restart_loses_nothing_that_was_drained() {
    let folder = tempfile::tempdir().unwrap();
    let (address, seen) = Origin::answering(|exchange| {
        let said = exchange.header("accept-language").unwrap_or("-").to_owned();
        let mut lines = vec![KEEP.to_owned()];
        if exchange.target() == "/varies" {
            lines.push("Vary: Accept-Language".into());
        }
        (200, lines, said.into_bytes())
    });
    let ask = |edge: &Edge| {
        let answers = [
            edge.ask("GET", "/varies", &["Accept-Language: de"]),
            edge.ask("GET", "/varies", &["Accept-Language: fr"]),
            edge.get("/plain"),
        ];
        assert_eq!(
            answers.clone().map(|answer| answer.text()),
            ["de", "fr", "-"]
        );
        edge.until("headwater_cache_flights", 0);
        answers
    };
    let mut first = edge(address, folder.path());
    ask(&first);
    first.drain();
    let second = edge(address, folder.path());
    second.until("headwater_cache_disk_objects", 4);
    let answers = ask(&second);
    assert!(answers.iter().all(on_disk), "{answers:?}");
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[test]
fn parts_are_kept_on_disk_too() {
    let folder = tempfile::tempdir().unwrap();
    let film = super::large::film(9);
    let answered = film.clone();
    let (address, seen) =
        Origin::answering(move |exchange| super::large::ranged(exchange, "\"1\"", &answered));
    let mut first = edge(address, folder.path());
    assert!(first.get("/film").body == film);
    first.until("headwater_cache_flights", 0);
    first.drain();
    let asked = seen.lock().unwrap().len();
    let second = edge(address, folder.path());
    second.until("headwater_cache_disk_objects", 6);
    assert!(second.get("/film").body == film);
    let line = "Range: bytes=1048570-1048580";
    let part = second.ask("GET", "/film", &[line]);
    assert!(part.body == film[1_048_570..=1_048_580]);
    assert_eq!(seen.lock().unwrap().len(), asked);
}

#[test]
fn what_is_new_replaces_what_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::new();
    let edge = edge(origin.address, folder.path());
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next().answer(200, &stale, b"one");
    client.answer("GET");
    edge.until("headwater_cache_flights", 0);
    // Used again, so it goes to disk.
    for _ in 0..2 {
        client.send("GET", "/a", &["Cache-Control: max-stale"]);
        assert_eq!(client.answer("GET").text(), "one");
    }
    edge.until("headwater_cache_disk_objects", 1);
    client.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP, "ETag: \"2\""], b"two");
    assert_eq!(client.answer("GET").text(), "two");
    edge.until("headwater_cache_flights", 0);
    assert_eq!(edge.metric("headwater_cache_disk_objects"), 0);
    assert_eq!(client.ask("GET", "/a", &[]).text(), "two");
}
