//! Errors of requests to the storage. No message contains a credential.

use object_store::client::{HttpError, HttpErrorKind};
use std::fmt;
use upstream::{ConnectError, ExchangeError};

/// A request that got no complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// The address does not exist, or no server listens there.
    Connect(String),
    /// The certificate is not trusted, or the server does not speak TLS.
    Tls(String),
    ConnectTimeout,
    /// All allowed connections were in use for too long.
    PoolExhausted,
    FirstByteTimeout,
    /// The body was received too slowly.
    Stalled,
    /// The connection was closed, or invalid bytes were received, before the response was complete.
    Interrupted(String),
    /// A redirect that is not followed.
    Redirect(String),
    /// A body that is longer than its limit.
    TooLong,
}

impl TransportError {
    /// Returns whether a timeout elapsed.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(
            self,
            TransportError::ConnectTimeout
                | TransportError::FirstByteTimeout
                | TransportError::Stalled
                | TransportError::PoolExhausted
        )
    }

    /// Returns whether the same request may succeed if it is repeated.
    pub(crate) fn is_transient(&self) -> bool {
        !matches!(
            self,
            TransportError::Tls(_) | TransportError::Redirect(_) | TransportError::TooLong
        )
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportError::Connect(reason) => {
                write!(
                    f,
                    "cannot connect to the storage: {reason}; check its address, and that it runs"
                )
            }
            TransportError::Tls(reason) => write!(f, "TLS with the storage failed: {reason}"),
            TransportError::ConnectTimeout => f.write_str("connecting to the storage timed out"),
            TransportError::PoolExhausted => {
                f.write_str("all connections to the storage are in use")
            }
            TransportError::FirstByteTimeout => f.write_str("the storage did not respond in time"),
            TransportError::Stalled => f.write_str("the storage's response stalled"),
            TransportError::Interrupted(reason) => {
                write!(f, "the storage's response was interrupted: {reason}")
            }
            TransportError::Redirect(reason) => {
                write!(f, "unusable redirect from the storage: {reason}")
            }
            TransportError::TooLong => f.write_str("the storage's response is too long"),
        }
    }
}

impl std::error::Error for TransportError {}

impl From<ConnectError> for TransportError {
    fn from(error: ConnectError) -> TransportError {
        match error {
            ConnectError::Tcp(error) => TransportError::Connect(error.to_string()),
            ConnectError::Tls(error) => TransportError::Tls(error.to_string()),
            ConnectError::TimedOut => TransportError::ConnectTimeout,
        }
    }
}

impl From<ExchangeError> for TransportError {
    fn from(error: ExchangeError) -> TransportError {
        TransportError::Interrupted(error.to_string())
    }
}

impl From<TransportError> for HttpError {
    fn from(error: TransportError) -> HttpError {
        let kind = match error {
            TransportError::Connect(_)
            | TransportError::Tls(_)
            | TransportError::ConnectTimeout => HttpErrorKind::Connect,
            TransportError::FirstByteTimeout
            | TransportError::Stalled
            | TransportError::PoolExhausted => HttpErrorKind::Timeout,
            TransportError::Interrupted(_) => HttpErrorKind::Interrupted,
            TransportError::Redirect(_) | TransportError::TooLong => HttpErrorKind::Unknown,
        };
        HttpError::new(kind, error)
    }
}
