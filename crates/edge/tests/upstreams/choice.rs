//! Who is asked, and who next.

use crate::support::{Edge, Origin, head};
use crate::{KEEP, edge, named, nobody, sent, url};

#[test]
fn each_file_has_its_origin_and_all_edges_agree() {
    let origins = [named("a"), named("b"), named("c")];
    let addresses: Vec<_> = origins.iter().map(|(address, _)| *address).collect();
    let (one, other) = (edge(&addresses, &[]), edge(&addresses, &[]));
    let mut bodies = std::collections::BTreeSet::new();
    for n in 0..30 {
        let path = format!("/film/{n}.m4s");
        let body = one.get(&path).text();
        assert_eq!(body, other.get(&format!("{path}?x")).text());
        bodies.insert(body);
    }
    assert_eq!(bodies.len(), 3, "all have work");
}

#[test]
fn who_fails_is_passed_over_and_then_not_asked_for_a_while() {
    let (dead, (alive, seen)) = (nobody(), named("alive"));
    let flags = [
        "--origin-balance",
        "first",
        "--origin-failures",
        "2",
        "--origin-retry-after",
        "1h",
    ];
    let edge = edge(&[dead, alive], &flags);
    for n in 0..10 {
        let answer = edge.get(&format!("/{n}"));
        assert_eq!((answer.status, answer.text().as_str()), (200, "alive"));
    }
    assert_eq!(seen.lock().unwrap().len(), 10);
    assert_eq!(sent(&edge, dead, "failed"), 2);
    assert_eq!(
        edge.metric("headwater_upstream_retries_total{result=\"sent\"}"),
        2
    );
    assert_eq!(edge.metric("headwater_upstream_out_now"), 1);
}

#[test]
fn an_origin_that_says_it_cannot_is_passed_over_too_and_one_that_says_no_is_not() {
    let (busy, _) = Origin::answering(|asked| {
        let status = if asked.target() == "/no" { 404 } else { 503 };
        (status, vec![], b"busy".to_vec())
    });
    let (well, seen) = named("well");
    let edge = edge(
        &[busy, well],
        &["--origin-balance", "first", "--origin-failures", "99"],
    );
    assert_eq!(edge.get("/a").text(), "well");
    assert_eq!(edge.get("/no").status, 404);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn when_all_fail_they_are_not_asked_many_times_over() {
    let sick = || Origin::answering(|_| (503, vec![], b"sick".to_vec()));
    let (one, other) = (sick(), sick());
    let flags = ["--origin-retries", "0", "--origin-failures", "1000"];
    let edge = edge(&[one.0, other.0], &flags);
    for n in 0..100 {
        let answer = edge.get(&format!("/{n}"));
        assert_eq!((answer.status, answer.text().as_str()), (503, "sick"));
    }
    let asked = one.1.lock().unwrap().len() + other.1.lock().unwrap().len();
    let retried = edge.metric("headwater_upstream_retries_total{result=\"sent\"}");
    let spent = edge.metric("headwater_upstream_retries_total{result=\"spent\"}");
    assert_eq!(asked as u64, 100 + retried);
    // Ten to begin with, and one a second.
    assert!(retried < 80 && retried + spent == 100, "{retried} {spent}");
}

#[test]
fn one_origin_alone_is_asked_however_often_it_failed() {
    let dead = nobody();
    let edge = edge(
        &[dead],
        &["--origin-failures", "1", "--origin-retry-after", "1h"],
    );
    for _ in 0..3 {
        let answer = edge.get("/a");
        assert_eq!(answer.status, 502);
        let readers = answer.header("access-control-allow-origin");
        assert_eq!(readers.as_deref(), Some("*"), "a player may read it");
    }
    assert_eq!(sent(&edge, dead, "failed"), 3);
}

#[test]
fn a_rule_turns_to_a_pool_whose_answers_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (usual, archive) = (named("usual"), named("archive"));
    let config = folder.path().join("edge.toml");
    let text = format!(
        "[pool.archive]\norigin = [\"{}\"]\n\n\
         [[rule]]\nwhen = 'header[\"x-from\"] == \"archive\"'\npool = \"archive\"\n",
        url(archive.0)
    );
    std::fs::write(&config, text).unwrap();
    let edge = Edge::new(usual.0, &["--config", config.to_str().unwrap()]);
    for _ in 0..3 {
        assert_eq!(edge.get("/a").text(), "usual");
        assert_eq!(
            edge.ask("GET", "/a", &["X-From: archive"]).text(),
            "archive"
        );
        edge.until("headwater_cache_flights", 0);
    }
    assert_eq!(
        (
            usual.1.lock().unwrap().len(),
            archive.1.lock().unwrap().len()
        ),
        (1, 1)
    );
}

#[test]
fn a_slow_follower_of_a_dead_origin_hears_of_it() {
    let (one, other) = (Origin::new(), Origin::new());
    let edge = edge(
        &[one.address, other.address],
        &["--origin-balance", "first"],
    );
    let mut client = edge.connect();
    client.send("GET", "/a", &[]);
    let mut asked = one.next();
    asked.send(head(200, &[KEEP], Some(6)));
    asked.send("abc");
    client.head();
    assert_eq!(client.take(3), b"abc");
    drop(asked);
    // A body that has begun is cut, and never goes on with another origin's.
    assert_eq!(client.rest(), b"");
    assert_eq!(other.count(), 0);
}
