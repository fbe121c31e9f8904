//! The CMCD collector of the edge. The collector receives reports in request mode and in event
//! mode, and shows the reports to operators in metrics, pages and records.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::Value;
use support::{ADMIN_AUTHORIZATION, ADMIN_TOKEN, RawResponse, ScriptedOrigin, TestEdge};

/// An edge with a CMCD collector, and the folder that contains its token and records.
struct CollectingEdge {
    edge: TestEdge,
    folder: tempfile::TempDir,
}

impl CollectingEdge {
    fn new(flags: &[&str]) -> CollectingEdge {
        let (address, _) = ScriptedOrigin::start_with(|_| {
            let fresh = "Cache-Control: max-age=60".to_owned();
            (200, vec![fresh], b"body".to_vec())
        });
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, ADMIN_TOKEN).unwrap();
        let records = folder.path().join("cmcd.jsonl");
        let mut all = vec!["--admin", "127.0.0.1:0", "--admin-token-file"];
        all.extend([token.to_str().unwrap(), "--cmcd-collector"]);
        all.extend(["--cmcd-records", records.to_str().unwrap()]);
        all.extend(flags);
        let edge = TestEdge::new(address, &all);
        CollectingEdge { edge, folder }
    }

    fn post(&self, content_type: &str, body: &[u8]) -> RawResponse {
        let mut client = self.edge.connect();
        let fields = [
            format!("Content-Type: {content_type}"),
            format!("Content-Length: {}", body.len()),
        ];
        client.send("POST", "/cmcd", &[&fields[0], &fields[1]]);
        client.write_ignoring_errors(body);
        client.read_response("POST")
    }

    fn post_events(&self, lines: &str) -> u16 {
        self.post("application/cmcd", lines.as_bytes()).status
    }

    fn admin(&self, path: &str) -> RawResponse {
        self.edge.request_admin("GET", path, &[ADMIN_AUTHORIZATION])
    }

    fn viewers(&self) -> Value {
        serde_json::from_slice(&self.admin("/viewers.json").body).unwrap()
    }

    fn reports(&self, event: &str) -> u64 {
        let line = format!("headwater_cmcd_reports_total{{event=\"{event}\"}}");
        self.edge.read_metric(&line)
    }

    /// Reads a metric for viewers whose network and title match no configured class. `CLASS` in
    /// `line` stands for the labels of these viewers.
    fn count_of_class(&self, line: &str) -> u64 {
        let class = "network=\"ipv4\",title_class=\"other\"";
        self.edge.read_metric(&line.replace("CLASS", class))
    }

    /// Drains the edge and returns its records.
    fn into_records(mut self) -> Vec<Value> {
        self.edge.drain();
        let text = std::fs::read_to_string(self.folder.path().join("cmcd.jsonl")).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn events_become_sessions_metrics_and_records() {
    let served = CollectingEdge::new(&[]);
    let start = "e=ps,sid=\"s1\",cid=\"films%2Ftos.mp4\",sta=s,ts=1000,cdn=\"east\",v=2";
    let playing = "br=(3000;v 128;a),bl=(12000;v),e=ps,msd=421,sid=\"s1\",sta=p,ts=1421,v=2";
    let stalled = "e=ps,sid=\"s1\",sta=r,ts=9000,v=2\r\n\r\ne=ps,sid=\"s1\",sta=p,ts=10500,v=2";
    let failed = "e=e,ec=(\"E7\"),sid=\"s1\",ts=11000,v=2\ne=t,br=(1500),sid=\"s1\",v=2";
    let reply = served.post("application/cmcd", format!("{start}\n{playing}").as_bytes());
    assert_eq!(reply.status, 204, "{}", reply.head);
    assert_eq!(reply.header("access-control-allow-origin").unwrap(), "*");
    assert_eq!(served.post_events(stalled), 204);
    assert_eq!(served.post_events(failed), 204);
    for (event, count) in [("ps", 4), ("e", 1), ("t", 1), ("rr", 0), ("request", 0)] {
        assert_eq!(served.reports(event), count, "{event}");
    }
    for (line, value) in [
        ("headwater_sessions{CLASS}", 1),
        ("headwater_cmcd_rebuffers_total{CLASS}", 1),
        ("headwater_cmcd_errors_total{CLASS}", 1),
        ("headwater_cmcd_bitrate_kbps_bucket{le=\"1500.0\",CLASS}", 1),
        ("headwater_cmcd_startup_seconds_bucket{le=\"0.5\",CLASS}", 1),
        ("headwater_cmcd_startup_seconds_bucket{le=\"0.3\",CLASS}", 0),
        ("headwater_cmcd_buffer_seconds_count{CLASS}", 1),
    ] {
        assert_eq!(served.count_of_class(line), value, "{line}");
    }
    let viewers = served.viewers();
    let session = &viewers["latest"][0];
    for (field, value) in [
        ("session", Value::from("s1")),
        ("title", "films/tos.mp4".into()),
        ("network", "127.0.0.0/24".into()),
        ("pathway", "east".into()),
        ("state", "playing".into()),
        ("start_up_ms", 421.0.into()),
        ("stalls", 1.into()),
        ("stalled_ms", 1500.into()),
        ("bitrate_kbps", 1500.0.into()),
        ("last_error", "E7".into()),
    ] {
        assert_eq!(session[field], value, "{field} of {session}");
    }
    assert_eq!(viewers["titles"][0]["name"], "films/tos.mp4");
    assert_eq!(viewers["pathways"][0]["stalls"], 1);
    assert_eq!(viewers["viewers"], 1);
    let records = served.into_records();
    assert_eq!(records.len(), 6);
    let [video, audio] = records[1]["cmcd"]["br"].as_array().unwrap().as_slice() else {
        panic!("{}", records[1]);
    };
    assert_eq!(
        (&video["value"], &video["v"]),
        (&3000.0.into(), &true.into())
    );
    assert_eq!(
        (&audio["value"], &audio["a"]),
        (&128.0.into(), &true.into())
    );
    assert_eq!(records[1]["mode"], "event");
    assert!(
        !records[1].to_string().contains("127.0.0.1"),
        "{}",
        records[1]
    );
}

#[test]
fn a_session_of_requests_is_joined_with_its_connection() {
    let served = CollectingEdge::new(&[]);
    let mut client = served.edge.connect();
    let query = "/films/tos.mp4/6000-9f86d081884c7d65/video=3/1.m4s?CMCD=bl%3D8000%2Cbr%3D3200%2Cot%3Dv%2Csid%3D%22q%22";
    for _ in 0..2 {
        assert_eq!(client.request("GET", query, &[]).status, 200);
    }
    let headers = [
        "CMCD-Session: sid=\"h\",v=2",
        "CMCD-Object: br=(700;v 64;a),ot=v",
    ];
    assert_eq!(client.request("GET", "/a/b/1.m4s", &headers).status, 200);
    assert_eq!(served.reports("request"), 3);
    let viewers = served.viewers();
    assert_eq!(viewers["sessions"], 2);
    let of = |id: &str| {
        let all = viewers["latest"].as_array().unwrap();
        all.iter().find(|row| row["session"] == id).unwrap().clone()
    };
    assert_eq!(
        (&of("q")["title"], &of("h")["title"]),
        (&"films/tos.mp4".into(), &"a/b".into())
    );
    assert_eq!(
        (&of("q")["bitrate_kbps"], &of("h")["bitrate_kbps"]),
        (&3200.0.into(), &700.0.into())
    );
    assert!(of("q")["tcp"]["rtt_us"].as_u64().unwrap() > 0, "{viewers}");
    // After the connection is closed, the session has no TCP values.
    drop(client);
    let mut open = served.viewers();
    for _ in 0..4000 {
        if open["latest"][0]["tcp"].is_null() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        open = served.viewers();
    }
    assert!(open["latest"][0]["tcp"].is_null(), "{open}");
}

#[test]
fn malformed_events_are_counted_and_dropped() {
    let served = CollectingEdge::new(&[]);
    let mixed = "e=t,sid=\"a\",v=2\nnonsense\n\u{0}\ne=t,sid=\"a\"\ne=t,br=(1,sid=\"a\",v=2";
    assert_eq!(served.post_events(mixed), 204);
    let dropped = || served.edge.read_metric("headwater_cmcd_malformed_total");
    assert_eq!((served.reports("t"), dropped()), (1, 4));
    assert_eq!(served.post_events("nonsense"), 400);
    assert_eq!(served.post_events(""), 204);
    assert_eq!(
        served
            .post("text/plain;charset=UTF-8", b"e=zz,sid=\"a\",v=2")
            .status,
        204
    );
    assert_eq!((served.reports("other"), dropped()), (1, 5));
    assert_eq!(served.post("application/json", b"e=t,v=2").status, 415);
    assert_eq!(
        served
            .post("application/cmcd", &[b'x'; (64 << 10) + 1])
            .status,
        413
    );
    let many = "e=t,v=2\n".repeat(200);
    assert_eq!(served.post_events(&many), 204);
    assert_eq!((served.reports("t"), dropped()), (129, 77));
    assert_eq!(served.count_of_class("headwater_sessions{CLASS}"), 1);
}

#[test]
fn the_page_of_viewers_escapes_hostile_names_and_needs_the_token() {
    let served = CollectingEdge::new(&[]);
    let name = "<img src=x onerror=alert(1)>&'";
    let line = format!("e=e,sid=\"{name}\",cid=\"{name}\",cdn=\"{name}\",ec=(\"{name}\"),v=2");
    assert_eq!(served.post_events(&line), 204);
    let page = served.admin("/viewers");
    assert_eq!(page.status, 200);
    let text = page.text();
    assert!(!text.contains("<img"), "{text}");
    let escaped = "&lt;img src=x onerror=alert(1)&gt;&amp;&#39;";
    // The page contains the name six times: as session, title, title group, pathway, pathway group
    // and error.
    assert_eq!(text.matches(escaped).count(), 6, "{text}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'"), "{policy}");
    for path in ["/viewers", "/viewers.json", "/viewers.js"] {
        assert_eq!(
            served.edge.request_admin("GET", path, &[]).status,
            401,
            "{path}"
        );
        assert_eq!(served.admin(path).status, 200, "{path}");
    }
    // The main port, which viewers use, does not serve these pages.
    assert_eq!(served.edge.get_path("/viewers").text(), "body");
}

#[test]
fn pages_learn_of_the_collector_and_may_send_from_other_sites() {
    let served = CollectingEdge::new(&[]);
    assert_eq!(
        served.edge.get_path("/-/collector.json").text(),
        "{\"cmcd\":\"/cmcd\"}\n"
    );
    let preflight = served
        .edge
        .request("OPTIONS", "/cmcd", &["Origin: http://page"]);
    assert_eq!(preflight.status, 204);
    let methods = preflight.header("access-control-allow-methods").unwrap();
    assert!(methods.contains("POST"), "{methods}");
    // Requests for this path with other methods go to the origin.
    assert_eq!(served.edge.get_path("/cmcd").text(), "body");
}

#[test]
fn without_the_setting_nothing_is_collected() {
    let (address, _) = ScriptedOrigin::start_with(|_| (200, vec![], b"of the origin".to_vec()));
    let edge = TestEdge::new(address, &[]);
    let mut client = edge.connect();
    client.send("POST", "/cmcd", &["Content-Length: 7"]);
    client.write_ignoring_errors(b"e=t,v=2");
    assert_eq!(client.read_response("POST").text(), "of the origin");
    assert_eq!(edge.get_path("/-/collector.json").text(), "of the origin");
    assert!(
        !edge
            .get_path("/metrics")
            .text()
            .contains("headwater_sessions")
    );
}

#[test]
fn metrics_and_records_distinguish_networks_and_title_classes_by_name() {
    let served = CollectingEdge::new(&[
        "--cmcd-network",
        "office=127.0.0.0/8",
        "--cmcd-network",
        "other-office=10.0.0.0/8",
        "--cmcd-title-class",
        "kids=/films/kids/",
    ]);
    for (session, title) in [
        ("a", "films/kids/a"),
        ("b", "films/kids/b"),
        ("c", "films/c"),
    ] {
        let line = format!("e=ps,sid=\"{session}\",cid=\"{title}\",sta=p,msd=200,v=2");
        assert_eq!(served.post_events(&line), 204);
        let line = format!("e=ps,sid=\"{session}\",sta=r,v=2");
        assert_eq!(served.post_events(&line), 204);
    }
    for (network, class, count) in [
        ("office", "kids", 2),
        ("office", "other", 1),
        ("other-office", "kids", 0),
        ("ipv4", "kids", 0),
    ] {
        for name in [
            "headwater_sessions",
            "headwater_cmcd_rebuffers_total",
            "headwater_cmcd_startup_seconds_count",
        ] {
            let line = format!("{name}{{network=\"{network}\",title_class=\"{class}\"}}");
            assert_eq!(served.edge.read_metric(&line), count, "{line}");
        }
    }
    let metrics = served.admin("/metrics").text();
    assert!(!metrics.contains("films"), "{metrics}");
    let records = served.into_records();
    let classes = records.iter().map(|record| record["title_class"].as_str());
    let kids = classes.filter(|class| *class == Some("kids")).count();
    assert_eq!((records.len(), kids), (6, 4));
    assert!(
        records
            .iter()
            .all(|record| record["network_name"] == "office")
    );
}

#[test]
fn a_sample_records_whole_sessions() {
    let served = CollectingEdge::new(&["--cmcd-sample", "30", "--cmcd-sessions-max", "50"]);
    for session in 0..100 {
        let line = format!("e=t,sid=\"viewer-{session}\",v=2\n");
        assert_eq!(served.post_events(&line.repeat(3)), 204);
    }
    assert_eq!(served.count_of_class("headwater_sessions{CLASS}"), 50);
    assert_eq!(
        served.edge.read_metric("headwater_sessions_evicted_total"),
        50
    );
    let records = served.into_records();
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    for record in &records {
        *counts.entry(record["cmcd"]["sid"].to_string()).or_default() += 1;
    }
    assert!(
        (10..60).contains(&counts.len()),
        "{} sessions",
        counts.len()
    );
    assert!(counts.values().all(|count| *count == 3), "{counts:?}");
}

#[test]
fn requests_of_events_are_limited_like_all_others() {
    let limits = ["--requests-per-address-max", "1", "--request-burst", "3s"];
    let served = CollectingEdge::new(&limits);
    let statuses: Vec<u16> = (0..20).map(|_| served.post_events("e=t,v=2")).collect();
    assert!(
        statuses.contains(&204) && statuses.contains(&429),
        "{statuses:?}"
    );
}
