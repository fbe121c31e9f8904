//! The reason why a body is cut.

use std::fmt;
use std::sync::Arc;

/// The reason why a body is incomplete. The connection (HTTP/2: the stream) is cut.
#[derive(Debug, Clone)]
pub struct BodyCut {
    why: Arc<str>,
}

impl BodyCut {
    /// Creates a cut with this reason. The reason is recorded; the client only sees that the
    /// connection or stream is cut.
    pub fn new(why: impl fmt::Display) -> BodyCut {
        BodyCut {
            why: why.to_string().into(),
        }
    }
}

impl fmt::Display for BodyCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body cut: {}", self.why)
    }
}

impl std::error::Error for BodyCut {}

impl From<std::io::Error> for BodyCut {
    fn from(error: std::io::Error) -> BodyCut {
        BodyCut::new(error)
    }
}
