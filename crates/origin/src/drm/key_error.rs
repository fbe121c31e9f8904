//! Errors of key sources. An error has a message that viewers may see, and a cause that only
//! operators see.

use http::StatusCode;
use net::Error;
use std::fmt;

/// The reason why keys are unavailable, without keys and credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyError {
    /// Message for viewers. It contains no address, no path, no text from a key server and no
    /// system error.
    message: String,
    /// Cause for operators, if it differs from the message.
    cause: Option<String>,
}

impl KeyError {
    /// Creates an error whose cause is for operators only.
    pub(crate) fn with_cause(message: impl Into<String>, cause: impl fmt::Display) -> KeyError {
        KeyError {
            message: message.into(),
            cause: Some(cause.to_string()),
        }
    }

    /// Converts the error to a 503 response. `place`, such as `keys`, is put in front of the
    /// message.
    pub(crate) fn into_unavailable(self, place: &str) -> Error {
        let message = format!("{place}: {}", self.message);
        let error = Error::new_upstream_error(StatusCode::SERVICE_UNAVAILABLE, message);
        match self.cause {
            Some(cause) => error.with_detail(format!("{place}: {cause}")),
            None => error,
        }
    }
}

impl From<String> for KeyError {
    /// Creates an error whose whole text viewers may see.
    fn from(message: String) -> KeyError {
        KeyError {
            message,
            cause: None,
        }
    }
}

impl From<&str> for KeyError {
    fn from(message: &str) -> KeyError {
        KeyError::from(message.to_owned())
    }
}

/// Writes the cause for the log, or the message if there is no cause.
impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cause.as_deref().unwrap_or(&self.message))
    }
}
