//! Why no answer came, in words that name no credential.

use object_store::client::{HttpError, HttpErrorKind};
use std::fmt;

/// A request that got no whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// There is no such address, or nobody listens there.
    Connect(String),
    /// The certificate is not trusted, or the other end speaks no TLS.
    Tls(String),
    /// No connection in time.
    ConnectTimeout,
    /// All connections that are allowed were in use for too long.
    Crowded,
    /// A connection, but no answer in time.
    FirstByteTimeout,
    /// The answer's body came too slowly.
    Stall,
    /// The connection ended before the answer did.
    Cut(String),
    /// An answer that sends us elsewhere.
    Redirect(String),
    /// A body over its bound.
    TooLong,
}

impl Failed {
    /// Whether it was time that ran out.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(
            self,
            Failed::ConnectTimeout | Failed::FirstByteTimeout | Failed::Stall | Failed::Crowded
        )
    }

    /// Whether the same request may be answered if it is sent again.
    pub(crate) fn may_pass(&self) -> bool {
        !matches!(self, Failed::Tls(_) | Failed::Redirect(_) | Failed::TooLong)
    }

    pub(crate) fn of_hyper(error: &hyper::Error) -> Failed {
        let source = std::error::Error::source(error);
        Failed::Cut(source.map_or_else(|| error.to_string(), |source| source.to_string()))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Connect(why) => write!(f, "no connection to the storage: {why}"),
            Failed::Tls(why) => write!(f, "no TLS with the storage: {why}"),
            Failed::ConnectTimeout => f.write_str("no connection to the storage in time"),
            Failed::Crowded => f.write_str("all connections to the storage are in use"),
            Failed::FirstByteTimeout => f.write_str("the storage does not answer in time"),
            Failed::Stall => f.write_str("the storage's answer stalls"),
            Failed::Cut(why) => write!(f, "the storage's answer was cut: {why}"),
            Failed::Redirect(why) => write!(f, "the storage sends us elsewhere: {why}"),
            Failed::TooLong => f.write_str("the storage's answer is too long"),
        }
    }
}

impl std::error::Error for Failed {}

impl From<Failed> for HttpError {
    fn from(failed: Failed) -> HttpError {
        let kind = match failed {
            Failed::Connect(_) | Failed::Tls(_) | Failed::ConnectTimeout => HttpErrorKind::Connect,
            Failed::FirstByteTimeout | Failed::Stall | Failed::Crowded => HttpErrorKind::Timeout,
            Failed::Cut(_) => HttpErrorKind::Interrupted,
            Failed::Redirect(_) | Failed::TooLong => HttpErrorKind::Unknown,
        };
        HttpError::new(kind, failed)
    }
}
