//! Facts about one storage request. The HTTP client under `object_store` records these facts,
//! because `object_store` does not return them.

use super::{TransportError, WatchedBody};
use http::HeaderValue;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use upstream::ServerAddress;

tokio::task_local! {
    /// The request of the current task.
    pub(crate) static CALL: std::sync::Arc<StorageRequestContext>;
}

/// A storage request, and the facts recorded about it.
pub(crate) struct StorageRequestContext {
    pub(crate) started: Instant,
    /// Whether a range is requested. A response with the whole object is then an error.
    ranged: bool,
    /// Whether only the response's head is read at first. The body is not read until the caller
    /// takes its bytes.
    head_only: bool,
    /// The `traceparent` field that identifies the request's span, if the request is traced.
    traceparent: Option<HeaderValue>,
    notes: Mutex<CallNotes>,
    /// The body of a response with a range. The body's bytes do not pass through `object_store`.
    body: Mutex<Option<WatchedBody>>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct CallNotes {
    /// Whether the last request was for a range of an object.
    pub(crate) ranged: bool,
    /// Whether the last request was for credentials, which are requested before the object.
    pub(crate) credentials: bool,
    /// The response's status, if there was a response.
    pub(crate) status: Option<u16>,
    /// The storage's error code, such as `AccessDenied`.
    pub(crate) code: Option<String>,
    /// The connection's number in the process, and whether the connection was reused.
    pub(crate) connection: Option<(u64, bool)>,
    /// The server that received the request, if the request is traced.
    pub(crate) server: Option<ServerAddress>,
    /// The time at which the response's head was received.
    pub(crate) head_received: Option<Instant>,
    /// The response's `Date`.
    pub(crate) date: Option<SystemTime>,
    pub(crate) error: Option<TransportError>,
}

impl StorageRequestContext {
    /// Creates a request for a range. If `piped` is set, the response's body will be spliced. In
    /// this case, the client at first reserves buffer space only for the response's head.
    pub(crate) fn new_range_call(piped: bool) -> StorageRequestContext {
        StorageRequestContext {
            ranged: true,
            head_only: piped,
            ..StorageRequestContext::new_metadata_call()
        }
    }

    /// Creates a request for metadata, such as a look-up or a listing.
    pub(crate) fn new_metadata_call() -> StorageRequestContext {
        StorageRequestContext {
            started: Instant::now(),
            ranged: false,
            head_only: false,
            traceparent: None,
            notes: Mutex::default(),
            body: Mutex::default(),
        }
    }

    /// Sends this `traceparent` with the request.
    pub(crate) fn set_traceparent(&mut self, traceparent: Option<HeaderValue>) {
        self.traceparent = traceparent;
    }

    /// Takes the response's body, if the response contains a range of an object.
    pub(crate) fn take_body(&self) -> Option<WatchedBody> {
        self.lock_body().take()
    }

    fn lock_body(&self) -> MutexGuard<'_, Option<WatchedBody>> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn edit_notes(&self, note: impl FnOnce(&mut CallNotes)) {
        note(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn notes(&self) -> CallNotes {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.clone()
    }
}

/// Records and returns whether the next request of this task is for a range. If the task needs a
/// range, it may request credentials first. A request for credentials has no `Range` field.
pub(super) fn record_request_kind(has_range: bool) -> bool {
    let begun = CALL.try_with(|call| {
        call.edit_notes(|notes| {
            notes.ranged = call.ranged && has_range;
            notes.credentials = call.ranged && !has_range;
        });
        call.ranged && has_range
    });
    begun.unwrap_or(false)
}

/// Returns the `traceparent` of the current request, if the request is traced.
pub(super) fn traceparent() -> Option<HeaderValue> {
    CALL.try_with(|call| call.traceparent.clone()).ok()?
}

/// Returns whether only the response's head is to be read at first.
pub(super) fn is_body_read_later() -> bool {
    CALL.try_with(|call| call.head_only).unwrap_or(false)
}

/// Attaches the body of a range to the current task's request. Returns the body if the task has no
/// request.
pub(super) fn attach_body(body: WatchedBody) -> Option<WatchedBody> {
    let mut body = Some(body);
    let _ = CALL.try_with(|call| *call.lock_body() = body.take());
    body
}

/// Records a fact about the current task's request, if the task has a request.
pub(super) fn edit_current_notes(note: impl FnOnce(&mut CallNotes)) {
    let _ = CALL.try_with(|call| call.edit_notes(note));
}
