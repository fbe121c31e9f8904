//! Purging: by URL, prefix and surrogate key, softly, and while something is being fetched.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{Answer, Edge, Origin, TOKEN, head};

const KEEP: &str = "Cache-Control: max-age=60";

struct Served {
    edge: Edge,
    _folder: tempfile::TempDir,
}

fn served(origin: std::net::SocketAddr) -> Served {
    served_with(origin, &[])
}

fn served_with(origin: std::net::SocketAddr, more: &[&str]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let flags = [
        "--admin",
        "127.0.0.1:0",
        "--admin-token-file",
        token.to_str().unwrap(),
    ];
    Served {
        edge: Edge::new(origin, &[&flags[..], more].concat()),
        _folder: folder,
    }
}

impl Served {
    fn admin(&self, method: &str, path: &str) -> Answer {
        let line = format!("Authorization: Bearer {TOKEN}");
        self.edge.admin(method, path, &[&line])
    }

    fn purge(&self, what: &str) -> String {
        let answer = self.admin("POST", &format!("/purge?{what}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text().trim().to_owned()
    }

    fn is_hit(&self, path: &str) -> bool {
        self.edge
            .get(path)
            .header("cache-status")
            .unwrap()
            .contains("; hit")
    }
}

#[test]
fn what_is_purged_is_asked_for_again_and_nothing_else() {
    let (address, _) = Origin::answering(|exchange| {
        let tag = format!(
            "Surrogate-Key: all {}",
            exchange.target().trim_start_matches('/')
        );
        let vary = "Vary: Accept-Language".to_owned();
        (200, vec![KEEP.into(), tag, vary], b"x".to_vec())
    });
    let served = served(address);
    let paths = ["/film/1", "/film/2", "/other", "/third"];
    let fill = || {
        for path in paths {
            served.edge.get(path);
        }
        served.edge.until("headwater_cache_flights", 0);
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
            served.purge(what),
            format!("{{\"purged\":{}}}", gone.len()),
            "{what}"
        );
        for path in paths {
            assert_eq!(served.is_hit(path), !gone.contains(&path), "{what} {path}");
        }
        served.edge.until("headwater_cache_flights", 0);
    }
}

#[test]
fn purged_softly_it_is_confirmed_first() {
    let origin = Origin::new();
    let served = served(origin.address);
    let mut client = served.edge.connect();
    client.send("GET", "/a", &[]);
    origin.next().answer(200, &[KEEP, "ETag: \"1\""], b"one");
    client.answer("GET");
    served.edge.until("headwater_cache_objects", 1);
    served.purge("url=/a&soft");
    client.send("GET", "/a", &[]);
    let asked = origin.next();
    assert_eq!(asked.header("if-none-match"), Some("\"1\""));
    asked.answer(304, &[KEEP], b"");
    assert_eq!(client.answer("GET").text(), "one");
    served.edge.until("headwater_cache_flights", 0);
    assert!(served.is_hit("/a"));
}

#[test]
fn what_is_fetched_while_it_is_purged_is_delivered_and_not_kept() {
    let origin = Origin::new();
    let served = served(origin.address);
    let mut client = served.edge.connect();
    client.send("GET", "/a", &[]);
    let mut old = origin.next();
    old.send(head(200, &[KEEP, "Surrogate-Key: film"], Some(6)));
    old.send("old");
    client.head();
    assert_eq!(client.take(3), b"old");
    assert_eq!(served.purge("tag=film"), "{\"purged\":1}");
    // Who asks from now on is not given what was purged.
    let mut later = served.edge.connect();
    later.send("GET", "/a", &[]);
    let new = origin.next();
    old.send("old");
    old.done();
    assert_eq!(client.take(3), b"old");
    new.answer(200, &[KEEP], b"new");
    assert_eq!(later.answer("GET").text(), "new");
    served.edge.until("headwater_cache_flights", 0);
    served.edge.until("headwater_cache_objects", 1);
    assert_eq!(served.edge.get("/a").text(), "new");
    assert_eq!(origin.count(), 2);
}

#[test]
fn the_admin_port_wants_its_token_and_shows_what_is_kept() {
    let (address, _) = Origin::answering(|_| (200, vec![KEEP.into()], b"x".to_vec()));
    let served = served(address);
    for path in ["/", "/status", "/metrics", "/purge?url=/a"] {
        assert_eq!(served.edge.admin("GET", path, &[]).status, 401, "{path}");
    }
    served.edge.get("/b?x&y");
    served.edge.get("/a");
    served.edge.until("headwater_cache_objects", 2);
    served.edge.get("/a");
    let status: serde_json::Value =
        serde_json::from_slice(&served.admin("GET", "/status").body).unwrap();
    assert_eq!(status["objects"], 2);
    assert_eq!(status["top"][0]["key"], "/a");
    assert_eq!(status["results"]["hit"], 1);
    assert_eq!(status["top"][1]["key"], "/b?x&y");
    let page = served.admin("GET", "/");
    assert!(page.header("content-security-policy").is_some() && page.text().contains("<script>"));
    assert_eq!(served.admin("POST", "/purge?all").status, 400);
    let token = format!("Authorization: Bearer {TOKEN}");
    let lines = [token.as_str(), "Sec-Fetch-Site: cross-site"];
    let foreign = served.edge.admin("POST", "/purge?url=/a", &lines);
    assert_eq!(foreign.status, 403);
    assert_eq!(served.admin("GET", "/nothing").status, 404);
}

#[test]
fn what_is_purged_is_not_found_on_disk() {
    let (address, _) = Origin::answering(|exchange| {
        let tag = format!(
            "Surrogate-Key: t{}",
            exchange.target().trim_start_matches('/')
        );
        (200, vec![KEEP.into(), tag], vec![7; 1 << 20])
    });
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().to_str().unwrap();
    let served = served_with(address, &["--memory", "16MiB", "--disk-dir", disk]);
    for n in 0..40 {
        served.edge.get(&format!("/{n}"));
        served.edge.until("headwater_cache_flights", 0);
        served.edge.until("headwater_cache_disk_waiting", 0);
    }
    assert!(served.edge.metric("headwater_cache_disk_objects") > 10);
    assert!(served.is_hit("/0") && served.is_hit("/1") && served.is_hit("/20"));
    served.purge("tag=t0");
    served.purge("url=/1");
    assert!(!served.is_hit("/0") && !served.is_hit("/1"));
    served.purge("prefix=/&soft");
    assert_eq!(served.edge.metric("headwater_cache_disk_objects"), 0);
    served.purge("prefix=/");
    for n in 0..40 {
        assert!(!served.is_hit(&format!("/{n}")), "{n}");
    }
}

/// The 304 may have been on its way before the purge.
#[test]
fn what_is_purged_while_it_is_confirmed_is_not_kept() {
    let origin = Origin::new();
    let served = served(origin.address);
    let mut client = served.edge.connect();
    client.send("GET", "/a", &[]);
    let stale = ["Cache-Control: max-age=5", "Age: 5", "ETag: \"1\""];
    origin.next().answer(200, &stale, b"old");
    client.answer("GET");
    served.edge.until("headwater_cache_flights", 0);
    client.send("GET", "/a", &[]);
    let asked = origin.next();
    assert_eq!(asked.header("if-none-match"), Some("\"1\""));
    served.purge("url=/a");
    asked.answer(304, &[KEEP], b"");
    assert_eq!(
        client.answer("GET").text(),
        "old",
        "for whoever asked before"
    );
    client.send("GET", "/a", &[]);
    let again = origin.next();
    assert_eq!(again.header("if-none-match"), None);
    again.answer(200, &[KEEP], b"new");
    assert_eq!(client.answer("GET").text(), "new");
}
