//! Tests `headwater load rate` with recorded requests, and the metrics that it exports during a
//! run.

use crate::metrics::promtool_complaints;
use crate::support::{HeadwaterServer, TempFolder, report_skip};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time to wait for a condition, which is far more than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

fn load_rate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.args(["load", "rate"]);
    command
}

/// Runs `headwater load rate` with `input` as standard input. Returns the JSON result.
fn run_rate(arguments: &[&str], input: &[u8]) -> Value {
    let mut child = load_rate()
        .args(["--json", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Waits until a file has at least `count` lines that are not comments. Returns the whole text.
fn wait_for_lines(path: &Path, count: usize) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().filter(|line| !line.starts_with('#')).count() >= count {
            return text;
        }
        assert!(Instant::now() < end, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn access_logs_of_our_server_are_replayed_against_it() {
    let folder = TempFolder::new();
    let targets = ["/Headwater/.m3u8?a=1", "/Headwater/.mpd", "/none"];
    for format in ["common", "combined", "w3c"] {
        let log = folder.0.join(format);
        let path = log.to_str().unwrap();
        let server = HeadwaterServer::serve(&["--records", path, "--records-format", format]);
        for target in targets {
            server.get(target);
        }
        server.request("HEAD", targets[0], &[]);
        let text = wait_for_lines(&log, 4);
        let records = folder.0.join("records").display().to_string();
        let arguments = ["log:-", "--base", &server.url(""), "--rate", "replay"];
        let run = run_rate(
            &[&arguments[..], &["--speed", "2", "--records", &records]].concat(),
            text.as_bytes(),
        );
        assert_eq!(run["summary"]["due"], 4, "{format}");
        assert_eq!(run["summary"]["requests"], 4, "{format}");
        assert_eq!(run["summary"]["errors"], 1, "{format}");
        // The query is not part of a URL group.
        let groups = run["url_groups"].as_object().unwrap();
        assert_eq!(groups[&server.url("/Headwater/.m3u8")]["requests"], 2);
        assert_eq!(groups[&server.url("/none")]["errors"], 1);
        let records = std::fs::read_to_string(&records).unwrap();
        for line in records.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["viewer"], "127.0.0.1", "{line}");
        }
        assert!(records.contains("/Headwater/.m3u8?a=1\""), "{records}");
    }
}

#[test]
fn archives_are_replayed_in_the_order_of_their_times() {
    let server = HeadwaterServer::serve(&[]);
    let entry = |at: &str, path: &str| {
        json!({
            "startedDateTime": format!("2026-11-21T10:00:{at}Z"),
            "request": {
                "method": "GET", "url": format!("https://elsewhere.example{path}"),
                "headers": [{"name": "Range", "value": "bytes=0-99"}],
            },
        })
    };
    let entries = [
        entry("01.000", "/Headwater/video-360p.mp4"),
        entry("00.000", "/Headwater/.mpd"),
    ];
    let archive = json!({"log": {"version": "1.2", "entries": entries}}).to_string();
    let folder = TempFolder::new();
    let records = folder.0.join("records").display().to_string();
    let arguments = ["har:-", "--base", &server.url(""), "--rate", "replay"];
    let run = run_rate(
        &[&arguments[..], &["--speed", "4", "--records", &records]].concat(),
        archive.as_bytes(),
    );
    assert_eq!(run["summary"]["errors"], 0);
    let records = std::fs::read_to_string(&records).unwrap();
    let mut records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    records.sort_by_key(|record| record["n"].as_u64());
    assert_eq!(records[0]["url"], server.url("/Headwater/.mpd"));
    assert_eq!(
        (&records[0]["due_ms"], &records[1]["due_ms"]),
        (&json!(0.0), &json!(250.0))
    );
    assert_eq!(
        (&records[1]["status"], &records[1]["bytes"]),
        (&json!(206), &json!(100))
    );
}

#[test]
fn wrong_recordings_are_refused_with_a_remedy() {
    let refused = |arguments: &[&str], input: &str| {
        let folder = TempFolder::new();
        let path = folder.write_file("input", input.as_bytes());
        let kind = arguments[0];
        let target = format!("{kind}{}", path.display());
        let output = load_rate()
            .arg(target)
            .args(&arguments[1..])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let line = "::1 - - [29/Feb/2024:23:59:59 +0000] \"GET /a HTTP/1.1\" 200 -\n";
    assert!(
        refused(&["log:"], line)
            .contains("line 1: the log contains no host; name a server with --base")
    );
    assert!(refused(&["har:"], "{}").contains("invalid HAR file"));
    assert!(
        refused(&["log:", "--base", "http://h/"], "").contains("no request that can be repeated")
    );
    assert!(
        refused(&["@", "--rate", "replay"], "GET http://h/\n").contains("har:FILE or log:FILE")
    );
    let speed = [
        "log:",
        "--base",
        "http://h/",
        "--rate",
        "replay",
        "--speed",
        "0",
    ];
    assert!(refused(&speed, line).contains("above 0"));
}

/// A load test that is killed when dropped.
struct RunningLoad(Child);

impl Drop for RunningLoad {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get_metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn promtool_accepts_the_metrics_of_a_run() {
    let server = HeadwaterServer::serve(&[]);
    let closed = "http://127.0.0.1:1/";
    let mut child = load_rate()
        .args([&server.url("/Headwater/.mpd"), &server.url("/none"), closed])
        .args([
            "--rate",
            "60",
            "--duration",
            "10min",
            "--metrics",
            "127.0.0.1:0",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let _running = RunningLoad(child);
    let address = lines
        .find_map(|line| {
            Some(
                line.strip_prefix("metrics on http://")?
                    .strip_suffix("/metrics")?
                    .to_owned(),
            )
        })
        .unwrap();
    // Reads the rest of the output, so that progress messages cannot fill the pipe and block the
    // program.
    std::thread::spawn(move || lines.for_each(drop));
    let wanted = [
        "headwater_load_due_total ",
        "headwater_load_requests_total{kind=\"manifest\",status=\"200\"} ",
        "headwater_load_requests_total{kind=\"other\",status=\"404\"} ",
        "headwater_load_errors_total{error=\"status\"} ",
        "headwater_load_errors_total{error=\"refused\"} ",
        "headwater_load_response_bytes_total ",
        "headwater_load_latency_from_due_seconds_count ",
        "headwater_load_latency_from_sent_seconds_count ",
        "headwater_load_generator_lateness_seconds_count ",
        "headwater_load_connections_open ",
    ];
    let end = Instant::now() + PATIENCE;
    let metrics = loop {
        let metrics = get_metrics(&address);
        let value = |name: &str| {
            let found = metrics.lines().find_map(|line| line.strip_prefix(name));
            found
                .and_then(|value| value.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        if wanted.iter().all(|name| value(name) > 0.0) {
            break metrics;
        }
        assert!(Instant::now() < end, "{metrics}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(
        metrics.contains("\nheadwater_load_requests_in_flight "),
        "{metrics}"
    );
    match promtool_complaints(&metrics) {
        Some(complaints) => assert!(complaints.is_empty(), "{complaints}"),
        None => report_skip("promtool: not installed; run scripts/install.sh test"),
    }
}
