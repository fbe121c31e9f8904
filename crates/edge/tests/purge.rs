//! Purges by URL, prefix and surrogate key, soft purges, and purges during a fetch.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{ADMIN_TOKEN, RawResponse, ScriptedOrigin, TestEdge, format_head};

const KEEP: &str = "Cache-Control: max-age=60";

struct PurgeSetup {
    edge: TestEdge,
    _folder: tempfile::TempDir,
}

fn start_setup(origin: std::net::SocketAddr) -> PurgeSetup {
    start_setup_with(origin, &[])
}

fn start_setup_with(origin: std::net::SocketAddr, more: &[&str]) -> PurgeSetup {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{ADMIN_TOKEN}\n")).unwrap();
    let flags = [
        "--admin",
        "127.0.0.1:0",
        "--admin-token-file",
        token.to_str().unwrap(),
    ];
    PurgeSetup {
        edge: TestEdge::new(origin, &[&flags[..], more].concat()),
        _folder: folder,
    }
}

impl PurgeSetup {
    fn request_admin(&self, method: &str, path: &str) -> RawResponse {
        let line = format!("Authorization: Bearer {ADMIN_TOKEN}");
        self.edge.request_admin(method, path, &[&line])
    }

    fn purge_query(&self, what: &str) -> String {
        let response = self.request_admin("POST", &format!("/purge?{what}"));
        assert_eq!(response.status, 200, "{}", response.text());
        response.text().trim().to_owned()
    }

    fn is_hit(&self, path: &str) -> bool {
        self.edge
            .get_path(path)
            .header("cache-status")
            .unwrap()
            .contains("; hit")
    }
}

#[test]
fn a_purge_removes_its_target_and_nothing_else() {
    let (address, _) = ScriptedOrigin::start_with(|exchange| {
        let tag = format!(
            "Surrogate-Key: all {}",
            exchange.target().trim_start_matches('/')
        );
        let vary = "Vary: Accept-Language".to_owned();
        (200, vec![KEEP.into(), tag, vary], b"x".to_vec())
    });
    let served = start_setup(address);
    let paths = ["/film/1", "/film/2", "/other", "/third"];
    let fill = || {
        for path in paths {
            served.edge.get_path(path);
        }
        served.edge.wait_for_metric("headwater_cache_flights", 0);
    };
    fill();
    for (what, gone) in [
        ("url=/film/1", &paths[..1]),
        ("prefix=/film/", &paths[..2]),
        ("tag=other", &paths[2..3]),
        ("tag=all", &paths[..]),
        ("url=/film", &[]),
        ("tag=al", &[]),
    ] {
        fill();
        assert_eq!(
            served.purge_query(what),
            format!("{{\"purged\":{}}}", gone.len()),
            "{what}"
        );
        for path in paths {
            assert_eq!(served.is_hit(path), !gone.contains(&path), "{what} {path}");
        }
        served.edge.wait_for_metric("headwater_cache_flights", 0);
    }
}

#[test]
fn a_soft_purge_revalidates_before_the_next_use() {
    let origin = ScriptedOrigin::new();
    let served = start_setup(origin.address);
    let mut client = served.edge.connect();
    client.send("GET", "/a", &[]);
    origin
        .next_request()
        .respond(200, &[KEEP, "ETag: \"1\""], b"one");
    client.read_response("GET");
    served.edge.wait_for_metric("headwater_cache_objects", 1);
    served.purge_query("url=/a&soft");
    client.send("GET", "/a", &[]);
    let exchange = origin.next_request();
    assert_eq!(exchange.header("if-none-match"), Some("\"1\""));
    exchange.respond(304, &[KEEP], b"");
    assert_eq!(client.read_response("GET").text(), "one");
    served.edge.wait_for_metric("headwater_cache_flights", 0);
    assert!(served.is_hit("/a"));
}

#[test]
fn a_purge_during_a_fetch_prevents_storage() {
    let origin = ScriptedOrigin::new();
    let served = start_setup(origin.address);
    let mut client = served.edge.connect();
    client.send("GET", "/a", &[]);
    let mut old = origin.next_request();
    old.send(format_head(200, &[KEEP, "Surrogate-Key: film"], Some(6)));
    old.send("old");
    client.read_head();
    assert_eq!(client.take(3), b"old");
    assert_eq!(served.purge_query("tag=film"), "{\"purged\":1}");
    // Later requests do not get the purged response.
    let mut later = served.edge.connect();
    later.send("GET", "/a", &[]);
    let new = origin.next_request();
    old.send("old");
    old.finish();
    assert_eq!(client.take(3), b"old");
    new.respond(200, &[KEEP], b"new");
    assert_eq!(later.read_response("GET").text(), "new");
    served.edge.wait_for_metric("headwater_cache_flights", 0);
    served.edge.wait_for_metric("headwater_cache_objects", 1);
    assert_eq!(served.edge.get_path("/a").text(), "new");
    assert_eq!(origin.request_count(), 2);
}

#[test]
fn the_admin_port_requires_its_token_and_lists_objects() {
    let (address, _) = ScriptedOrigin::start_with(|_| (200, vec![KEEP.into()], b"x".to_vec()));
    let served = start_setup(address);
    for path in ["/", "/status", "/metrics", "/purge?url=/a"] {
        assert_eq!(
            served.edge.request_admin("GET", path, &[]).status,
            401,
            "{path}"
        );
    }
    served.edge.get_path("/b?x&y");
    served.edge.get_path("/a");
    served.edge.wait_for_metric("headwater_cache_objects", 2);
    served.edge.get_path("/a");
    let status: serde_json::Value =
        serde_json::from_slice(&served.request_admin("GET", "/status").body).unwrap();
    assert_eq!(status["objects"], 2);
    assert_eq!(status["top"][0]["key"], "/a");
    assert_eq!(status["results"]["hit"], 1);
    assert_eq!(status["top"][1]["key"], "/b?x&y");
    let page = served.request_admin("GET", "/");
    assert!(page.header("content-security-policy").is_some() && page.text().contains("<script>"));
    assert_eq!(served.request_admin("POST", "/purge?all").status, 400);
    let token = format!("Authorization: Bearer {ADMIN_TOKEN}");
    let lines = [token.as_str(), "Sec-Fetch-Site: cross-site"];
    let foreign = served.edge.request_admin("POST", "/purge?url=/a", &lines);
    assert_eq!(foreign.status, 403);
    assert_eq!(served.request_admin("GET", "/nothing").status, 404);
}

#[test]
fn a_purge_removes_disk_entries() {
    let (address, _) = ScriptedOrigin::start_with(|exchange| {
        let tag = format!(
            "Surrogate-Key: t{}",
            exchange.target().trim_start_matches('/')
        );
        (200, vec![KEEP.into(), tag], vec![7; 1 << 20])
    });
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().to_str().unwrap();
    let served = start_setup_with(address, &["--memory", "16MiB", "--disk-dir", disk]);
    for n in 0..40 {
        served.edge.get_path(&format!("/{n}"));
        served.edge.wait_for_metric("headwater_cache_flights", 0);
        served
            .edge
            .wait_for_metric("headwater_cache_disk_waiting", 0);
    }
    assert!(served.edge.read_metric("headwater_cache_disk_objects") > 10);
    assert!(served.is_hit("/0") && served.is_hit("/1") && served.is_hit("/20"));
    served.purge_query("tag=t0");
    served.purge_query("url=/1");
    assert!(!served.is_hit("/0") && !served.is_hit("/1"));
    served.purge_query("prefix=/&soft");
    assert_eq!(served.edge.read_metric("headwater_cache_disk_objects"), 0);
    served.purge_query("prefix=/");
    for n in 0..40 {
        assert!(!served.is_hit(&format!("/{n}")), "{n}");
    }
}

/// The origin may have sent the 304 before the purge, so the 304 must not make the purged object
/// fresh.
#[test]
fn a_purge_during_a_revalidation_prevents_storage() {
    let origin = ScriptedOrigin::new();
    let served = start_setup(origin.address);
    let mut client = served.edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next_request().respond(200, &stale, b"old");
    client.read_response("GET");
    served.edge.wait_for_metric("headwater_cache_flights", 0);
    client.send("GET", "/a", &[]);
    let exchange = origin.next_request();
    assert_eq!(exchange.header("if-none-match"), Some("\"1\""));
    served.purge_query("url=/a");
    exchange.respond(304, &[KEEP], b"");
    assert_eq!(
        client.read_response("GET").text(),
        "old",
        "for the client that sent its request before the purge"
    );
    client.send("GET", "/a", &[]);
    let again = origin.next_request();
    assert_eq!(again.header("if-none-match"), None);
    again.respond(200, &[KEEP], b"new");
    assert_eq!(client.read_response("GET").text(), "new");
}

/// Spellings with and without escaped unreserved characters are equivalent (RFC 3986 section
/// 6.2.2.2). The origin receives the spelling that the client sent.
#[test]
fn spellings_of_a_target_share_its_entry_and_its_purge() {
    let (address, seen) = ScriptedOrigin::start_with(|_| (200, vec![KEEP.into()], b"x".to_vec()));
    let setup = start_setup(address);
    for purge in ["url=/film/n", "url=/%66ilm/%6E", "prefix=/%66ilm/"] {
        setup.edge.get_path("/fil%6d/%6e");
        setup.edge.wait_for_metric("headwater_cache_flights", 0);
        for path in ["/film/n", "/film/%6E", "/%66ilm/n"] {
            assert!(setup.is_hit(path), "{path}");
        }
        setup.purge_query(purge);
    }
    let targets: Vec<String> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|head| head.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(targets, ["/fil%6d/%6e"; 3]);
    // A target with an escaped reserved character is a different target.
    setup.edge.get_path("/a%2fb");
    setup.edge.wait_for_metric("headwater_cache_flights", 0);
    assert!(!setup.is_hit("/a/b"));
}
