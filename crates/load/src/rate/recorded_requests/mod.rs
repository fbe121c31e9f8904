//! Reads requests that a browser (HAR) or a server (access log) recorded earlier, with the time of
//! each request.

mod access_log;
mod civil_time;
mod har;
mod log_fields;

use super::request_target::RequestTarget;
use std::io::BufRead;
use url::Url;

/// Maximum number of requests in a recording.
const REQUESTS_MAX: usize = 1_000_000;

/// The format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingFormat {
    /// An HTTP Archive (HAR 1.2) of a browser.
    Har,
    /// An access log in the Common, Combined or W3C format.
    AccessLog,
}

/// The requests of a recording, in the order of their recorded times.
#[derive(Debug, Default)]
pub struct RecordedRequests {
    /// Requests that can be repeated. Each request has `recorded_at_s`.
    pub targets: Vec<RequestTarget>,
    /// Number of requests that cannot be repeated: requests with a scheme other than http or https,
    /// requests served from the browser's cache, and logged requests with methods other than GET
    /// and HEAD.
    pub skipped: u64,
}

/// The reason why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("{}", net::describe_io_error(.0))]
    Read(#[from] std::io::Error),
    /// The file is not an HTTP Archive.
    #[error("invalid HAR file: {0}; export one from the network panel of a browser")]
    Har(#[from] serde_json::Error),
    /// An entry of the archive is invalid. Contains the index of the entry, and the cause.
    #[error("$.log.entries[{0}]: {1}")]
    Entry(usize, HarEntryError),
    /// A line of the log is invalid. Contains the number of the line, from 1, and the cause.
    #[error("line {0}: {1}")]
    Line(u64, &'static str),
    /// A line of the log contains a path without a host, and no base URL was given. Contains the
    /// number of the line.
    #[error("line {0}: the log contains no host; name a server with --base http://HOST:PORT")]
    NoHost(u64),
    /// The file contains too many requests.
    #[error("more than {REQUESTS_MAX} requests; split the file")]
    TooManyRequests,
    /// The file contains no request that can be repeated.
    #[error("the file contains no request that can be repeated ({0} were skipped)")]
    Empty(u64),
}

/// The reason why an archive entry is invalid.
#[derive(Debug, thiserror::Error)]
pub enum HarEntryError {
    /// The start time of the request is not in the format of RFC 3339.
    #[error("invalid startedDateTime {0:.40?}")]
    StartTime(String),
    /// The URL is malformed or not absolute.
    #[error("invalid URL: {0}: {1:.80}")]
    Url(url::ParseError, String),
    /// The method is not a token (RFC 9110 section 5.6.2).
    #[error("invalid method {0:.20?}")]
    Method(String),
}

/// Reads a recording. `base` replaces the scheme, the host and the port of each URL.
///
/// # Errors
/// The file cannot be read, an entry or a line is invalid, or no request can be repeated.
pub fn read_recording(
    format: RecordingFormat,
    input: impl BufRead,
    base: Option<&Url>,
) -> Result<RecordedRequests, RecordingError> {
    let mut recording = match format {
        RecordingFormat::Har => har::read_har(input, base)?,
        RecordingFormat::AccessLog => access_log::read_access_log(input, base)?,
    };
    if recording.targets.is_empty() {
        return Err(RecordingError::Empty(recording.skipped));
    }
    let time_of = |target: &RequestTarget| target.recorded_at_s.unwrap_or_default();
    recording
        .targets
        .sort_by(|a, b| time_of(a).total_cmp(&time_of(b)));
    Ok(recording)
}

impl RecordedRequests {
    fn add_target(&mut self, target: RequestTarget) -> Result<(), RecordingError> {
        if self.targets.len() >= REQUESTS_MAX {
            return Err(RecordingError::TooManyRequests);
        }
        self.targets.push(target);
        Ok(())
    }
}

/// Moves a URL to another server. The result has the scheme, host and port of `base`. The path of
/// the result is the path of `base`, followed by the path of `url`.
fn move_to_base(url: &Url, base: &Url) -> Url {
    let mut moved = base.clone();
    moved.set_path(&format!(
        "{}{}",
        base.path().trim_end_matches('/'),
        url.path()
    ));
    moved.set_query(url.query());
    moved.set_fragment(None);
    moved
}
