//! What becomes known of one request while it is under way, below `object_store`.

use super::Failed;
use super::body::Watched;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

tokio::task_local! {
    /// The request that the current task is making.
    pub(crate) static CALL: std::sync::Arc<Call>;
}

/// Notes on one request.
pub(crate) struct Call {
    pub(crate) began: Instant,
    /// Whether a part of an object is asked for, so that the whole would be a wrong answer.
    ranged: bool,
    /// Whether no more is to be read than the answer's head, until its bytes are asked for.
    head_only: bool,
    notes: Mutex<Notes>,
    /// The part of an object that was answered: its bytes do not go through `object_store`.
    body: Mutex<Option<Watched>>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Notes {
    /// Whether the last request was for a part of an object.
    pub(crate) ranged: bool,
    /// Whether it was for credentials, which come before the object's own.
    pub(crate) credentials: bool,
    /// The answer's status, if there was one.
    pub(crate) status: Option<u16>,
    /// The storage's own word for an error, such as `AccessDenied`.
    pub(crate) code: Option<String>,
    /// Number of the connection in the process, and whether it had been used before.
    pub(crate) connection: Option<(u64, bool)>,
    /// When the answer's head was there.
    pub(crate) answered: Option<Instant>,
    pub(crate) failed: Option<Failed>,
}

impl Call {
    /// A request for a part of an object; `piped`: its bytes are to be moved into a pipe, so that no
    /// more than the answer's head is read before they are asked for.
    pub(crate) fn part(piped: bool) -> Call {
        Call {
            ranged: true,
            head_only: piped,
            ..Call::other()
        }
    }

    /// A request for something else: what an object is, or which there are.
    pub(crate) fn other() -> Call {
        Call {
            began: Instant::now(),
            ranged: false,
            head_only: false,
            notes: Mutex::default(),
            body: Mutex::default(),
        }
    }

    /// The body of the answer, if that was a part of an object.
    pub(crate) fn take_body(&self) -> Option<Watched> {
        self.body().take()
    }

    fn body(&self) -> MutexGuard<'_, Option<Watched>> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn notes(&self) -> Notes {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.clone()
    }
}

/// Whether a part of an object is asked for by a request that goes out now; `has_range`: it says so.
/// One that does not is for credentials.
pub(super) fn begin(has_range: bool) -> bool {
    let begun = CALL.try_with(|call| {
        call.note(|notes| {
            notes.ranged = call.ranged && has_range;
            notes.credentials = call.ranged && !has_range;
        });
        call.ranged && has_range
    });
    begun.unwrap_or(false)
}

/// Whether only the head of an answer is to be read at first.
pub(super) fn head_only() -> bool {
    CALL.try_with(|call| call.head_only).unwrap_or(false)
}

/// Keeps the part of an object that was answered for whoever made the request; gives it back where
/// nobody did.
pub(super) fn hand_over(body: Watched) -> Option<Watched> {
    let mut body = Some(body);
    let _ = CALL.try_with(|call| *call.body() = body.take());
    body
}

/// Notes something about the request that the current task is making, if any.
pub(super) fn note(note: impl FnOnce(&mut Notes)) {
    let _ = CALL.try_with(|call| call.note(note));
}
