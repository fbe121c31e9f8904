//! Reports of a run's variables to whom the description names, where that is allowed.

use super::answer::Manager;
use super::book::{Entry, Name};
use super::describe;
use crate::nbmp::Offence;
use http::Uri;
use net::Cidr;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Not more often.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Where the description says none.
const INTERVAL: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(2);

/// Where reports go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The address that was found allowed: no name is asked again.
    address: SocketAddr,
    host: String,
    path: String,
    interval: Duration,
    kind: Option<String>,
}

/// A description's own, if it wants reports.
///
/// # Errors
/// That reports may not go there.
pub(super) fn target(description: &Value, allowed: &[Cidr]) -> Result<Option<Target>, Offence> {
    let Some(reporting) = description.get("reporting") else {
        return Ok(None);
    };
    let refuse = |what: String| Offence {
        path: "$.reporting.url".into(),
        what,
    };
    let text = |name: &str| reporting.get(name).and_then(Value::as_str);
    let url: Uri = text("url")
        .unwrap_or_default()
        .parse()
        .map_err(|error| refuse(format!("{error}")))?;
    let (Some("http"), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err(refuse("reports go to http:// addresses".into()));
    };
    let at = (
        url.host().unwrap_or_default().trim_matches(['[', ']']),
        url.port_u16().unwrap_or(80),
    );
    let found = at
        .to_socket_addrs()
        .map_err(|error| refuse(format!("{authority}: {error}")))?;
    let found: Vec<SocketAddr> = found.collect();
    let may = |address: &SocketAddr| allowed.iter().any(|network| network.holds(address.ip()));
    let (Some(address), true) = (found.first(), found.iter().all(may)) else {
        return Err(refuse(format!(
            "reports may not go to {authority}; it must be in one of --report-to's networks"
        )));
    };
    let interval = reporting.get("reporting-interval").and_then(Value::as_u64);
    Ok(Some(Target {
        address: *address,
        host: authority.host().to_owned(),
        path: url
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned(),
        interval: interval
            .map_or(INTERVAL, Duration::from_millis)
            .max(INTERVAL_MIN),
        kind: text("report-type").map(str::to_owned),
    }))
}

/// Reports until it is dropped, and then once more.
pub(super) struct Reporter(Option<(Sender<()>, JoinHandle<()>)>);

impl Reporter {
    pub(super) fn start(manager: &Manager, name: &Name, entry: &Entry) -> Reporter {
        let Some(target) = entry.prepared.report.clone() else {
            return Reporter(None);
        };
        let (end, ended) = channel::<()>();
        let (book, name) = (manager.book.clone(), name.clone());
        let work = move || {
            loop {
                let last = ended.recv_timeout(target.interval) != Err(RecvTimeoutError::Timeout);
                let Ok(entry) = book.get(&name) else {
                    return;
                };
                if target.post(&name.1, &entry).is_err() {
                    book.note(&name, |figures| figures.reports_lost += 1);
                }
                if last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("reporter".into())
            .spawn(work);
        Reporter(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

impl Target {
    /// One report; redirections are not followed.
    fn post(&self, id: &str, entry: &Entry) -> io::Result<()> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let body = json!({
            "id": id, "state": entry.state.name(), "unix_s": now.as_secs_f64(),
            "report-type": self.kind, "variable": describe::variables(entry),
        })
        .to_string();
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Target {
            path,
            host,
            address,
            ..
        } = self;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            address.port(),
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        match answer.starts_with(b"HTTP/1.") && answer.get(9) == Some(&b'2') {
            true => Ok(()),
            false => Err(io::Error::other("not taken")),
        }
    }
}
