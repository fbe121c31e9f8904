//! What one thread of the generator has: its targets, slots, connections and counts.

use super::profile::Profile;
use super::rest::UnderWay;
use super::slot::{Job, Running, Slot};
use super::tally::Tally;
use super::target::Targets;
use super::worker::{Common, share};
use crate::client::{Client, Failure, Fault, Link, Version, h2};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Most requests that wait for a connection on one thread; more are counted as unsent.
const QUEUE_MAX: usize = 4_000_000;

/// One thread's things.
pub(super) struct Thread {
    pub(super) common: Arc<Common>,
    pub(super) number: usize,
    pub(super) targets: Arc<Targets>,
    pub(super) timeout: Duration,
    pub(super) body_max: u64,
    pub(super) keep_alive: bool,
    pub(super) redirects_max: u32,
    pub(super) under_way: Arc<UnderWay>,
    pub(super) start: Cell<Instant>,
    /// Requests that wait for a connection.
    pub(super) queue: RefCell<VecDeque<Job>>,
    /// Slots that wait for a request, the last used on top.
    idle: RefCell<Vec<usize>>,
    pub(super) slots: RefCell<Vec<Rc<Slot>>>,
    pub(super) tally: RefCell<Tally>,
    /// No more requests will come.
    pub(super) closed: Cell<bool>,
    /// Requests still under way are given up.
    pub(super) over: Cell<bool>,
    /// Requests of a closed loop so far, and when it ends.
    pub(super) closed_loop: Option<Duration>,
    asked: Cell<u64>,
    client: OnceCell<Client>,
    shared: Vec<Mutex<Option<h2::Shared>>>,
}

impl Thread {
    pub(super) fn new(common: Arc<Common>, number: usize, under_way: Arc<UnderWay>) -> Thread {
        let plan = &common.plan;
        let settings = plan.dialer.settings();
        let closed_loop = match plan.profile {
            Profile::Max { duration_s } => Some(Duration::from_secs_f64(duration_s)),
            Profile::Given { .. } => None,
        };
        let now = Instant::now();
        let mut shared = Vec::new();
        if settings.version == Version::Http2 {
            let most = share(plan.connections_max, plan.threads, number).max(1);
            shared.resize_with(most * common.targets.origins.len(), || Mutex::new(None));
        }
        Thread {
            number,
            targets: common.targets.clone(),
            timeout: settings.timeout,
            body_max: settings.body_max,
            keep_alive: settings.keep_alive,
            redirects_max: settings.redirects_max,
            under_way,
            start: Cell::new(now),
            queue: RefCell::default(),
            idle: RefCell::default(),
            slots: RefCell::default(),
            tally: RefCell::new(Tally::new(now, common.keep_records)),
            closed: Cell::new(false),
            over: Cell::new(false),
            closed_loop,
            asked: Cell::new(0),
            client: OnceCell::new(),
            shared,
            common,
        }
    }

    pub(super) fn start(&self) -> Instant {
        self.start.get()
    }

    /// The client that follows redirects.
    pub(super) fn client(&self) -> &Client {
        self.client
            .get_or_init(|| Client::new(&self.common.plan.dialer))
    }

    pub(super) fn tally<T>(&self, note: impl FnOnce(&mut Tally) -> T) -> T {
        note(&mut self.tally.borrow_mut())
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

    /// In a closed loop: not to spin where nothing answers.
    pub(super) async fn pause_after_failure(&self) {
        if self.closed_loop.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) async fn dial(&self, origin: usize) -> Result<Link, Failure> {
        let begun = Instant::now();
        let link = self
            .common
            .plan
            .dialer
            .connect(&self.targets.origins[origin])
            .await?;
        self.tally(|tally| tally.connected(begun.elapsed()));
        Ok(link)
    }

    /// The HTTP/2 connection that a slot has a share of.
    pub(super) async fn shared(&self, id: usize, origin: usize) -> Result<h2::Shared, Failure> {
        let mut place = self.place(id, origin).lock().await;
        if let Some(shared) = place.as_ref().filter(|_| self.keep_alive) {
            return Ok(shared.clone());
        }
        match self.dial(origin).await? {
            Link::Http2(shared) => Ok(place.insert(shared).clone()),
            Link::Http1(..) => Err(Fault::Http2.into()),
        }
    }

    pub(super) async fn forget_shared(&self, id: usize, origin: usize) {
        *self.place(id, origin).lock().await = None;
    }

    fn place(&self, id: usize, origin: usize) -> &Mutex<Option<h2::Shared>> {
        let connection = id / self.common.plan.streams.max(1);
        let origins = self.targets.origins.len();
        &self.shared[(connection * origins + origin) % self.shared.len()]
    }

    /// What a slot does next; None: nothing more, ever.
    pub(super) fn next_job(
        &self,
        id: usize,
        given: &Cell<Option<Job>>,
        wait: impl FnOnce(),
    ) -> Poll<Option<Job>> {
        let given = given.take();
        if self.over.get() {
            let lost = u64::from(given.is_some());
            self.tally(|tally| tally.tick.unsent += lost);
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

    fn next_of_closed_loop(&self, length: Duration) -> Option<Job> {
        let passed = self.start().elapsed();
        if passed >= length || self.closed.get() {
            return None;
        }
        let asked = self.asked.replace(self.asked.get() + 1);
        Some(Job {
            n: asked * self.common.plan.threads as u64 + self.number as u64,
            due_ns: passed.as_nanos() as u64,
            step: 0,
            late: false,
        })
    }

    /// Gives a request to an idle slot, to a new one, or to the queue.
    pub(super) fn dispatch(self: &Rc<Thread>, job: Job, most: usize) {
        self.tally(|tally| tally.became_due(job.step));
        let idle = self.idle.borrow_mut().pop();
        if let Some(id) = idle {
            return self.slots.borrow()[id].give(job);
        }
        if self.slots.borrow().len() < most {
            let (slot, running) = self.slot();
            slot.give(job);
            tokio::task::spawn_local(running.run());
            return;
        }
        let mut queue = self.queue.borrow_mut();
        match queue.len() < QUEUE_MAX {
            true => queue.push_back(Job { late: true, ..job }),
            false => self.tally(|tally| tally.tick.unsent += 1),
        }
    }

    pub(super) fn slot(self: &Rc<Thread>) -> (Rc<Slot>, Running) {
        let slot = Rc::new(Slot::default());
        let mut slots = self.slots.borrow_mut();
        slots.push(slot.clone());
        (
            slot.clone(),
            Running::new(self.clone(), slot, slots.len() - 1),
        )
    }

    pub(super) fn stopped(&self) -> bool {
        self.common.stop.load(Ordering::Relaxed)
    }
}
