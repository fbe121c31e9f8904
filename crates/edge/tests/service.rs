//! The edge as something that is run: reloads, relays before it, its own paths.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use support::{AUTHORIZED, Answer, Edge, Origin, TOKEN};

struct Served {
    edge: Edge,
    config: PathBuf,
    _folder: tempfile::TempDir,
}

/// With an admin port, and this settings file.
fn served(text: &str, flags: &[&str]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let (config, token) = (folder.path().join("edge.toml"), folder.path().join("token"));
    std::fs::write(&config, text).unwrap();
    std::fs::write(&token, TOKEN).unwrap();
    let mut words = vec!["edge", "--listen", "127.0.0.1:0", "--workers", "2"];
    words.extend([
        "--admin",
        "127.0.0.1:0",
        "--config",
        config.to_str().unwrap(),
    ]);
    words.extend(["--admin-token-file", token.to_str().unwrap()]);
    words.extend(flags);
    let edge = Edge::start(words.iter());
    Served {
        edge,
        config,
        _folder: folder,
    }
}

impl Served {
    fn reload(&self, text: &str) -> Answer {
        std::fs::write(&self.config, text).unwrap();
        self.edge.admin("POST", "/reload", &[AUTHORIZED])
    }
}

fn origin(name: &'static str) -> String {
    let lines = vec!["Cache-Control: no-store".to_owned()];
    let (address, _) = Origin::answering(move |_| (200, lines.clone(), name.into()));
    format!("origin = \"http://{address}\"\n")
}

#[test]
fn a_reload_changes_origins_and_rules_and_loses_no_request() {
    let (old, new) = (origin("old"), origin("new"));
    let rule = |status| format!("[[rule]]\nwhen = 'path == \"/no\"'\ndeny = {status}\n");
    let served = served(&(old.clone() + &rule(403)), &[]);
    let kept = std::sync::Mutex::new(served.edge.connect());
    let ask = |path: &str| kept.lock().unwrap().ask("GET", path, &[]);
    assert_eq!(ask("/a").text(), "old");
    assert_eq!(ask("/no").status, 403);
    let over = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut client, mut count) = (served.edge.connect(), 0);
                    while !over.load(SeqCst) {
                        let answer = client.ask("GET", "/a", &[]);
                        assert_eq!(answer.status, 200, "{}", answer.head);
                        assert!(["old", "new"].contains(&answer.text().as_str()));
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for round in 0..20 {
            let text = if round % 2 == 0 { &new } else { &old };
            let answer = served.reload(&(text.clone() + &rule(410)));
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        served.reload(&(new.clone() + &rule(410)));
        over.store(true, SeqCst);
        asking
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<i32>>()
    });
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(
        ask("/a").text(),
        "new",
        "on a connection that was open before"
    );
    assert_eq!(ask("/no").status, 410);
}

/// As logrotate does it: moved away, told so by SIGHUP, while requests go on.
#[test]
fn records_that_are_moved_away_go_on_in_a_new_file_and_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let records = at("records.jsonl");
    let mut served = served(&origin("o"), &["--records", records.to_str().unwrap()]);
    let ours = rustix::process::getpid();
    let mut client = served.edge.connect();
    let mut ask = |count: usize| {
        for _ in 0..count {
            client.ask("GET", "/a", &[]);
        }
        count
    };
    let mut asked = ask(100);
    for turn in 0..3 {
        std::fs::rename(&records, at(&format!("old{turn}"))).unwrap();
        asked += ask(50);
        rustix::process::kill_process(ours, rustix::process::Signal::HUP).unwrap();
        asked += ask(50);
        served
            .edge
            .until("headwater_records_reopened_total", turn + 1);
        asked += ask(50);
    }
    served.edge.drain();
    let lines = |name: &str| {
        let text = std::fs::read_to_string(at(name)).unwrap();
        let of_requests = |line: &&str| line.contains("\"path\":\"/a\"");
        text.lines().filter(of_requests).count()
    };
    let written = ["old0", "old1", "old2", "records.jsonl"].map(lines);
    assert_eq!(written.iter().sum::<usize>(), asked, "{written:?}");
    assert!(written.iter().all(|count| *count > 0), "{written:?}");
}

#[test]
fn settings_that_mean_nothing_change_nothing_and_say_where() {
    let text = origin("old");
    let served = served(&text, &[]);
    let wrong = text.clone() + "[[rule]]\nwhen = 'path.startsWith('\ndeny = 403\n";
    let answer = served.reload(&wrong);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("edge.toml:3"), "{}", answer.text());
    assert_eq!(served.reload("origin = 1\n[pool.x]\n").status, 400);
    assert_eq!(served.edge.get("/a").text(), "old");
    std::fs::remove_file(&served.config).unwrap();
    assert_eq!(
        served.edge.admin("POST", "/reload", &[AUTHORIZED]).status,
        400
    );
    assert_eq!(served.edge.get("/a").text(), "old");
}

#[test]
fn what_takes_a_restart_is_named_and_stays() {
    let text = origin("o");
    let served = served(&text, &[]);
    let answer = served.reload(&(text + "memory = \"32MiB\"\nidle-timeout = \"9s\"\n"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(said["takes_a_restart"][0], "memory");
    assert_eq!(said["takes_a_restart"][1], "what all servers have");
}

#[test]
fn what_is_kept_and_counted_outlives_a_reload() {
    let lines = vec!["Cache-Control: max-age=60".to_owned()];
    let (address, seen) = Origin::answering(move |_| (200, lines.clone(), b"x".to_vec()));
    let text = format!("origin = \"http://{address}\"\n");
    let served = served(&text, &[]);
    served.edge.get("/a");
    served.edge.until("headwater_cache_objects", 1);
    assert_eq!(served.reload(&text).status, 200);
    assert!(served.edge.get("/a").cache().contains("; hit"));
    assert_eq!(seen.lock().unwrap().len(), 1);
    let misses = served
        .edge
        .metric("headwater_cache_requests_total{result=\"miss\"}");
    assert_eq!(misses, 1);
    assert_eq!(
        served
            .edge
            .metric("headwater_upstream_connections_opened_total"),
        1
    );
}

#[test]
fn only_a_trusted_relay_says_whose_request_it_is() {
    let rules = "[networks]\nbad = [\"192.0.2.0/24\"]\n\
                 [[rule]]\nwhen = 'client.net == \"bad\"'\ndeny = 403\n";
    let lines = ["X-Forwarded-For: 198.51.100.1, 192.0.2.9"];
    for (trusted, status) in [("127.0.0.0/8", 403), ("10.0.0.0/8", 200)] {
        let text = origin("o") + rules;
        let served = served(&text, &["--trust-forwarded", trusted]);
        assert_eq!(
            served.edge.ask("GET", "/a", &lines).status,
            status,
            "{trusted}"
        );
        assert_eq!(served.edge.get("/a").status, 200);
    }
}

/// Without an admin port the edge answers them itself; with one, they are the origin's.
#[test]
fn its_own_paths_move_to_the_admin_port_where_there_is_one() {
    let served = served(&origin("the origin's"), &[]);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(served.edge.get(path).text(), "the origin's", "{path}");
    }
    assert_eq!(served.edge.admin("GET", "/healthz", &[]).status, 200);
    assert_eq!(served.edge.admin("GET", "/readyz", &[]).status, 200);
    assert_eq!(served.edge.admin("GET", "/metrics", &[]).status, 401);
    let (address, seen) = Origin::answering(|_| (200, vec![], b"no".to_vec()));
    let alone = Edge::new(address, &[]);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(alone.get(path).status, 200, "{path}");
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
}

#[test]
fn the_status_tells_of_origins_and_connections() {
    let served = served(&origin("o"), &[]);
    let mut clients: Vec<_> = (0..3).map(|_| served.edge.connect()).collect();
    for client in &mut clients {
        client.ask("GET", "/a", &[]);
    }
    let answer = served.edge.admin("GET", "/status", &[AUTHORIZED]);
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(status["connections"]["open"], 3);
    let by = &status["connections"]["by_algorithm"][0];
    assert_eq!(by["connections"], 3);
    assert!(by["rtt_us"].as_u64().unwrap() > 0);
    assert_eq!(status["origins"][0]["share"], 1.0);
    assert_eq!(status["origins"][0]["answers"], 3);
}

/// `Cache-Status`, records and metrics call what became of a request by one name.
#[test]
fn what_became_of_a_request_has_one_name_in_header_record_and_metric() {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");
    let address = Origin::answering(|asked| {
        let kept = if asked.target() == "/mine" {
            "private"
        } else {
            "max-age=60"
        };
        (200, vec![format!("Cache-Control: {kept}")], b"x".to_vec())
    });
    let text = format!(
        "origin = \"http://{}\"\n[[rule]]\nwhen = 'path == \"/no\"'\ndeny = 403\n\
         [[rule]]\nwhen = 'path == \"/past\"'\npass = true\n",
        address.0
    );
    let mut served = served(&text, &["--records", records.to_str().unwrap()]);
    // Method, target, a header; what became of it, and why it was not kept, if that is said.
    let asks = [
        ("GET", "/a", "X: y", "miss absent", None),
        ("GET", "/a", "X: y", "hit fresh", None),
        (
            "GET",
            "/b",
            "Cache-Control: no-store",
            "pass request-no-store",
            None,
        ),
        ("OPTIONS", "/a", "X: y", "pass method", None),
        ("GET", "/mine", "X: y", "miss absent", Some("private")),
        ("GET", "/past", "X: y", "pass rule", None),
        ("GET", "/no", "X: y", "denied rule", None),
    ];
    let mut counts = BTreeMap::new();
    for (method, path, line, name, not_kept) in asks {
        let said = served.edge.ask(method, path, &[line]).cache();
        let (result, reason) = name.split_once(' ').unwrap();
        let detail = not_kept.unwrap_or(reason);
        assert!(
            said.ends_with(&format!("; detail={detail}")),
            "{name}: {said}"
        );
        served.edge.until("headwater_cache_flights", 0);
        let count = counts.entry(name).or_insert(0);
        *count += 1;
        let metric =
            format!("headwater_cache_reasons_total{{result=\"{result}\",reason=\"{reason}\"}}");
        assert_eq!(served.edge.metric(&metric), *count, "{name}");
    }
    served.edge.drain();
    let text = std::fs::read_to_string(records).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let of_requests = lines.filter(|line: &serde_json::Value| line["kind"] == "relay");
    let names = of_requests.map(|line| {
        let word = |name: &str| line[name].as_str().unwrap().to_owned();
        ["method", "path", "cache", "reason"].map(word).join(" ")
    });
    let expected = asks.map(|(method, path, _, name, _)| format!("{method} {path} {name}"));
    // In no order: each request came by a connection of its own, whose worker wrote it down.
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(names.collect()), sorted(expected.into()));
}
