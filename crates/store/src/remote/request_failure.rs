//! Failures of storage requests.

use crate::Error;
use crate::http::TransportError;

/// The reason why a request failed.
#[derive(Debug)]
pub(super) struct RequestFailure {
    pub(super) error: Error,
    /// Whether the request may be repeated.
    pub(super) is_retryable: bool,
    /// Whether the storage reported overload. Each retry then uses the retry budget.
    pub(super) is_overload: bool,
}

impl RequestFailure {
    pub(super) fn from_permanent_error(error: Error) -> RequestFailure {
        RequestFailure {
            error,
            is_retryable: false,
            is_overload: false,
        }
    }

    /// Creates the failure of a response with an error status. `error` describes the response.
    pub(super) fn from_status(status: u16, error: Error) -> RequestFailure {
        RequestFailure {
            error,
            is_retryable: matches!(status, 429 | 500..=599),
            is_overload: matches!(status, 429 | 503),
        }
    }

    pub(super) fn from_short_body() -> RequestFailure {
        RequestFailure::from_transport(&TransportError::Interrupted(
            "the body is shorter than declared".into(),
        ))
    }

    pub(super) fn from_transport(failed: &TransportError) -> RequestFailure {
        let text = failed.to_string();
        RequestFailure {
            error: match failed.is_timeout() {
                true => Error::Slow(text),
                false => Error::Broken(text),
            },
            is_retryable: failed.is_transient(),
            is_overload: false,
        }
    }
}
