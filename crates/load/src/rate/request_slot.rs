//! The shared state of a slot: the next request, the deadline of the request in flight, and the
//! waker of the slot's task.

use super::scheduled_request::ScheduledRequest;
use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};
use std::time::Instant;

/// The state that the task of a slot shares with the schedule and the supervisor.
#[derive(Default)]
pub(super) struct RequestSlot {
    /// The next request.
    pub(super) next_request: Cell<Option<ScheduledRequest>>,
    waker: RefCell<Option<Waker>>,
    /// Time at which the request in flight times out.
    pub(super) deadline: Cell<Option<Instant>>,
    /// The task of the slot must end the request in flight immediately.
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

    /// Expires the request in flight if its deadline was before `now`. If `now` is `None`, expires
    /// the request in any case.
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
