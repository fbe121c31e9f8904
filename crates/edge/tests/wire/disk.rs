//! The disk tier: objects that memory has evicted are served from disk, even after a restart.

use crate::KEEP;
use crate::large::{make_film, respond_to_range};
use crate::support::{RawResponse, ScriptedOrigin, TestEdge};

const BODY_BYTES: usize = 1 << 20;

fn make_body(target: &str) -> Vec<u8> {
    let seed: usize = target.bytes().map(usize::from).sum();
    (0..BODY_BYTES)
        .map(|n| (n / 5 + n * 7 + seed) as u8)
        .collect()
}

/// Starts an origin. Each target has its own body and surrogate key. All responses have a
/// validator.
fn start_origin() -> (
    std::net::SocketAddr,
    std::sync::Arc<std::sync::Mutex<Vec<String>>>,
) {
    ScriptedOrigin::start_with(|exchange| {
        let target = exchange.target();
        let tag = format!("Surrogate-Key: all {}", target.trim_start_matches('/'));
        let lines = vec![KEEP.into(), tag, "ETag: \"1\"".into()];
        (200, lines, make_body(target))
    })
}

fn start_edge(address: std::net::SocketAddr, folder: &std::path::Path) -> TestEdge {
    let folder = folder.to_str().unwrap();
    TestEdge::new(address, &["--memory", "16MiB", "--disk-dir", folder])
}

fn is_disk_hit(response: &RawResponse) -> bool {
    response.cache_status() == "headwater; hit; detail=disk"
}

#[test]
fn evicted_objects_are_served_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (address, seen) = start_origin();
    let edge = start_edge(address, folder.path());
    let mut client = edge.connect();
    let targets: Vec<String> = (0..40).map(|n| format!("/{n}")).collect();
    let mut from_disk = 0;
    for round in 0..3 {
        for target in &targets {
            let response = client.request("GET", target, &[]);
            assert!(
                response.body == make_body(target),
                "{target} in round {round}"
            );
            from_disk += usize::from(is_disk_hit(&response));
            edge.wait_for_metric("headwater_cache_flights", 0);
            edge.wait_for_metric("headwater_cache_disk_waiting", 0);
        }
    }
    assert_eq!(seen.lock().unwrap().len(), targets.len());
    assert!(from_disk > targets.len(), "{from_disk}");
    assert!(edge.read_metric("headwater_cache_memory_bytes") <= 16 << 20);
    let kept = targets
        .iter()
        .find(|target| is_disk_hit(&client.request("GET", target, &[])));
    let target = kept.unwrap();
    for (line, range) in [
        ("Range: bytes=0-0", 0..1),
        ("Range: bytes=4095-8192", 4095..8193),
        ("Range: bytes=-5", BODY_BYTES - 5..BODY_BYTES),
    ] {
        let part = client.request("GET", target, &[line]);
        assert_eq!(part.status, 206);
        assert!(part.body == make_body(target)[range], "{line}");
    }
    let same = client.request("GET", target, &["If-None-Match: \"1\""]);
    assert_eq!(same.status, 304);
}

#[test]
fn a_restart_after_a_drain_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (address, seen) = ScriptedOrigin::start_with(|exchange| {
        let language = exchange.header("accept-language").unwrap_or("-").to_owned();
        let mut lines = vec![KEEP.to_owned()];
        if exchange.target() == "/varies" {
            lines.push("Vary: Accept-Language".into());
        }
        (200, lines, language.into_bytes())
    });
    let send_requests = |edge: &TestEdge| {
        let responses = [
            edge.request("GET", "/varies", &["Accept-Language: de"]),
            edge.request("GET", "/varies", &["Accept-Language: fr"]),
            edge.get_path("/plain"),
        ];
        assert_eq!(
            responses.clone().map(|response| response.text()),
            ["de", "fr", "-"]
        );
        edge.wait_for_metric("headwater_cache_flights", 0);
        responses
    };
    let mut first = start_edge(address, folder.path());
    send_requests(&first);
    first.drain();
    let second = start_edge(address, folder.path());
    second.wait_for_metric("headwater_cache_disk_objects", 4);
    let responses = send_requests(&second);
    assert!(responses.iter().all(is_disk_hit), "{responses:?}");
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[test]
fn blocks_are_stored_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let film = super::large::make_film(9);
    let served_film = film.clone();
    let (address, seen) = ScriptedOrigin::start_with(move |exchange| {
        super::large::respond_to_range(exchange, "\"1\"", &served_film)
    });
    let mut first = start_edge(address, folder.path());
    assert!(first.get_path("/film").body == film);
    first.wait_for_metric("headwater_cache_flights", 0);
    first.drain();
    let request_count = seen.lock().unwrap().len();
    let second = start_edge(address, folder.path());
    second.wait_for_metric("headwater_cache_disk_objects", 6);
    assert!(second.get_path("/film").body == film);
    let line = "Range: bytes=1048570-1048580";
    let part = second.request("GET", "/film", &[line]);
    assert!(part.body == film[1_048_570..=1_048_580]);
    assert_eq!(seen.lock().unwrap().len(), request_count);
}

#[test]
fn a_new_response_replaces_the_disk_entry() {
    let folder = tempfile::tempdir().unwrap();
    let origin = ScriptedOrigin::new();
    let edge = start_edge(origin.address, folder.path());
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next_request().respond(200, &stale, b"one");
    client.read_response("GET");
    edge.wait_for_metric("headwater_cache_flights", 0);
    // The second use writes the object to disk.
    for _ in 0..2 {
        client.send("GET", "/a", &["Cache-Control: max-stale"]);
        assert_eq!(client.read_response("GET").text(), "one");
    }
    edge.wait_for_metric("headwater_cache_disk_objects", 1);
    client.send("GET", "/a", &[]);
    origin
        .next_request()
        .respond(200, &[KEEP, "ETag: \"2\""], b"two");
    assert_eq!(client.read_response("GET").text(), "two");
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert_eq!(edge.read_metric("headwater_cache_disk_objects"), 0);
    assert_eq!(client.request("GET", "/a", &[]).text(), "two");
}

/// Regression: the edge tried four times to read such a block, and then responded with 502.
#[test]
fn a_block_that_cannot_be_read_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let film = make_film(0);
    let served_film = film.clone();
    let (address, seen) = ScriptedOrigin::start_with(move |exchange| {
        respond_to_range(exchange, "\"1\"", &served_film)
    });
    let mut edge = start_edge(address, folder.path());
    edge.request("GET", "/film", &["Range: bytes=0-9"]);
    edge.wait_for_metric("headwater_cache_flights", 0);
    edge.drain();
    let edge = start_edge(address, folder.path());
    edge.wait_for_metric("headwater_cache_disk_objects", 2);
    // Loads the head of the object into memory, but no block.
    assert_eq!(edge.request("HEAD", "/film", &[]).status, 200);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap() != "lock" {
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(&path).unwrap();
        }
    }
    let before = seen.lock().unwrap().len();
    let response = edge.request("GET", "/film", &["Range: bytes=0-9"]);
    assert_eq!((response.status, &response.body[..]), (206, &film[..10]));
    assert_eq!(seen.lock().unwrap().len(), before + 1);
}

/// Regression: an index of variants that was loaded from disk lists no variants, so a POST removed
/// only the index. After the next response, the old variants were found again.
#[test]
fn a_post_invalidates_the_variants_of_an_earlier_run() {
    let folder = tempfile::tempdir().unwrap();
    let version = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(1));
    let now = version.clone();
    let (address, _) = ScriptedOrigin::start_with(move |exchange| {
        let language = exchange.header("accept-language").unwrap_or("-");
        let version = now.load(std::sync::atomic::Ordering::SeqCst);
        let lines = vec![KEEP.into(), "Vary: Accept-Language".into()];
        (200, lines, format!("{language}{version}").into_bytes())
    });
    let ask = |edge: &TestEdge, language: &str| {
        let line = format!("Accept-Language: {language}");
        let response = edge.request("GET", "/a", &[&line]);
        edge.wait_for_metric("headwater_cache_flights", 0);
        response.text()
    };
    let mut edge = start_edge(address, folder.path());
    assert_eq!(
        (ask(&edge, "de"), ask(&edge, "fr")),
        ("de1".into(), "fr1".into())
    );
    edge.drain();
    let edge = start_edge(address, folder.path());
    edge.wait_for_metric("headwater_cache_disk_objects", 3);
    version.store(2, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(ask(&edge, "de"), "de1", "from disk");
    let posted = edge.request("POST", "/a", &["Content-Length: 0"]);
    assert_eq!(posted.status, 200);
    assert_eq!(
        (ask(&edge, "fr"), ask(&edge, "de")),
        ("fr2".into(), "de2".into())
    );
}
