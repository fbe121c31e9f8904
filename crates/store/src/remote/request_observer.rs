//! Callbacks of a library, which report completed requests and create guards for running fetches.

use crate::RequestReason;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A callback for each completed storage request.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(CompletedRequest) + Send + Sync>);

impl RequestObserver {
    /// Creates an observer. The requesting threads call `observe`, which must not block.
    pub fn new(observe: impl Fn(CompletedRequest) + Send + Sync + 'static) -> RequestObserver {
        RequestObserver(Arc::new(observe))
    }

    pub(super) fn notify(&self, done: CompletedRequest) {
        (self.0)(done);
    }
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestObserver")
    }
}

/// Creates guards that keep the caller's thread alive while a fetch runs on this thread. Other
/// clients may be waiting for the bytes of this fetch.
#[derive(Clone)]
pub struct ThreadHoldFactory(Arc<dyn Fn() -> Box<dyn Send> + Send + Sync>);

impl ThreadHoldFactory {
    /// A fetch calls `hold` when it starts, and drops the returned value when it ends.
    pub fn new<H: Send + 'static>(
        hold: impl Fn() -> H + Send + Sync + 'static,
    ) -> ThreadHoldFactory {
        ThreadHoldFactory(Arc::new(move || Box::new(hold())))
    }

    pub(super) fn new_guard(&self) -> Box<dyn Send> {
        (self.0)()
    }
}

impl fmt::Debug for ThreadHoldFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadHoldFactory")
    }
}

/// A completed storage request.
#[derive(Debug, Clone)]
pub struct CompletedRequest {
    /// Start time.
    pub started: SystemTime,
    /// The reason of this request.
    pub reason: RequestReason,
    /// The reason why the caller needs the bytes. It can differ from `reason` only if this request
    /// is a hedged request or a retry.
    pub original_reason: RequestReason,
    /// `GET`, `HEAD` or `LIST`.
    pub method: &'static str,
    /// The object key.
    pub key: String,
    /// The endpoint as scheme, host and port, or as scheme and bucket. It never contains
    /// credentials.
    pub endpoint: Arc<str>,
    /// The requested range.
    pub range: Option<Range<u64>>,
    /// The response's status, if there was a response.
    pub status: Option<u16>,
    /// Received bytes of the object.
    pub bytes: u64,
    /// The connection's number in the process, and whether the connection was reused.
    pub connection: Option<(u64, bool)>,
    /// Time until the response's head was received.
    pub first_byte: Option<Duration>,
    /// Time until the last byte was received, or until the request failed or was canceled.
    pub total: Duration,
    /// Whether all requested bytes were received.
    pub complete: bool,
    /// The error, if the request failed.
    pub error: Option<String>,
}
