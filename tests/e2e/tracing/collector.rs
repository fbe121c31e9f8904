//! A collector that stores requests with spans, and decodes the spans with the Python package
//! `opentelemetry-proto`.

use crate::servers::download_server;
use crate::support::{TempFolder, report_skip};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum time to wait for spans.
const PATIENCE: Duration = Duration::from_secs(60);

/// A span as OpenTelemetry's library decodes it.
#[derive(Debug)]
pub struct DecodedSpan {
    pub service: String,
    pub host: String,
    pub trace_id: String,
    pub span_id: String,
    pub parent_id: String,
    pub name: String,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: Value,
    /// The trace id and the span id of each link, as `TRACE-SPAN`.
    pub links: Vec<String>,
}

impl DecodedSpan {
    fn from_json(span: &Value) -> DecodedSpan {
        let text = |name: &str| span[name].as_str().unwrap().to_owned();
        DecodedSpan {
            service: text("service"),
            host: text("host"),
            trace_id: text("trace_id"),
            span_id: text("span_id"),
            parent_id: text("parent_id"),
            name: text("name"),
            start_ns: span["start_ns"].as_u64().unwrap(),
            end_ns: span["end_ns"].as_u64().unwrap(),
            attributes: span["attributes"].clone(),
            links: serde_json::from_value(span["links"].clone()).unwrap(),
        }
    }
}

/// A running collector.
pub struct SpanCollector {
    address: SocketAddr,
    required_line: Arc<Mutex<String>>,
    python: PathBuf,
    folder: TempFolder,
}

impl SpanCollector {
    /// Starts a collector. Reports a skip and returns `None` if the library is not installed.
    pub fn start() -> Option<SpanCollector> {
        let Some(python) = download_server("otel/bin/python") else {
            report_skip("opentelemetry-proto: not installed; run scripts/otel.sh");
            return None;
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = SpanCollector {
            address: listener.local_addr().unwrap(),
            required_line: Arc::default(),
            python,
            folder: TempFolder::new(),
        };
        let folder = collector.folder.0.clone();
        let required = collector.required_line.clone();
        std::thread::spawn(move || accept_all(&listener, &folder, &required));
        Some(collector)
    }

    /// Responds with 401 to later requests without this header line. The line must be in lower
    /// case.
    pub fn require_header(&self, line: &str) {
        *self.required_line.lock().unwrap() = line.to_owned();
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1/traces", self.address)
    }

    /// Waits until `is_complete` accepts the spans of a trace, and returns the spans. An empty
    /// `trace_id` selects the spans of all traces. Panics after [`PATIENCE`].
    pub fn wait_for(
        &self,
        trace_id: &str,
        is_complete: impl Fn(&[DecodedSpan]) -> bool,
    ) -> Vec<DecodedSpan> {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut spans = self.decode();
            spans.retain(|span| trace_id.is_empty() || span.trace_id == trace_id);
            if is_complete(&spans) {
                return spans;
            }
            assert!(Instant::now() < until, "incomplete: {spans:#?}");
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    fn decode(&self) -> Vec<DecodedSpan> {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/tracing/decode_spans.py");
        let run = Command::new(&self.python)
            .arg(script)
            .arg(&self.folder.0)
            .output();
        let output = run.unwrap();
        assert!(output.status.success(), "{output:?}");
        let spans: Value = serde_json::from_slice(&output.stdout).unwrap();
        let spans = spans.as_array().unwrap().iter();
        spans.map(DecodedSpan::from_json).collect()
    }
}

fn accept_all(listener: &TcpListener, folder: &Path, required: &Arc<Mutex<String>>) {
    for (connection, stream) in listener.incoming().flatten().enumerate() {
        let (folder, required) = (folder.to_owned(), required.clone());
        std::thread::spawn(move || receive_batches(stream, connection, &folder, &required));
    }
}

/// Responds to each request of a connection. Stores the bodies of authorized requests in files.
fn receive_batches(
    stream: TcpStream,
    connection: usize,
    folder: &Path,
    required: &Mutex<String>,
) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    for batch in 0.. {
        let (mut len, mut is_protobuf) = (0, false);
        let required = required.lock().unwrap().clone();
        let mut is_authorized = required.is_empty();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                len = value.trim().parse().ok()?;
            }
            is_authorized |= line == required;
            is_protobuf |= line == "content-type: application/x-protobuf";
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; len];
        input.read_exact(&mut body).ok()?;
        assert!(is_protobuf);
        if !is_authorized {
            let refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
            output.write_all(refusal).ok()?;
            continue;
        }
        let name = format!("{connection}-{batch}");
        std::fs::write(folder.join(format!("{name}.part")), body).ok()?;
        std::fs::rename(
            folder.join(format!("{name}.part")),
            folder.join(format!("{name}.pb")),
        )
        .ok()?;
        output
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .ok()?;
    }
    None
}
