//! Passes interim responses (1xx) from a handler to the connection, which sends them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, Weak};

use http::{HeaderMap, StatusCode};

use super::ConnectionState;
use crate::headers::write_field;

/// Limit on the bytes of interim responses that wait on a connection. Further interim responses are
/// dropped.
const QUEUE_BYTES_MAX: usize = 64 << 10;

/// Sends interim responses to one request. A sender does not keep the connection open.
#[derive(Debug, Clone)]
pub struct InterimSender {
    pub(super) connection: Weak<ConnectionState>,
    pub(super) request: u64,
}

impl InterimSender {
    /// Sends an interim response, unless the final response has started.
    ///
    /// Only unencrypted HTTP/1.1 requests without a body receive interim responses. `hyper` serves
    /// all other requests and has no interface for interim responses. For these requests, the
    /// interim response is dropped, which RFC 9110 section 15.2 allows.
    pub fn send_interim(&self, status: StatusCode, headers: &HeaderMap) {
        if let Some(connection) = self.connection.upgrade()
            && connection
                .interim
                .push_interim(self.request, status, headers)
        {
            connection.wake();
        }
    }
}

/// The interim responses that wait to be written on a connection.
#[derive(Debug, Default)]
pub(crate) struct InterimQueue {
    /// Sequence number of the request that may receive interim responses, or 0 if no request may
    /// receive them.
    request: AtomicU64,
    has_bytes: AtomicBool,
    bytes: Mutex<(u64, Vec<u8>)>,
}

impl InterimQueue {
    /// Accepts interim responses for this request, until the next [`Self::close_queue`].
    pub(crate) fn accept_interims_for(&self, request: u64) {
        self.request.store(request, Relaxed);
    }

    pub(crate) fn close_queue(&self) {
        self.request.store(0, Relaxed);
    }

    /// Empties the queue. Returns the serialized interim responses to `request`, and drops
    /// responses to any other request.
    pub(crate) fn take_interims(&self, request: u64) -> Vec<u8> {
        if !self.has_bytes.swap(false, Relaxed) {
            return Vec::new();
        }
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *bytes) {
            (of, bytes) if of == request => bytes,
            _ => Vec::new(),
        }
    }

    /// Adds an interim response to the queue. Returns whether the response was added.
    fn push_interim(&self, request: u64, status: StatusCode, headers: &HeaderMap) -> bool {
        if request == 0 || self.request.load(Relaxed) != request || !status.is_informational() {
            return false;
        }
        let mut queue = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.0 != request {
            *queue = (request, Vec::new());
        }
        let (_, bytes) = &mut *queue;
        let before = bytes.len();
        let reason = status.canonical_reason().unwrap_or_default();
        for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        for (name, value) in headers {
            write_field(bytes, name.as_str(), value.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        let fits = bytes.len() <= QUEUE_BYTES_MAX;
        if !fits {
            bytes.truncate(before);
        }
        self.has_bytes.store(true, Relaxed);
        fits
    }
}
