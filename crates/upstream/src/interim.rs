//! Passes interim responses (1xx) of a server to the sender of the request.

use http::{HeaderMap, StatusCode};
use std::fmt;
use std::sync::Arc;

/// Receives the interim responses to a request. The handler is stored in the request's extensions.
/// Statuses 100 and 101 are not passed on, because they concern only one connection.
#[derive(Clone)]
pub struct InterimHandler(Arc<HandleInterim>);

type HandleInterim = dyn Fn(StatusCode, &HeaderMap) + Send + Sync;

impl InterimHandler {
    /// Calls `handle` for each interim response.
    pub fn new(handle: impl Fn(StatusCode, &HeaderMap) + Send + Sync + 'static) -> InterimHandler {
        InterimHandler(Arc::new(handle))
    }

    pub(crate) fn handle_interim_response(&self, status: u16, headers: &HeaderMap) {
        if let Ok(status) = StatusCode::from_u16(status)
            && status != StatusCode::CONTINUE
        {
            (self.0)(status, headers);
        }
    }
}

impl fmt::Debug for InterimHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InterimHandler")
    }
}
