//! What is told of a request when it is over, and held while it is not.

use crate::Reason;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Told of every request of the storage when it is over.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn(Done) + Send + Sync>);

impl Watch {
    /// `tell` is called on the threads that ask, and must not wait.
    pub fn new(tell: impl Fn(Done) + Send + Sync + 'static) -> Watch {
        Watch(Arc::new(tell))
    }

    pub(super) fn tell(&self, done: Done) {
        (self.0)(done);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// Gives something that is held while a fetch runs on the thread of whoever asked for it: others may
/// wait for the same bytes, so that the thread must not end before.
#[derive(Clone)]
pub struct Holder(Arc<dyn Fn() -> Box<dyn Send> + Send + Sync>);

impl Holder {
    /// What `hold` gives is dropped when the fetch is over.
    pub fn new<H: Send + 'static>(hold: impl Fn() -> H + Send + Sync + 'static) -> Holder {
        Holder(Arc::new(move || Box::new(hold())))
    }

    pub(super) fn hold(&self) -> Box<dyn Send> {
        (self.0)()
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holder")
    }
}

/// A request of the storage that is over.
#[derive(Debug, Clone)]
pub struct Done {
    /// When it began.
    pub began: SystemTime,
    /// Why it was made.
    pub reason: Reason,
    /// What the bytes are for, where the reason is a hedge or a retry.
    pub of: Reason,
    /// `GET`, `HEAD` or `LIST`.
    pub method: &'static str,
    /// The object.
    pub key: String,
    /// The endpoint: scheme, host and port or bucket, never credentials.
    pub endpoint: Arc<str>,
    /// The bytes asked for.
    pub range: Option<Range<u64>>,
    /// The answer's status, if there was one.
    pub status: Option<u16>,
    /// Bytes of the object that came.
    pub bytes: u64,
    /// The connection's number in the process, and whether it had carried a request before.
    pub connection: Option<(u64, bool)>,
    /// Until the answer's head was there.
    pub first_byte: Option<Duration>,
    /// Until the last byte, or until it was given up.
    pub total: Duration,
    /// Whether all came that was asked for.
    pub complete: bool,
    /// What went wrong.
    pub error: Option<String>,
}
