//! The shared part of a slot: its next request, its deadline and its waker.

use super::scheduled_request::ScheduledRequest;
use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};
use std::time::Instant;

/// The part of a slot that the schedule and the supervisor use.
#[derive(Default)]
pub(super) struct RequestSlot {
    /// The next request.
    pub(super) next_request: Cell<Option<ScheduledRequest>>,
    waker: RefCell<Option<Waker>>,
    /// Time limit of the request in flight.
    pub(super) deadline: Cell<Option<Instant>>,
    /// The request in flight must end now.
    pub(super) is_expired: Cell<bool>,
}

impl RequestSlot {
    /// Assigns the next request to an idle slot.
    pub(super) fn assign_request(&self, request: ScheduledRequest) {
        self.next_request.set(Some(request));
        self.wake_runner();
    }

    fn wake_runner(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Ends the request in flight if its deadline has passed. If `now` is `None`, ends it in any
    /// case.
    pub(super) fn expire_request(&self, now: Option<Instant>) {
        let is_overdue = |limit: Instant| now.is_none_or(|now| now > limit);
        if self.deadline.get().is_some_and(is_overdue) {
            self.is_expired.set(true);
            self.wake_runner();
        }
    }

    /// Stores the waker of the task that runs this slot.
    pub(super) fn store_waker(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match waker.as_mut() {
            Some(known) => known.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
    }
}
