//! Tests traces from the edge through the origin to the storage. A collector receives the spans,
//! and OpenTelemetry's own library decodes them.

mod authorization;
mod coalesced;
mod collector;
mod held_origin;
mod key_server;
mod slow_storage;

use self::collector::{DecodedSpan, SpanCollector};
use self::key_server::start_key_server;
use self::slow_storage::{STORAGE_DELAY, SlowStorage};
use crate::prometheus::scraper::{Prometheus, wait_until};
use crate::servers::{self, ACCESS, S3, SECRET};
use crate::support::{HeadwaterServer, TempFolder, fixture_path, send_request};
use serde_json::Value;
use std::path::Path;

const CALLER: &str = "00f067aa0ba902b7";
/// Maximum number of cold requests. For at least one of these requests, the durations of the child
/// spans must add up to the duration of the request. On a busy machine, a request may wait for a
/// processor, and no span covers this time.
const ATTEMPTS: u32 = 6;
/// Maximum difference between a span's duration and the sum of its child spans' durations, as a
/// share of the span's duration.
const TOLERANCE: f64 = 0.05;

fn trace_id(n: u32) -> String {
    format!("4bf92f3577b34da6a3ce929d{n:08x}")
}

/// Returns a `traceparent` header value whose sampled flag is set.
fn sampled(n: u32) -> String {
    format!("00-{}-{CALLER}-01", trace_id(n))
}

fn start_origin(storage: &str, more: &[&str]) -> HeadwaterServer {
    let endpoint = format!("aws_endpoint_url=http://{storage}");
    let arguments = [
        "s3://films",
        "--segment",
        "2s",
        "--storage-option",
        &endpoint,
    ];
    let variables = [
        ("AWS_ACCESS_KEY_ID", ACCESS),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
    ];
    HeadwaterServer::serve_with_environment(&variables, &[&arguments, more].concat())
}

fn start_edge(origin: &HeadwaterServer, more: &[&str]) -> HeadwaterServer {
    let url = origin.url("");
    HeadwaterServer::start_program("edge", &[&["--origin", &url], more].concat())
}

/// Uploads a film, and waits until an origin can serve it. Returns the paths of a transport stream
/// segment and of a CMAF segment.
fn upload_film(film: &Path, storage: &S3) -> [String; 2] {
    storage.put("films/avc.mp4", &std::fs::read(film).unwrap());
    let origin = start_origin(&format!("127.0.0.1:{}", storage.port), &[]);
    // Objects become visible a moment after they were written.
    let playable = || origin.get("/avc.mp4/.m3u8").status == 200;
    assert!(wait_until(|| (), playable), "the film is not visible");
    let playlist = format!("/avc.mp4/{}", first_url(&origin, "/avc.mp4/.m3u8"));
    let folder = &playlist[..=playlist.rfind('/').unwrap()];
    let segment = format!("{folder}{}", first_url(&origin, &playlist));
    let stem = &segment[..segment.rfind('.').unwrap()];
    ["ts", "m4s"].map(|suffix| format!("{stem}.{suffix}"))
}

fn first_url(origin: &HeadwaterServer, playlist: &str) -> String {
    let text = origin.get_text(playlist);
    let is_url = |line: &&str| !line.is_empty() && !line.starts_with('#');
    text.lines().find(is_url).unwrap().to_owned()
}

fn find_spans<'a>(spans: &'a [DecodedSpan], name: &str) -> Vec<&'a DecodedSpan> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn find_children<'a>(spans: &'a [DecodedSpan], parent: &DecodedSpan) -> Vec<&'a DecodedSpan> {
    let is_child = |span: &&DecodedSpan| span.parent_id == parent.span_id;
    spans.iter().filter(is_child).collect()
}

/// Requests a segment through a new edge and a new origin, whose caches are empty. Returns the
/// spans of both servers.
fn trace_cold_segment(
    storage: &SlowStorage,
    collector: &SpanCollector,
    (path, n): (&str, u32),
) -> Vec<DecodedSpan> {
    let otlp = ["--otlp-endpoint", &collector.url()];
    let origin = start_origin(&storage.address.to_string(), &otlp);
    let edge = start_edge(&origin, &otlp);
    let headers = [("traceparent", &*sampled(n))];
    let response = send_request(edge.addr, "GET", path, &headers);
    assert_eq!(response.status, 200, "{}", response.error_reason());
    collector.wait_for(&trace_id(n), |spans| {
        find_spans(spans, "request").len() == 2
    })
}

/// Checks the parents of three spans: the edge's request, the edge's fetch and the origin's
/// request. Returns the span of the origin's request.
fn check_servers<'a>(spans: &'a [DecodedSpan], path: &str) -> &'a DecodedSpan {
    let request_of = |service: &str| {
        let requests = find_spans(spans, "request");
        let mut requests = requests.into_iter();
        requests.find(|span| span.service == service).unwrap()
    };
    let [at_edge, at_origin] = ["headwater-edge", "headwater-serve"].map(request_of);
    let fetch = find_spans(spans, "edge.fetch")[0];
    assert_eq!(at_edge.parent_id, CALLER);
    assert_eq!(fetch.parent_id, at_edge.span_id);
    assert_eq!(at_origin.parent_id, fetch.span_id);
    assert_eq!(at_origin.attributes["http.request.method"], "GET");
    assert_eq!(at_origin.attributes["http.response.status_code"], 200);
    assert_eq!(at_origin.attributes["url.path"], path);
    assert_eq!(at_origin.attributes["headwater.kind"], "segment");
    assert_eq!(at_edge.attributes["headwater.cache"], "miss");
    at_origin
}

/// Checks the spans of the origin. Also checks that the storage received a `traceparent` for each
/// span of a storage read.
fn check_origin(spans: &[DecodedSpan], request: &DecodedSpan, parts: &[&str], at: &SlowStorage) {
    let children = find_children(spans, request);
    for name in parts {
        let is_there = children.iter().any(|span| span.name == *name);
        assert!(is_there, "no {name}: {children:#?}");
    }
    let index = children.iter().find(|span| span.name == "index").unwrap();
    let of_index = find_children(spans, index);
    for name in ["storage.read", "present"] {
        assert!(of_index.iter().any(|span| span.name == name), "no {name}");
    }
    let received = at.traceparents();
    for read in find_spans(spans, "storage.read") {
        let expected = format!("00-{}-{}-01", read.trace_id, read.span_id);
        assert!(received.contains(&expected), "{expected}: {received:?}");
        assert_eq!(read.attributes["server.port"], at.address.port());
    }
}

/// Returns the sum of the durations of a span's child spans, as a share of the span's duration.
fn add_up(spans: &[DecodedSpan], whole: &DecodedSpan) -> f64 {
    let parts = find_children(spans, whole);
    let sum: u64 = parts.iter().map(|part| part.end_ns - part.start_ns).sum();
    let total = whole.end_ns - whole.start_ns;
    let delays = 2 * STORAGE_DELAY.as_nanos() as u64;
    assert!(total > delays, "{total} ns is too short");
    sum as f64 / total as f64
}

#[test]
fn the_parts_of_a_cold_s3_segment_add_up_to_the_whole() {
    let (Some(film), Some(collector)) = (fixture_path("avc.mp4"), SpanCollector::start()) else {
        return;
    };
    let dir = TempFolder::new();
    let Some(storage) = servers::start_s3(&dir.0, None) else {
        return servers::skip_server("no S3 server: run scripts/storage.sh");
    };
    let [transport_stream, cmaf] = upload_film(&film, &storage);
    let parts_of = [
        (
            transport_stream,
            &["index", "plan", "storage.read", "pack"][..],
        ),
        (cmaf, &["index", "plan", "storage.read"]),
    ];
    let mut n = 0;
    for (path, parts) in parts_of {
        let mut shares = Vec::new();
        let add_up_once = |_| {
            n += 1;
            let proxy = SlowStorage::start(storage.port);
            let spans = trace_cold_segment(&proxy, &collector, (&path, n));
            let request = check_servers(&spans, &path);
            check_origin(&spans, request, parts, &proxy);
            shares.push(add_up(&spans, request));
            shares
                .last()
                .is_some_and(|sum| (sum - 1.0).abs() <= TOLERANCE)
        };
        assert!((1..=ATTEMPTS).any(add_up_once), "{path}: {shares:?}");
        println!("{path}: the parts are {shares:?} of the whole");
    }
}

#[test]
fn keys_and_encryption_have_spans() {
    let Some(collector) = SpanCollector::start() else {
        return;
    };
    let keys = format!("cpix:http://{}/", start_key_server());
    let drm = ["--drm-keys", &keys, "--drm-systems", "clearkey"];
    let otlp = ["--otlp-endpoint", &collector.url(), "--drm-clear-tracks"];
    let origin = HeadwaterServer::serve(&[&drm[..], &otlp].concat());
    let traced = |path: &str, n| {
        let response = origin.request("GET", path, &[("traceparent", &sampled(n))]);
        assert_eq!(response.status, 200, "{path}: {}", response.error_reason());
        let is_complete = |spans: &[DecodedSpan]| !find_spans(spans, "request").is_empty();
        collector.wait_for(&trace_id(n), is_complete)
    };
    let spans = traced("/Headwater/.m3u8", 1);
    let request = find_spans(&spans, "request")[0];
    let index = find_spans(&spans, "index")[0];
    let keys = find_spans(&spans, "keys")[0];
    assert_eq!(index.parent_id, request.span_id);
    assert_eq!(keys.parent_id, index.span_id);
    let playlist = format!("/Headwater/{}", first_url(&origin, "/Headwater/.m3u8"));
    let folder = &playlist[..=playlist.rfind('/').unwrap()];
    let segment = format!("{folder}{}", first_url(&origin, &playlist));
    let spans = traced(&segment, 2);
    let request = find_spans(&spans, "request")[0];
    assert_eq!(find_spans(&spans, "encrypt")[0].parent_id, request.span_id);
}

#[test]
fn only_requests_of_sampled_callers_have_spans() {
    let Some(collector) = SpanCollector::start() else {
        return;
    };
    let origin = HeadwaterServer::serve(&["--otlp-endpoint", &collector.url()]);
    let manifest = "/Headwater/.m3u8";
    origin.get(manifest);
    let unsampled = sampled(1).replace("-01", "-00");
    origin.request("GET", manifest, &[("traceparent", &unsampled)]);
    origin.request("GET", "/healthz", &[("traceparent", &sampled(2))]);
    // Spans are exported in order. If the earlier requests had spans, these spans would have
    // arrived before the span of `/healthz`.
    let spans = collector.wait_for("", |spans| !find_spans(spans, "request").is_empty());
    let paths: Vec<_> = spans
        .iter()
        .map(|span| &span.attributes["url.path"])
        .collect();
    assert_eq!(paths, ["/healthz"]);
}

#[test]
fn the_origin_follows_the_decision_of_a_caller_of_the_edge_against_a_trace() {
    let Some(collector) = SpanCollector::start() else {
        return;
    };
    let otlp = ["--otlp-endpoint", &collector.url()];
    let all = ["--otlp-sample-percent", "100"];
    let origin = HeadwaterServer::serve(&[otlp, all].concat());
    let edge = start_edge(&origin, &otlp);
    let manifest = "/Headwater/.m3u8";
    let unsampled = sampled(1).replace("-01", "-00");
    let response = edge.request("GET", manifest, &[("traceparent", &unsampled)]);
    assert_eq!(response.status, 200, "{}", response.error_reason());
    origin.request("GET", "/healthz", &[("traceparent", &sampled(2))]);
    // Spans are exported in order. A span of the manifest would have arrived before this span.
    let spans = collector.wait_for("", |spans| {
        spans.iter().any(|span| span.trace_id == trace_id(2))
    });
    let is_of_manifest = |span: &DecodedSpan| span.attributes["url.path"] == manifest;
    assert!(!spans.iter().any(is_of_manifest), "{spans:#?}");
}

#[test]
fn all_requests_of_a_full_sample_have_traces_of_their_own() {
    let Some(collector) = SpanCollector::start() else {
        return;
    };
    let flags = ["--otlp-endpoint", &collector.url(), "--otlp-sample-percent"];
    let origin = HeadwaterServer::serve(&[&flags[..], &["100"]].concat());
    for path in ["/healthz", "/none", "/healthz"] {
        origin.get(path);
    }
    let spans = collector.wait_for("", |spans| find_spans(spans, "request").len() == 3);
    let mut traces: Vec<_> = spans.iter().map(|span| &span.trace_id).collect();
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 3, "{spans:#?}");
    assert!(spans.iter().all(|span| span.parent_id.is_empty()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(spans.iter().all(|span| span.host == host.trim()));
}

#[test]
fn server_timing_requires_the_token() {
    const TOKEN: &str = "0123456789abcdef-timing";
    let folder = TempFolder::new();
    let file = folder.write_file("token", TOKEN.as_bytes());
    let flags = ["--server-timing-token-file", file.to_str().unwrap()];
    let origin = HeadwaterServer::serve(&flags);
    let edge = start_edge(&origin, &flags);
    let manifest = "/Headwater/.mpd";
    let off = HeadwaterServer::serve(&[]);
    let timing_of = |server: &HeadwaterServer, token: &str| {
        let response = server.request("GET", manifest, &[("headwater-timing", token)]);
        assert_eq!(response.status, 200);
        response.header("server-timing").map(str::to_owned)
    };
    for wrong in ["", "1", &TOKEN[1..], &format!("{TOKEN}x")] {
        assert_eq!(timing_of(&origin, wrong), None, "{wrong}");
        assert_eq!(timing_of(&edge, wrong), None, "{wrong}");
    }
    assert_eq!(timing_of(&off, TOKEN), None);
    assert_eq!(origin.get(manifest).header("server-timing"), None);
    // Starts servers that have not loaded the title or cached the manifest.
    let fresh = HeadwaterServer::serve(&flags);
    let timing = timing_of(&fresh, TOKEN).unwrap();
    assert!(timing.starts_with("total;dur="), "{timing}");
    assert!(timing.contains(", index;dur="), "{timing}");
    let edge = start_edge(&fresh, &flags);
    let timing = timing_of(&edge, TOKEN).unwrap();
    assert!(timing.contains(", edge.fetch;dur="), "{timing}");
    assert!(!timing.contains("index"), "{timing}");
}

#[test]
fn prometheus_receives_the_trace_of_a_request_as_exemplar() {
    let Some(collector) = SpanCollector::start() else {
        return;
    };
    let otlp = ["--otlp-endpoint", &collector.url()];
    let origin = HeadwaterServer::serve(&otlp);
    let edge = start_edge(&origin, &otlp);
    let targets = [("edge", "http", edge.addr), ("origin", "http", origin.addr)];
    let Some(prometheus) = Prometheus::start(&targets, None) else {
        return;
    };
    edge.request("GET", "/Headwater/.m3u8", &[("traceparent", &sampled(1))]);
    let spans = collector.wait_for(&trace_id(1), |spans| {
        find_spans(spans, "request").len() == 2
    });
    for job in ["edge", "origin"] {
        for metric in ["http_request_duration", "http_first_byte"] {
            let query = format!("headwater_{metric}_seconds_bucket%7Bjob=%22{job}%22%7D");
            let target = format!("/api/v1/query_exemplars?query={query}");
            let has_exemplar = || {
                let found = prometheus.get(&target);
                let found: Value = serde_json::from_slice(&found.body).unwrap_or_default();
                let found = &found["data"][0]["exemplars"][0];
                found["labels"]["trace_id"] == spans[0].trace_id
            };
            assert!(wait_until(|| (), has_exemplar), "{job} {metric}");
        }
    }
    // The native text format of Prometheus supports no exemplars.
    assert!(!origin.get_text("/metrics").contains("trace_id"));
}
