//! Tests of the metrics, the admin port and the records of the origin.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use support::{TestServer, wait_until};

const TOKEN: &str = "0123456789abcdef";

/// Sends a request to any port of the server. Returns the head and the body.
fn request(address: SocketAddr, method: &str, target: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Starts a server with an admin port. Returns the server and the address of the admin port.
fn start_with_admin_port(folder: &Path) -> (TestServer, SocketAddr) {
    let token = folder.join("token");
    std::fs::write(&token, TOKEN).unwrap();
    let token = token.to_str().unwrap();
    let server = TestServer::new(&["--admin", "127.0.0.1:0", "--admin-token-file", token]);
    let admin = server.running().port_address("admin").unwrap();
    (server, admin)
}

#[test]
fn the_admin_port_reports_the_drain_until_the_main_port_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin) = start_with_admin_port(folder.path());
    let authorized = format!("Authorization: Bearer {TOKEN}\r\n");
    let is_draining = |text: &str| !text.contains("\nheadwater_drain_seconds 0\n");
    assert!(!is_draining(
        &request(admin, "GET", "/metrics", &authorized).1
    ));
    let shutdown = server.running().shutdown();
    let unfinished_work = shutdown.hold_shutdown();
    shutdown.drain();
    let main = server.running().main_addresses()[0];
    wait_until("the main port is closed", || {
        TcpStream::connect(main).is_err()
    });
    let (head, _) = request(admin, "GET", "/readyz", "");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(is_draining(
        &request(admin, "GET", "/metrics", &authorized).1
    ));
    drop(unfinished_work);
    wait_until("the admin port is closed", || {
        TcpStream::connect(admin).is_err()
    });
}

#[test]
fn metrics_move_to_the_admin_port() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin) = start_with_admin_port(folder.path());
    assert_eq!(server.get("/metrics").status, 404);
    for path in ["/healthz", "/readyz", "/film.mp4/.m3u8"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    let authorized = format!("Authorization: Bearer {TOKEN}\r\n");
    for (method, target, headers, status) in [
        ("GET", "/healthz", "", 200),
        ("GET", "/readyz", "", 200),
        ("GET", "/metrics", "", 401),
        ("GET", "/metrics", "Authorization: Bearer wrong\r\n", 401),
        ("GET", "/film.mp4/.m3u8", "", 401),
        ("GET", "/film.mp4/.m3u8", &*authorized, 404),
        ("POST", "/metrics", &*authorized, 404),
        ("HEAD", "/metrics", &*authorized, 200),
    ] {
        let (head, _) = request(admin, method, target, headers);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{method} {target}: {head}"
        );
    }
    let (_, text) = request(admin, "GET", "/metrics", &authorized);
    let line = "headwater_http_requests_total{kind=\"playlist\",status=\"200\"} 1";
    assert!(text.lines().any(|found| found == line), "{text}");
}

#[test]
fn requests_are_timed_by_their_kind() {
    let server = TestServer::new(&[]);
    let count_of = |metric: &str, kind: &str| {
        server.metric(&format!(
            "headwater_{metric}_seconds_count{{kind=\"{kind}\"}}"
        ))
    };
    server.text("/film.mp4/.m3u8");
    server.text("/film.mp4/.m3u8");
    server.get("/film.mp4");
    // The response to HEAD has no body, so no time to the first byte of a body is recorded.
    server.request("HEAD", "/film.mp4/.mpd", "");
    for (kind, requests, with_body) in [
        ("playlist", 2, 2),
        ("file", 1, 1),
        ("mpd", 1, 0),
        ("segment", 0, 0),
    ] {
        assert_eq!(count_of("http_request_duration", kind), requests, "{kind}");
        assert_eq!(count_of("http_first_byte", kind), with_body, "{kind}");
    }
    // The request for the metrics is itself in flight.
    assert_eq!(server.metric("headwater_http_requests_in_flight"), 1);
}

#[test]
fn the_format_of_metrics_follows_accept() {
    let server = TestServer::new(&[]);
    let get = |accept: &str| server.request("GET", "/metrics", &format!("Accept: {accept}\r\n"));
    let plain = get("text/plain;q=0.9, application/openmetrics-text;q=0.1");
    assert_eq!(
        plain.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert_eq!(plain.header("vary"), "accept");
    let plain = String::from_utf8(plain.body).unwrap();
    assert!(plain.contains("\n# TYPE headwater_build_info gauge\nheadwater_build_info{version=\""));
    assert!(!plain.contains("# EOF") && !plain.contains("# UNIT"));
    let open = get("application/openmetrics-text; version=1.0.0");
    assert_eq!(
        open.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let open = String::from_utf8(open.body).unwrap();
    assert!(open.contains("\n# TYPE headwater_build info\n") && open.ends_with("\n# EOF\n"));
    for (name, least) in [
        ("process_cpu_seconds_total", 0.0),
        ("process_resident_memory_bytes", 1e6),
        ("process_virtual_memory_bytes", 1e6),
        ("process_open_fds", 3.0),
        ("process_max_fds", 16.0),
        ("process_threads", 2.0),
        ("process_start_time_seconds", 1.6e9),
    ] {
        let line = open.lines().find_map(|line| line.strip_prefix(name));
        let value: f64 = line.unwrap_or_default().trim().parse().unwrap();
        assert!(value > least, "{name} {value}");
    }
}

#[test]
fn the_delay_of_workers_is_sampled_while_connections_are_open() {
    let server = TestServer::new(&[]);
    let _open = server.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until("the delay is sampled", || {
        server.metric("headwater_worker_delay_seconds_count") > 0
    });
}

/// Starts a server with these flags and sends requests, some of them with CMCD. Returns the lines
/// of the server's records.
fn recorded_lines(folder: &Path, flags: &[&str]) -> Vec<String> {
    let path = folder.join("records");
    let records = ["--records", path.to_str().unwrap()];
    let server = TestServer::new(&[&records, flags].concat());
    server.get("/film.mp4/.m3u8?CMCD=bl%3D9000%2Csid%3D%22a%20b%22");
    let headers = "CMCD-Object: br=3200,ot=v\r\nCMCD-Request: bl=21300,mtp=25400\r\n\
        CMCD-Session: cid=\"film\",sf=h\r\nCMCD-Status: bs,rtp=15000\r\n";
    server.request("GET", "/film.mp4/.mpd", headers);
    let headers = "User-Agent: a \"quoted\" \\ agent\r\nReferer: http://page/\r\n";
    server.request("GET", "/film.mp4/.mpd?a=b", headers);
    // The server writes all records to the file before it exits.
    drop(server);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn access_records_contain_the_data_of_the_player() {
    let folder = tempfile::tempdir().unwrap();
    let lines = recorded_lines(folder.path(), &[]);
    let records: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_path = |start: &str| {
        let is = |record: &&Value| record["path"].as_str().unwrap().starts_with(start);
        records.iter().find(is).unwrap()
    };
    let by_query = of_path("/film.mp4/.m3u8");
    assert_eq!(
        by_query["cmcd"],
        serde_json::json!({ "bl": 9000.0, "sid": "a b" })
    );
    assert_eq!(
        of_path("/film.mp4/.mpd")["cmcd"],
        serde_json::json!({
            "br": 3200.0, "ot": "v", "bl": 21300.0, "mtp": 25400.0,
            "cid": "film", "sf": "h", "bs": true, "rtp": 15000.0
        })
    );
    let without = of_path("/film.mp4/.mpd?");
    assert_eq!(without["cmcd"], Value::Null);
    assert_eq!(without["referer"], "http://page/");
}

#[test]
fn access_logs_have_the_chosen_format() {
    let ends = [
        ("common", "\"GET /film.mp4/.mpd?a=b HTTP/1.1\" 200 ", ""),
        (
            "combined",
            "\"GET /film.mp4/.mpd?a=b HTTP/1.1\" 200 ",
            " \"http://page/\" \"a \\\"quoted\\\" \\\\ agent\"",
        ),
        (
            "w3c",
            " 127.0.0.1 GET /film.mp4/.mpd a=b HTTP/1.1 200 ",
            " mpd -",
        ),
    ];
    for (format, part, end) in ends {
        let folder = tempfile::tempdir().unwrap();
        let lines = recorded_lines(folder.path(), &["--records-format", format]);
        let lines: Vec<_> = lines.iter().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        let line = lines.iter().find(|line| line.contains("a=b")).unwrap();
        assert!(line.contains(part) && line.ends_with(end), "{line}");
    }
}

/// Like logrotate, the test renames the file of the records and sends SIGHUP.
#[test]
fn hangup_continues_the_records_in_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let [path, moved] = ["log", "log.1"].map(|name| folder.path().join(name));
    let flags = ["--records-format", "common", "--records"];
    let server = TestServer::new(&[&flags[..], &[path.to_str().unwrap()]].concat());
    server.get("/healthz");
    std::fs::rename(&path, &moved).unwrap();
    let ours = std::process::id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-HUP", &ours])
        .status();
    assert!(sent.unwrap().success());
    wait_until("the records are continued in a new file", || {
        server.metric("headwater_records_reopened_total") > 0
    });
    server.get("/readyz");
    drop(server);
    let contains = |path: &Path, text: &str| std::fs::read_to_string(path).unwrap().contains(text);
    assert!(contains(&moved, "/healthz") && !contains(&moved, "/readyz"));
    assert!(contains(&path, "/readyz") && !contains(&path, "/healthz"));
}

#[test]
fn caches_must_not_store_the_refusal_of_a_request_without_the_edge_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let secret = "0123456789abcdef".repeat(2);
    std::fs::write(&path, &secret).unwrap();
    let server = TestServer::new(&["--edge-secret-file", path.to_str().unwrap()]);
    let refused = server.get("/film.mp4/.m3u8");
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("cache-control"), "no-store");
}
