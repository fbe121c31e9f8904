//! Scripted servers, and functions that run a plan against them.

use super::head::head;
use load::client::{ClientSettings, Dialer, Url};
use load::rate::{ArrivalSpacing, RateProfile, RateRunPlan, RequestTarget, run_rate_plan};
use load::result::{RecordWriter, RequestRecord, RunOutputs, RunResult, read_records};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Starts a server that runs `script` for every connection, with one thread per connection.
pub fn start_scripted_server(script: impl Fn(TcpStream) + Send + Sync + 'static) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let script = Arc::new(script);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, script) = (socket.unwrap(), script.clone());
            std::thread::spawn(move || script(socket));
        }
    });
    url
}

/// Returns a URL whose port refuses connections. The socket reserves the port, so that no server of
/// another test can use it.
pub fn reserve_closed_port() -> (socket2::Socket, Url) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, Url::parse(&format!("http://{address}/")).unwrap())
}

/// Responds to every request with `body`. Before each response, calls `before` with the path of the
/// request.
pub fn respond_to_all(socket: &mut TcpStream, body: &str, before: impl Fn(&str)) {
    while let Some(text) = head(socket) {
        before(text.split(' ').nth(1).unwrap_or_default());
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if socket.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns a plan for one thread.
pub fn plan(
    rate: &str,
    duration_s: f64,
    targets: Vec<RequestTarget>,
    settings: ClientSettings,
) -> RateRunPlan {
    RateRunPlan {
        profile: RateProfile::parse_profile(rate, Some(duration_s), |_| unreachable!()).unwrap(),
        offered: rate.into(),
        spacing: ArrivalSpacing::Even,
        seed: 1,
        dialer: Dialer::new(settings).unwrap(),
        targets,
        connections: 4,
        connections_max: 100,
        streams: 1,
        threads: 1,
        drain: Duration::from_secs(10),
        metrics: None,
    }
}

pub fn run_to_end(plan: RateRunPlan) -> RunResult {
    let stop = AtomicBool::new(false);
    let run = run_rate_plan(Arc::new(plan), &stop, RunOutputs::default(), |_| {}).unwrap();
    let accounted = run.merged_stats().requests + run.unsent + run.abandoned;
    assert!(
        run.due_count() == 0 || run.due_count() == accounted,
        "{accounted} of {}",
        run.due_count()
    );
    run
}

/// Runs a plan and returns its result and records.
pub fn run_recorded(plan: RateRunPlan) -> (RunResult, Vec<RequestRecord>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.zst");
    let outputs = RunOutputs {
        hdr: None,
        records: Some(RecordWriter::create(&path).unwrap()),
    };
    let run = run_rate_plan(Arc::new(plan), &AtomicBool::new(false), outputs, |_| {}).unwrap();
    let mut records = Vec::new();
    read_records(&path, |record| records.push(record)).unwrap();
    (run, records)
}
