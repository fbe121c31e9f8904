//! The edge as a service: reloads, proxies in front of the edge, and the edge's local paths.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use support::{ADMIN_AUTHORIZATION, ADMIN_TOKEN, RawResponse, ScriptedOrigin, TestEdge};

struct ServiceSetup {
    edge: TestEdge,
    config: PathBuf,
    _folder: tempfile::TempDir,
}

/// Starts an edge with an admin port and this settings file.
fn start_setup(text: &str, flags: &[&str]) -> ServiceSetup {
    let folder = tempfile::tempdir().unwrap();
    let (config, token) = (folder.path().join("edge.toml"), folder.path().join("token"));
    std::fs::write(&config, text).unwrap();
    std::fs::write(&token, ADMIN_TOKEN).unwrap();
    let mut words = vec!["edge", "--listen", "127.0.0.1:0", "--workers", "2"];
    words.extend([
        "--admin",
        "127.0.0.1:0",
        "--config",
        config.to_str().unwrap(),
    ]);
    words.extend(["--admin-token-file", token.to_str().unwrap()]);
    words.extend(flags);
    let edge = TestEdge::start(words.iter());
    ServiceSetup {
        edge,
        config,
        _folder: folder,
    }
}

impl ServiceSetup {
    fn reload_with(&self, text: &str) -> RawResponse {
        std::fs::write(&self.config, text).unwrap();
        self.edge
            .request_admin("POST", "/reload", &[ADMIN_AUTHORIZATION])
    }
}

fn start_origin(name: &'static str) -> String {
    let lines = vec!["Cache-Control: no-store".to_owned()];
    let (address, _) = ScriptedOrigin::start_with(move |_| (200, lines.clone(), name.into()));
    format!("origin = \"http://{address}\"\n")
}

#[test]
fn a_reload_changes_origins_and_rules_and_loses_no_request() {
    let (old, new) = (start_origin("old"), start_origin("new"));
    let rule = |status| format!("[[rule]]\nwhen = 'path == \"/no\"'\ndeny = {status}\n");
    let served = start_setup(&(old.clone() + &rule(403)), &[]);
    let kept = std::sync::Mutex::new(served.edge.connect());
    let ask = |path: &str| kept.lock().unwrap().request("GET", path, &[]);
    assert_eq!(ask("/a").text(), "old");
    assert_eq!(ask("/no").status, 403);
    let over = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut client, mut count) = (served.edge.connect(), 0);
                    while !over.load(SeqCst) {
                        let response = client.request("GET", "/a", &[]);
                        assert_eq!(response.status, 200, "{}", response.head);
                        assert!(["old", "new"].contains(&response.text().as_str()));
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for round in 0..20 {
            let text = if round % 2 == 0 { &new } else { &old };
            let response = served.reload_with(&(text.clone() + &rule(410)));
            assert_eq!(response.status, 200, "{}", response.text());
        }
        served.reload_with(&(new.clone() + &rule(410)));
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

/// Like logrotate, the test moves the records file away and sends SIGHUP while requests continue.
#[test]
fn moved_records_continue_in_a_new_file_without_loss() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let records = at("records.jsonl");
    let mut served = start_setup(
        &start_origin("o"),
        &["--records", records.to_str().unwrap()],
    );
    let ours = rustix::process::getpid();
    let mut client = served.edge.connect();
    let mut send_requests = |count: usize| {
        for _ in 0..count {
            client.request("GET", "/a", &[]);
        }
        count
    };
    let mut request_count = send_requests(100);
    for turn in 0..3 {
        std::fs::rename(&records, at(&format!("old{turn}"))).unwrap();
        request_count += send_requests(50);
        rustix::process::kill_process(ours, rustix::process::Signal::HUP).unwrap();
        request_count += send_requests(50);
        served
            .edge
            .wait_for_metric("headwater_records_reopened_total", turn + 1);
        request_count += send_requests(50);
    }
    served.edge.drain();
    let lines = |name: &str| {
        let text = std::fs::read_to_string(at(name)).unwrap();
        let of_requests = |line: &&str| line.contains("\"path\":\"/a\"");
        text.lines().filter(of_requests).count()
    };
    let written = ["old0", "old1", "old2", "records.jsonl"].map(lines);
    assert_eq!(written.iter().sum::<usize>(), request_count, "{written:?}");
    assert!(written.iter().all(|count| *count > 0), "{written:?}");
}

#[test]
fn invalid_settings_change_nothing_and_report_their_place() {
    let text = start_origin("old");
    let served = start_setup(&text, &[]);
    let wrong = text.clone() + "[[rule]]\nwhen = 'path.startsWith('\ndeny = 403\n";
    let response = served.reload_with(&wrong);
    assert_eq!(response.status, 400);
    assert!(
        response.text().contains("edge.toml:3"),
        "{}",
        response.text()
    );
    assert_eq!(served.reload_with("origin = 1\n[pool.x]\n").status, 400);
    assert_eq!(served.edge.get_path("/a").text(), "old");
    std::fs::remove_file(&served.config).unwrap();
    assert_eq!(
        served
            .edge
            .request_admin("POST", "/reload", &[ADMIN_AUTHORIZATION])
            .status,
        400
    );
    assert_eq!(served.edge.get_path("/a").text(), "old");
}

#[test]
fn settings_that_need_a_restart_are_listed_and_stay() {
    let text = start_origin("o");
    let served = start_setup(&text, &[]);
    let response = served.reload_with(&(text + "memory = \"32MiB\"\nidle-timeout = \"9s\"\n"));
    assert_eq!(response.status, 200, "{}", response.text());
    let result: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(result["takes_a_restart"][0], "memory");
    assert_eq!(result["takes_a_restart"][1], "common settings");
}

#[test]
fn cache_and_counters_survive_a_reload() {
    let lines = vec!["Cache-Control: max-age=60".to_owned()];
    let (address, seen) = ScriptedOrigin::start_with(move |_| (200, lines.clone(), b"x".to_vec()));
    let text = format!("origin = \"http://{address}\"\n");
    let served = start_setup(&text, &[]);
    served.edge.get_path("/a");
    served.edge.wait_for_metric("headwater_cache_objects", 1);
    assert_eq!(served.reload_with(&text).status, 200);
    assert!(served.edge.get_path("/a").cache_status().contains("; hit"));
    assert_eq!(seen.lock().unwrap().len(), 1);
    let misses = served
        .edge
        .read_metric("headwater_cache_requests_total{result=\"miss\"}");
    assert_eq!(misses, 1);
    assert_eq!(
        served
            .edge
            .read_metric("headwater_upstream_connections_opened_total"),
        1
    );
}

#[test]
fn only_a_trusted_proxy_sets_the_client_address() {
    let rules = "[networks]\nbad = [\"192.0.2.0/24\"]\n\
                 [[rule]]\nwhen = 'client.net == \"bad\"'\ndeny = 403\n";
    let lines = ["X-Forwarded-For: 198.51.100.1, 192.0.2.9"];
    for (trusted, status) in [("127.0.0.0/8", 403), ("10.0.0.0/8", 200)] {
        let text = start_origin("o") + rules;
        let served = start_setup(&text, &["--trust-forwarded", trusted]);
        assert_eq!(
            served.edge.request("GET", "/a", &lines).status,
            status,
            "{trusted}"
        );
        assert_eq!(served.edge.get_path("/a").status, 200);
    }
}

/// Without an admin port, the main port serves the paths for health and metrics. With an admin
/// port, the main port forwards requests for these paths to the origin.
#[test]
fn local_paths_move_to_the_admin_port() {
    let served = start_setup(&start_origin("the origin's"), &[]);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(served.edge.get_path(path).text(), "the origin's", "{path}");
    }
    assert_eq!(
        served.edge.request_admin("GET", "/healthz", &[]).status,
        200
    );
    assert_eq!(served.edge.request_admin("GET", "/readyz", &[]).status, 200);
    assert_eq!(
        served.edge.request_admin("GET", "/metrics", &[]).status,
        401
    );
    let (address, seen) = ScriptedOrigin::start_with(|_| (200, vec![], b"no".to_vec()));
    let alone = TestEdge::new(address, &[]);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(alone.get_path(path).status, 200, "{path}");
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
}

#[test]
fn the_status_lists_origins_and_connections() {
    let served = start_setup(&start_origin("o"), &[]);
    let mut clients: Vec<_> = (0..3).map(|_| served.edge.connect()).collect();
    for client in &mut clients {
        client.request("GET", "/a", &[]);
    }
    let response = served
        .edge
        .request_admin("GET", "/status", &[ADMIN_AUTHORIZATION]);
    let status: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(status["connections"]["open"], 3);
    let by = &status["connections"]["by_algorithm"][0];
    assert_eq!(by["connections"], 3);
    assert!(by["rtt_us"].as_u64().unwrap() > 0);
    assert_eq!(status["origins"][0]["share"], 1.0);
    assert_eq!(status["origins"][0]["answers"], 3);
}

/// `Cache-Status`, records and metrics use the same name for an outcome.
#[test]
fn an_outcome_has_one_name_in_header_record_and_metric() {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");
    let address = ScriptedOrigin::start_with(|exchange| {
        let kept = if exchange.target() == "/mine" {
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
    let mut served = start_setup(&text, &["--records", records.to_str().unwrap()]);
    // Each case is the method, the target, a header line and the outcome. If `Cache-Status` reports
    // why the response is not stored, the last value is this reason.
    let cases = [
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
    for (method, path, line, name, not_kept) in cases {
        let cache_status = served.edge.request(method, path, &[line]).cache_status();
        let (result, reason) = name.split_once(' ').unwrap();
        let detail = not_kept.unwrap_or(reason);
        assert!(
            cache_status.ends_with(&format!("; detail={detail}")),
            "{name}: {cache_status}"
        );
        served.edge.wait_for_metric("headwater_cache_flights", 0);
        let count = counts.entry(name).or_insert(0);
        *count += 1;
        let metric =
            format!("headwater_cache_reasons_total{{result=\"{result}\",reason=\"{reason}\"}}");
        assert_eq!(served.edge.read_metric(&metric), *count, "{name}");
    }
    served.edge.drain();
    let text = std::fs::read_to_string(records).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let of_requests = lines.filter(|line: &serde_json::Value| line["kind"] == "relay");
    let names = of_requests.map(|line| {
        let word = |name: &str| line[name].as_str().unwrap().to_owned();
        ["method", "path", "cache", "reason"].map(word).join(" ")
    });
    let expected = cases.map(|(method, path, _, name, _)| format!("{method} {path} {name}"));
    // The order of the records is arbitrary, because each request used a separate connection and
    // either worker may have written its record.
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(names.collect()), sorted(expected.into()));
}
