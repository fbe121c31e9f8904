//! The reason why a body ends early.

use std::fmt;
use std::sync::Arc;

/// The reason why a body is incomplete. The server then closes the connection or, in HTTP/2, resets
/// the stream.
#[derive(Debug, Clone)]
pub struct BodyError {
    why: Arc<str>,
}

impl BodyError {
    /// Creates an error with this reason. The record of the request contains the reason. The client
    /// sees only that the connection is closed or the stream is reset.
    pub fn new(why: impl fmt::Display) -> BodyError {
        BodyError {
            why: why.to_string().into(),
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body cut: {}", self.why)
    }
}

impl std::error::Error for BodyError {}

impl From<std::io::Error> for BodyError {
    fn from(error: std::io::Error) -> BodyError {
        BodyError::new(error)
    }
}
