//! The address that receives reports of a run's variables.

use crate::nbmp::NbmpFault;
use http::Uri;
use net::Cidr;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Minimum interval between reports.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Default interval between reports.
const INTERVAL: Duration = Duration::from_secs(1);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The address that receives reports, with the interval and the type of the reports.
#[derive(Debug, Clone)]
pub(super) struct ReportingTarget {
    /// The address that was compared with the allowed networks. The host name is not resolved
    /// again, because it could resolve to another address.
    address: SocketAddr,
    host: String,
    path: String,
    interval: Duration,
    report_type: Option<String>,
}

/// Reads the target of reports from a description. Returns `None` if the description requests no
/// reports.
///
/// # Errors
/// The URL is invalid or unsupported, the host cannot be resolved, or its address is not allowed to
/// receive reports.
pub(super) fn read_reporting_target(
    description: &Value,
    allowed: &[Cidr],
) -> Result<Option<ReportingTarget>, NbmpFault> {
    let Some(reporting) = description.get("reporting") else {
        return Ok(None);
    };
    let refuse = |what: String| NbmpFault {
        path: "$.reporting.url".into(),
        what,
    };
    let text = |name: &str| reporting.get(name).and_then(Value::as_str);
    let url: Uri = text("url")
        .unwrap_or_default()
        .parse()
        .map_err(|error| refuse(format!("{error}")))?;
    let (Some("http"), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err(refuse(
            "unsupported URL; reports are sent to http:// addresses only".into(),
        ));
    };
    let at = (
        url.host().unwrap_or_default().trim_matches(['[', ']']),
        url.port_u16().unwrap_or(80),
    );
    let found = at
        .to_socket_addrs()
        .map_err(|error| refuse(format!("{authority}: {error}")))?;
    let found: Vec<SocketAddr> = found.collect();
    let may = |address: &SocketAddr| {
        allowed
            .iter()
            .any(|network| network.contains_address(address.ip()))
    };
    let (Some(address), true) = (found.first(), found.iter().all(may)) else {
        return Err(refuse(format!(
            "{authority} may not receive reports; allow its network with --report-to"
        )));
    };
    let interval = reporting.get("reporting-interval").and_then(Value::as_u64);
    Ok(Some(ReportingTarget {
        address: *address,
        host: authority.host().to_owned(),
        path: url
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned(),
        interval: interval
            .map_or(INTERVAL, Duration::from_millis)
            .max(INTERVAL_MIN),
        report_type: text("report-type").map(str::to_owned),
    }))
}

impl ReportingTarget {
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the report type that the description names.
    pub(super) fn report_type(&self) -> Option<&str> {
        self.report_type.as_deref()
    }

    /// Posts one report. Does not follow redirects.
    pub(super) fn post_report(&self, body: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address, RESPONSE_TIMEOUT)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        let ReportingTarget {
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
        let mut status_line = [0; 12];
        stream.read_exact(&mut status_line)?;
        match status_line.starts_with(b"HTTP/1.") && status_line.get(9) == Some(&b'2') {
            true => Ok(()),
            false => Err(io::Error::other("not taken")),
        }
    }
}
