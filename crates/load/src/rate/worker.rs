//! A thread of the generator: its own runtime, schedule, connections and counts.

use super::Plan;
use super::arrivals::Arrivals;
use super::pacer::Timer;
use super::profile::Profile;
use super::slot::{Job, Running, Slot};
use super::tally::{Tally, Tick};
use super::target::Targets;
use crate::client::{Client, Failure, Fault, Link, Version, h2};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Mutex;

/// Most requests that wait for a connection on one thread; more are counted as unsent.
const QUEUE_MAX: usize = 4_000_000;

/// How often the thread looks for requests that take too long, and for the end.
const LOOK: Duration = Duration::from_millis(10);

/// Requests handed out in one go before others get a turn.
const BATCH: u32 = 64;

/// What all threads share.
pub(super) struct Common {
    pub(super) plan: Arc<Plan>,
    pub(super) targets: Arc<Targets>,
    /// When the run began; set when all threads are ready.
    pub(super) start: OnceLock<Instant>,
    pub(super) ready: Barrier,
    /// A person wants it to end.
    pub(super) stop: AtomicBool,
    pub(super) keep_records: bool,
}

/// One thread's things.
pub(super) struct Thread {
    common: Arc<Common>,
    number: usize,
    pub(super) targets: Arc<Targets>,
    pub(super) timeout: Duration,
    pub(super) body_max: u64,
    pub(super) keep_alive: bool,
    pub(super) redirects_max: u32,
    /// Requests under way.
    pub(super) active: Cell<usize>,
    start: Cell<Instant>,
    /// Requests that wait for a connection.
    queue: RefCell<VecDeque<Job>>,
    /// Slots that wait for a request, the last used on top.
    idle: RefCell<Vec<usize>>,
    slots: RefCell<Vec<Rc<Slot>>>,
    tally: RefCell<Tally>,
    /// No more requests will come.
    closed: Cell<bool>,
    /// Requests still under way are given up.
    over: Cell<bool>,
    /// Requests of a closed loop so far, and when it ends.
    closed_loop: Option<Duration>,
    asked: Cell<u64>,
    client: OnceCell<Client>,
    shared: Vec<Mutex<Option<h2::Shared>>>,
}

impl Thread {
    fn new(common: Arc<Common>, number: usize) -> Thread {
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
            active: Cell::new(0),
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
    fn dispatch(self: &Rc<Thread>, job: Job, most: usize) {
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

    fn slot(self: &Rc<Thread>) -> (Rc<Slot>, Running) {
        let slot = Rc::new(Slot::default());
        let mut slots = self.slots.borrow_mut();
        slots.push(slot.clone());
        (
            slot.clone(),
            Running::new(self.clone(), slot, slots.len() - 1),
        )
    }

    fn stopped(&self) -> bool {
        self.common.stop.load(Ordering::Relaxed)
    }
}

/// This thread's part of a number.
fn share(all: usize, threads: usize, number: usize) -> usize {
    all / threads + usize::from(number < all % threads)
}

/// Runs a thread to its end; what it sees goes to `out`.
pub(super) fn work(
    common: Arc<Common>,
    number: usize,
    out: &Sender<Box<Tick>>,
) -> Result<(), String> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let thread = Rc::new(Thread::new(common.clone(), number));
        let ahead = connect_ahead(&thread).await;
        // Both block: nothing else shall run on this thread until all are ready.
        common.ready.wait();
        let start = *common.start.get_or_init(Instant::now);
        thread.start.set(start);
        *thread.tally.borrow_mut() = {
            let mut tally = Tally::new(start, common.keep_records);
            std::mem::swap(&mut tally.tick, &mut thread.tally.borrow_mut().tick);
            tally
        };
        ahead.into_iter().for_each(|running| {
            tokio::task::spawn_local(running.run());
        });
        let schedule = tokio::task::spawn_local(keep_schedule(thread.clone()));
        watch(&thread, out, &schedule).await;
        schedule.abort();
        let second = start.elapsed().as_secs() + 1;
        let mut tick = thread.tally(|tally| tally.flush(number, second));
        tick.unsent += thread.queue.borrow().len() as u64;
        tick.last = true;
        let _ = out.send(tick);
        Ok(())
    })
}

/// The slots that exist from the start, connected.
async fn connect_ahead(thread: &Rc<Thread>) -> Vec<Running> {
    let plan = &thread.common.plan;
    let connections = plan.connections.min(plan.connections_max);
    let mut count = share(connections, plan.threads, thread.number);
    if thread.is_http2() {
        count *= plan.streams.max(1);
    }
    let mut tasks = Vec::new();
    for _ in 0..count {
        let (_, mut running) = thread.slot();
        tasks.push(tokio::task::spawn_local(async move {
            running.connect_ahead().await;
            running
        }));
    }
    let mut ahead = Vec::new();
    for task in tasks {
        ahead.extend(task.await);
    }
    ahead
}

/// Hands out every request when it is due.
async fn keep_schedule(thread: Rc<Thread>) -> std::io::Result<()> {
    let plan = thread.common.plan.clone();
    let timer = Timer::new()?;
    let steps = plan.profile.steps();
    let streams = if thread.is_http2() {
        plan.streams.max(1)
    } else {
        1
    };
    let most = share(plan.connections_max, plan.threads, thread.number).max(1) * streams;
    let arrivals = Arrivals::new(&plan.profile, plan.spacing, plan.seed);
    let mine = arrivals
        .enumerate()
        .skip(thread.number)
        .step_by(plan.threads);
    let mut step = 0;
    let mut batch = 0;
    for (n, due_s) in mine {
        let due = Duration::from_secs_f64(due_s);
        if thread.start() + due > Instant::now() {
            timer.until(thread.start() + due).await?;
            batch = 0;
        }
        if thread.stopped() {
            break;
        }
        while step + 1 < steps.len() && due_s >= steps[step].end_s {
            step += 1;
        }
        let job = Job {
            n: n as u64,
            due_ns: due.as_nanos() as u64,
            step: step as u32,
            late: false,
        };
        thread.dispatch(job, most);
        batch += 1;
        if batch >= BATCH {
            tokio::task::yield_now().await;
            batch = 0;
        }
    }
    Ok(())
}

/// Ends what takes too long, reports every second, and finds the end.
async fn watch(
    thread: &Rc<Thread>,
    out: &Sender<Box<Tick>>,
    schedule: &tokio::task::JoinHandle<std::io::Result<()>>,
) {
    let mut reported = 0;
    let mut ending: Option<Instant> = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = Instant::now();
        thread
            .slots
            .borrow()
            .iter()
            .for_each(|slot| slot.expire(Some(now)));
        let passed = now.saturating_duration_since(thread.start()).as_secs();
        if passed > reported {
            reported = passed;
            let mut tick = thread.tally(|tally| tally.flush(thread.number, passed));
            tick.open = thread.common.plan.dialer.connections().open();
            let _ = out.send(tick);
        }
        let scheduled = match thread.closed_loop {
            Some(length) => now >= thread.start() + length || thread.stopped(),
            None => schedule.is_finished() || thread.stopped(),
        };
        if !scheduled {
            continue;
        }
        if thread.stopped() && !thread.closed.get() {
            let left = std::mem::take(&mut *thread.queue.borrow_mut());
            thread.tally(|tally| tally.tick.unsent += left.len() as u64);
        }
        thread.closed.set(true);
        let grace = match thread.stopped() {
            true => Duration::from_secs(1),
            false => thread.common.plan.drain,
        };
        let until = ending.get_or_insert(now).checked_add(grace);
        if thread.active.get() == 0 && thread.queue.borrow().is_empty() {
            return;
        }
        if until.is_some_and(|until| now >= until) {
            thread.over.set(true);
            thread
                .slots
                .borrow()
                .iter()
                .for_each(|slot| slot.expire(None));
            // The slots say goodbye before the last report.
            tokio::time::sleep(LOOK).await;
            return;
        }
    }
}
