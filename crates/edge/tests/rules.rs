//! The effects of rules on real connections, and the restoration of the default socket options.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::Value;
use support::{ScriptedOrigin, TestEdge};

const RULES: &str = r#"
[networks]
here = ["127.0.0.0/8"]

[[rule]]
name = "no"
when = 'path == "/no"'
deny = 403

[[rule]]
name = "steady"
when = 'path == "/steady"'
ignore-client-no-cache = true

[[rule]]
name = "long"
when = 'path == "/ttl"'
ttl = "90s"

[[rule]]
name = "late"
when = 'path == "/late"'
delay = "700ms"

[[rule]]
name = "aside"
when = 'host == "aside"'
pass = true

[[rule]]
name = "by buffer"
when = 'path.startsWith("/buffer")'
pace = "ramp(cmcd.bl, 0.0, 3.0, 30000.0, 1.5) * cmcd.tb"

[[rule]]
name = "slow"
when = 'path.startsWith("/slow") && client.net == "here"'
congestion = "reno"
pace = "1.5 * cmcd.tb"
notsent-lowat = "128KiB"
set = { "X-Rule" = "slow" }
remove = ["X-Origin"]

[[rule]]
name = "impossible"
when = 'path == "/impossible"'
congestion = "no-such"
"#;

struct RulesSetup {
    edge: TestEdge,
    records: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

fn start_setup(origin: std::net::SocketAddr) -> RulesSetup {
    let folder = tempfile::tempdir().unwrap();
    let (config, records) = (
        folder.path().join("edge.toml"),
        folder.path().join("r.jsonl"),
    );
    std::fs::write(&config, RULES).unwrap();
    let flags = [
        "--config",
        config.to_str().unwrap(),
        "--records",
        records.to_str().unwrap(),
        "--tcp-interval",
        "5ms",
    ];
    RulesSetup {
        edge: TestEdge::new(origin, &flags),
        records,
        _folder: folder,
    }
}

impl RulesSetup {
    /// Drains the edge, so that the edge writes all records. Returns the records.
    fn read_records(mut self) -> Vec<Value> {
        self.edge.drain();
        let text = std::fs::read_to_string(&self.records).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn start_film_origin() -> std::net::SocketAddr {
    let lines = || {
        vec![
            "Cache-Control: max-age=60".to_owned(),
            "X-Origin: 1".to_owned(),
        ]
    };
    ScriptedOrigin::start_with(move |_| (200, lines(), vec![7; 200_000])).0
}

#[test]
fn a_rule_applies_to_its_response_and_not_to_the_next() {
    let served = start_setup(start_film_origin());
    let mut client = served.edge.connect();
    let player = "CMCD-Object: tb=600000,br=300000";
    let slow = client.request("GET", "/slow", &[player]);
    assert_eq!(slow.header("x-rule").as_deref(), Some("slow"));
    assert_eq!(slow.header("x-origin"), None);
    let dynamic = slow.header("cmsd-dynamic").unwrap();
    assert!(
        dynamic.starts_with("\"headwater\";") && dynamic.contains("rtt="),
        "{dynamic}"
    );
    let plain = client.request("GET", "/plain", &[]);
    assert_eq!(plain.header("x-rule"), None);
    assert_eq!(
        client.request("GET", "/slow/2", &[player]).body.len(),
        200_000
    );
    drop(client);
    let fresh = served.edge.connect().request("GET", "/plain", &[]);
    assert_eq!(fresh.status, 200);
    assert_eq!(
        served
            .edge
            .read_metric("headwater_rule_matches_total{rule=\"slow\"}"),
        2
    );
    let records = served.read_records();
    let tcp = |path: &str, connection: u64| -> Vec<&Value> {
        let access = records.iter().find(|r| {
            r["record"] == "access" && r["path"] == path && r["connection"] == connection
        });
        let access = access.unwrap_or_else(|| panic!("no access record of {path}"));
        let of = |r: &&Value| r["record"] == "tcp" && r["request_id"] == access["request_id"];
        records.iter().filter(of).collect()
    };
    let connection = |path: &str, last: bool| {
        let mut all = records
            .iter()
            .filter(|r| r["record"] == "access" && r["path"] == path);
        let found = if last { all.next_back() } else { all.next() };
        found.unwrap()["connection"].as_u64().unwrap()
    };
    let kept = connection("/slow", false);
    let system = tcp("/plain", connection("/plain", true))[0];
    for (path, expected) in [("/slow", true), ("/plain", false), ("/slow/2", true)] {
        let seen = tcp(path, kept);
        assert!(
            seen.iter().any(|r| r["phase"] == "start"),
            "{path}: {seen:?}"
        );
        assert!(
            seen.iter().any(|r| r["phase"] == "sent"),
            "{path}: {seen:?}"
        );
        for record in seen {
            let (algorithm, rate) = if expected {
                // 1.5 times `tb` (600 Mbit/s) is 900 Mbit/s, or 112.5 MB/s.
                (Value::from("reno"), Value::from(112_500_000))
            } else {
                let rate = system["max_pacing_rate_bytes_per_s"].clone();
                (system["algorithm"].clone(), rate)
            };
            assert_eq!(record["algorithm"], algorithm, "{path}");
            assert_eq!(record["max_pacing_rate_bytes_per_s"], rate, "{path}");
            assert!(record["rtt_us"].is_u64());
        }
    }
    let access = records.iter().find(|r| r["path"] == "/slow").unwrap();
    assert_eq!(access["rule"], "slow");
    assert_eq!(access["cmcd"]["tb"], 600_000.0);
}

#[test]
fn rules_deny_and_set_ttl_before_the_response_is_known() {
    let origin = ScriptedOrigin::new();
    let served = start_setup(origin.address);
    let mut client = served.edge.connect();
    let denied = client.request("GET", "/no", &[]);
    assert_eq!((denied.status, origin.request_count()), (403, 0));
    // Other clients may not be denied, so no cache may store the response.
    assert_eq!(denied.header("cache-control").as_deref(), Some("no-store"));
    client.send("GET", "/ttl", &[]);
    origin
        .next_request()
        .respond(200, &["Cache-Control: max-age=1"], b"x");
    assert!(
        client
            .read_response("GET")
            .header("cache-status")
            .unwrap()
            .contains("ttl=90")
    );
}

#[test]
fn a_delay_affects_only_its_request() {
    let origin = ScriptedOrigin::new();
    let served = start_setup(origin.address);
    let (mut late, mut other) = (served.edge.connect(), served.edge.connect());
    late.send("GET", "/late", &[]);
    other.send("GET", "/now", &[]);
    for (path, client) in [("/now", &mut other), ("/late", &mut late)] {
        let exchange = origin.next_request();
        assert_eq!(exchange.target(), path);
        exchange.respond(200, &[], b"x");
        assert_eq!(client.read_response("GET").status, 200);
    }
}

#[test]
fn a_pass_rule_bypasses_lookup_and_storage() {
    let (address, seen) = ScriptedOrigin::start_with(|_| {
        (200, vec!["Cache-Control: max-age=60".into()], b"x".to_vec())
    });
    let served = start_setup(address);
    served.edge.get_path("/a");
    served.edge.wait_for_metric("headwater_cache_objects", 1);
    let mut client = served.edge.connect();
    for _ in 0..2 {
        client.write_ignoring_errors(b"GET /a HTTP/1.1\r\nHost: ASIDE\r\n\r\n");
        let response = client.read_response("GET");
        assert_eq!(
            response.cache_status(),
            "headwater; fwd=bypass; fwd-status=200; detail=rule"
        );
    }
    assert_eq!(seen.lock().unwrap().len(), 3);
}

/// The pacing rate of Spang et al. (SIGCOMM 2023) is three times the top bitrate if the player's
/// buffer is empty, and 1.5 times the top bitrate if the buffer is full. If the player's data is
/// incomplete, the response is not paced.
#[test]
fn the_pace_follows_the_players_buffer() {
    let served = start_setup(start_film_origin());
    let mut client = served.edge.connect();
    let cases = [
        (Some("bl=0,tb=400000"), Some(150_000_000)),
        (Some("bl=15000,tb=400000"), Some(112_500_000)),
        (Some("bl=30000,tb=400000"), Some(75_000_000)),
        (Some("bl=99000,tb=400000"), Some(75_000_000)),
        (Some("bl=1000"), None),
        (None, None),
    ];
    for (n, (player_data, _)) in cases.iter().enumerate() {
        let line = player_data.map(|player_data| format!("CMCD-Request: {player_data}"));
        let lines: Vec<&str> = line.as_deref().into_iter().collect();
        client.request("GET", &format!("/buffer/{n}"), &lines);
    }
    let records = served.read_records();
    for (n, (player_data, expected)) in cases.into_iter().enumerate() {
        let of_path = |r: &&Value| r["path"] == format!("/buffer/{n}");
        let id = &records.iter().find(of_path).unwrap()["request_id"];
        let mut seen = records
            .iter()
            .filter(|r| r["record"] == "tcp" && r["request_id"] == *id);
        let paced = |r: &Value| {
            r["max_pacing_rate_bytes_per_s"]
                .as_u64()
                .filter(|rate| *rate < u64::MAX)
        };
        assert!(seen.all(|r| paced(r) == expected), "{player_data:?}");
    }
}

#[test]
fn a_refused_socket_option_is_counted_and_the_response_sent() {
    let served = start_setup(start_film_origin());
    let response = served.edge.get_path("/impossible");
    assert_eq!((response.status, response.body.len()), (200, 200_000));
    let refused = "headwater_transport_refused_total{option=\"congestion\"}";
    assert_eq!(served.edge.read_metric(refused), 1);
}

#[test]
fn a_rule_ignores_the_revalidation_that_a_client_demands() {
    let (address, seen) =
        ScriptedOrigin::start_with(|_| (200, vec!["Cache-Control: max-age=60".into()], vec![]));
    let setup = start_setup(address);
    let lines = [
        "Cache-Control: no-cache",
        "Cache-Control: max-age=0",
        "Cache-Control: min-fresh=1000",
        "Pragma: no-cache",
    ];
    for (path, requests) in [("/steady", 1), ("/other", 5)] {
        seen.lock().unwrap().clear();
        setup.edge.get_path(path);
        for line in lines {
            setup.edge.wait_for_metric("headwater_cache_flights", 0);
            assert_eq!(setup.edge.request("GET", path, &[line]).status, 200);
        }
        assert_eq!(seen.lock().unwrap().len(), requests, "{path}");
    }
}

/// Equivalent spellings of a path match the same rules.
#[test]
fn a_rule_cannot_be_evaded_by_escapes() {
    let (address, seen) = ScriptedOrigin::start_with(|_| (200, vec![], vec![]));
    let setup = start_setup(address);
    for path in ["/no", "/%6eo", "/n%6F"] {
        assert_eq!(setup.edge.get_path(path).status, 403, "{path}");
    }
    assert!(seen.lock().unwrap().is_empty());
}
