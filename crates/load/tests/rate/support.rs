//! Servers that play a script, and runs.

use super::head::head;
use load::client::{Dialer, Settings, Url};
use load::rate::{Plan, Profile, Spacing, Target, run};
use load::result::{Outputs, Record, Records, Run, read_records};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A server that lets `script` play every connection, each in a thread of its own.
pub fn scripted(script: impl Fn(TcpStream) + Send + Sync + 'static) -> Url {
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

/// Answers with this body until the connection ends.
pub fn answers(socket: &mut TcpStream, body: &str, before: impl Fn(&str)) {
    while let Some(text) = head(socket) {
        before(text.split(' ').nth(1).unwrap_or_default());
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if socket.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A plan on one thread, to be changed.
pub fn plan(rate: &str, duration_s: f64, targets: Vec<Target>, settings: Settings) -> Plan {
    Plan {
        profile: Profile::parse(rate, Some(duration_s), |_| Err("no file".into())).unwrap(),
        offered: rate.into(),
        spacing: Spacing::Even,
        seed: 1,
        dialer: Dialer::new(settings).unwrap(),
        targets,
        connections: 4,
        connections_max: 100,
        streams: 1,
        threads: 1,
        drain: Duration::from_secs(10),
    }
}

pub fn ran(plan: Plan) -> Run {
    let stop = AtomicBool::new(false);
    let run = run(Arc::new(plan), &stop, Outputs::default(), |_| {}).unwrap();
    let accounted = run.total().requests + run.unsent + run.abandoned;
    assert!(
        run.due() == 0 || run.due() == accounted,
        "{accounted} of {}",
        run.due()
    );
    run
}

/// The run, and every record of it.
pub fn recorded(plan: Plan) -> (Run, Vec<Record>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.zst");
    let outputs = Outputs {
        hdr: None,
        records: Some(Records::create(&path).unwrap()),
    };
    let run = run(Arc::new(plan), &AtomicBool::new(false), outputs, |_| {}).unwrap();
    let mut records = Vec::new();
    read_records(&path, |record| records.push(record)).unwrap();
    (run, records)
}
