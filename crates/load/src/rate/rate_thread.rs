//! The state of one generator thread: its targets, slots, connections and counts.

use super::rate_profile::RateProfile;
use super::request_slot::RequestSlot;
use super::request_target::TargetSet;
use super::scheduled_request::ScheduledRequest;
use super::shared_run::{SharedRun, share_of_thread};
use super::thread_stats::RateThreadStats;
use super::wakeup_batching::InFlightRequests;
use crate::client::{
    ClientConnection, ConnectionFreshness, FailureKind, HttpClient, HttpVersion, RequestFailure,
    http2_exchange,
};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Maximum number of requests that wait for a connection on one thread. Further requests are
/// counted as unsent.
const QUEUE_MAX: usize = 4_000_000;

/// The state of one generator thread.
pub(super) struct RateThread {
    pub(super) common: Arc<SharedRun>,
    pub(super) number: usize,
    pub(super) targets: Arc<TargetSet>,
    pub(super) timeout: Duration,
    pub(super) body_max: u64,
    pub(super) keep_alive: bool,
    pub(super) redirects_max: u32,
    pub(super) in_flight: Arc<InFlightRequests>,
    pub(super) start: Cell<Instant>,
    /// Requests that wait for a connection.
    pub(super) queue: RefCell<VecDeque<ScheduledRequest>>,
    /// Indexes of the idle slots. The slot that was used most recently is last.
    idle: RefCell<Vec<usize>>,
    pub(super) slots: RefCell<Vec<Rc<RequestSlot>>>,
    pub(super) stats: RefCell<RateThreadStats>,
    /// The schedule contains no further requests.
    pub(super) closed: Cell<bool>,
    /// The drain time is over, so requests in flight are abandoned.
    pub(super) over: Cell<bool>,
    /// Length of the run in a closed loop; none in an open loop.
    pub(super) closed_loop: Option<Duration>,
    next_number: Cell<u64>,
    client: OnceCell<HttpClient>,
    shared: Vec<Mutex<Option<http2_exchange::Http2Connection>>>,
}

impl RateThread {
    pub(super) fn new(
        common: Arc<SharedRun>,
        number: usize,
        in_flight: Arc<InFlightRequests>,
    ) -> RateThread {
        let plan = &common.plan;
        let settings = plan.dialer.settings();
        let closed_loop = match plan.profile {
            RateProfile::Max { duration_s } => Some(Duration::from_secs_f64(duration_s)),
            RateProfile::Given { .. } | RateProfile::Replay { .. } => None,
        };
        let now = Instant::now();
        let mut shared = Vec::new();
        if settings.version == HttpVersion::Http2 {
            let most = share_of_thread(plan.connections_max, plan.threads, number).max(1);
            shared.resize_with(most * common.targets.origins.len(), || Mutex::new(None));
        }
        RateThread {
            number,
            targets: common.targets.clone(),
            timeout: settings.timeout,
            body_max: settings.body_max,
            keep_alive: settings.keep_alive,
            redirects_max: settings.redirects_max,
            in_flight,
            start: Cell::new(now),
            queue: RefCell::default(),
            idle: RefCell::default(),
            slots: RefCell::default(),
            stats: RefCell::new(RateThreadStats::new(&common, now)),
            closed: Cell::new(false),
            over: Cell::new(false),
            closed_loop,
            next_number: Cell::new(0),
            client: OnceCell::new(),
            shared,
            common,
        }
    }

    pub(super) fn run_start(&self) -> Instant {
        self.start.get()
    }

    /// Returns the client that follows redirects.
    pub(super) fn redirect_client(&self) -> &HttpClient {
        self.client.get_or_init(|| {
            // Each slot may follow a redirect at the same time as the others.
            let slots_max = self.slots_max();
            HttpClient::with_connections_max(&self.common.plan.dialer, slots_max)
        })
    }

    /// Returns the maximum number of concurrent requests of this thread.
    pub(super) fn slots_max(&self) -> usize {
        let plan = &self.common.plan;
        let streams = match self.is_http2() {
            true => plan.streams.max(1),
            false => 1,
        };
        share_of_thread(plan.connections_max, plan.threads, self.number).max(1) * streams
    }

    /// Calls `update` with the statistics of this thread.
    pub(super) fn with_stats<T>(&self, update: impl FnOnce(&mut RateThreadStats) -> T) -> T {
        update(&mut self.stats.borrow_mut())
    }

    /// Counts a request as in flight.
    pub(super) fn count_request_start(&self) {
        self.in_flight.count_request_start();
        if let Some(metrics) = &self.stats.borrow().metrics {
            metrics.count_request_start();
        }
    }

    /// Counts a request as no longer in flight.
    pub(super) fn count_request_end(&self) {
        self.in_flight.count_request_end();
        if let Some(metrics) = &self.stats.borrow().metrics {
            metrics.count_request_end();
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    pub(super) fn is_http2(&self) -> bool {
        !self.shared.is_empty()
    }

    pub(super) fn is_closed_loop(&self) -> bool {
        self.closed_loop.is_some()
    }

    /// Waits briefly in a closed loop, so that the loop does not spin if the server is unreachable.
    /// Does not wait in an open loop.
    pub(super) async fn pause_after_failure(&self) {
        if self.closed_loop.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) async fn open_connection(
        &self,
        origin: usize,
    ) -> Result<ClientConnection, RequestFailure> {
        let begun = Instant::now();
        let link = self
            .common
            .plan
            .dialer
            .connect_to_host(&self.targets.origins[origin])
            .await?;
        self.with_stats(|stats| stats.record_connect(begun.elapsed()));
        Ok(link)
    }

    /// Returns the HTTP/2 connection that a slot shares with other slots. Opens the connection if
    /// necessary.
    pub(super) async fn shared_connection(
        &self,
        id: usize,
        origin: usize,
    ) -> Result<(http2_exchange::Http2Connection, ConnectionFreshness), RequestFailure> {
        let mut place = self.shared_connection_cell(id, origin).lock().await;
        if let Some(shared) = place.as_ref().filter(|_| self.keep_alive) {
            return Ok((shared.clone(), ConnectionFreshness::Reused));
        }
        match self.open_connection(origin).await? {
            ClientConnection::Http2(shared) => {
                Ok((place.insert(shared).clone(), ConnectionFreshness::New))
            }
            ClientConnection::Http1(..) => Err(FailureKind::Http2.into()),
        }
    }

    /// Removes a failed shared connection, so that the next request opens a new connection. Does
    /// nothing if the failed connection has already been replaced.
    pub(super) async fn remove_failed_connection(
        &self,
        id: usize,
        origin: usize,
        failed: &http2_exchange::Http2Connection,
    ) {
        let mut place = self.shared_connection_cell(id, origin).lock().await;
        if place
            .as_ref()
            .is_some_and(|shared| shared.is_same_connection(failed))
        {
            *place = None;
        }
    }

    fn shared_connection_cell(
        &self,
        id: usize,
        origin: usize,
    ) -> &Mutex<Option<http2_exchange::Http2Connection>> {
        let connection = id / self.common.plan.streams.max(1);
        let origins = self.targets.origins.len();
        &self.shared[(connection * origins + origin) % self.shared.len()]
    }

    /// Returns the next request of slot `id`, or none if there will be no further request. If the
    /// slot must wait for a request, calls `wait`.
    pub(super) fn poll_next_request(
        &self,
        id: usize,
        given: &Cell<Option<ScheduledRequest>>,
        wait: impl FnOnce(),
    ) -> Poll<Option<ScheduledRequest>> {
        let given = given.take();
        if self.over.get() {
            let lost = u64::from(given.is_some());
            self.with_stats(|stats| stats.report.unsent += lost);
            return Poll::Ready(None);
        }
        if given.is_some() {
            return Poll::Ready(given);
        }
        if let Some(length) = self.closed_loop {
            return Poll::Ready(self.next_of_closed_loop(length));
        }
        if let Some(job) = self.queue.borrow_mut().pop_front() {
            return Poll::Ready(Some(job));
        }
        if self.closed.get() {
            return Poll::Ready(None);
        }
        wait();
        let mut idle = self.idle.borrow_mut();
        if idle.last() != Some(&id) && !idle.contains(&id) {
            idle.push(id);
        }
        Poll::Pending
    }

    fn next_of_closed_loop(&self, length: Duration) -> Option<ScheduledRequest> {
        let passed = self.run_start().elapsed();
        if passed >= length || self.closed.get() {
            return None;
        }
        let next_number = self.next_number.replace(self.next_number.get() + 1);
        Some(ScheduledRequest {
            n: next_number * self.common.plan.threads as u64 + self.number as u64,
            due_ns: passed.as_nanos() as u64,
            step: 0,
            late: false,
        })
    }

    /// Assigns a request to an idle slot. If no slot is idle, returns the request.
    pub(super) fn assign_to_idle_slot(
        &self,
        request: ScheduledRequest,
    ) -> Option<ScheduledRequest> {
        let Some(id) = self.idle.borrow_mut().pop() else {
            return Some(request);
        };
        self.slots.borrow()[id].assign_request(request);
        None
    }

    /// Queues a request until a slot is free. If the queue is full, counts the request as unsent.
    pub(super) fn queue_request(&self, request: ScheduledRequest) {
        let mut queue = self.queue.borrow_mut();
        match queue.len() < QUEUE_MAX {
            true => queue.push_back(ScheduledRequest {
                late: true,
                ..request
            }),
            false => self.with_stats(|stats| stats.report.unsent += 1),
        }
    }

    /// Adds a slot. Returns the slot and its index.
    pub(super) fn add_slot(&self) -> (Rc<RequestSlot>, usize) {
        let slot = Rc::new(RequestSlot::default());
        let mut slots = self.slots.borrow_mut();
        slots.push(slot.clone());
        (slot, slots.len() - 1)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.common.stop.load(Ordering::Relaxed)
    }
}
