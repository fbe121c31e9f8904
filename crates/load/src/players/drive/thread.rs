//! A thread of the generator: its own runtime, its places, its counts.

use super::super::player::Micros;
use super::super::viewer::{End, Glance};
use super::session::Session;
use super::tally::{Tally, Tick};
use super::{Catalog, Plan};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// How long a place stays empty after a viewer who could not play: nobody knocks without pause.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What all threads share.
pub(super) struct Common {
    pub(super) plan: Arc<Plan>,
    pub(super) catalog: Catalog,
    pub(super) start: OnceLock<Instant>,
    pub(super) ready: Barrier,
    pub(super) stop: AtomicBool,
    pub(super) keep_records: bool,
}

/// One thread's things.
pub(super) struct Thread {
    common: Arc<Common>,
    start: Instant,
    tally: RefCell<Tally>,
    over: Cell<bool>,
    wake: Notify,
}

impl Thread {
    pub(super) fn plan(&self) -> &Plan {
        &self.common.plan
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.common.catalog
    }

    /// Microseconds of the run.
    pub(super) fn now(&self) -> Micros {
        self.micros(Instant::now())
    }

    pub(super) fn micros(&self, moment: Instant) -> Micros {
        moment.saturating_duration_since(self.start).as_micros() as Micros
    }

    /// When so many microseconds of the run have passed; the run's end at the latest.
    pub(super) fn moment(&self, at: Micros) -> Instant {
        let at = Duration::from_micros(at).min(self.plan().duration);
        self.start + at
    }

    /// The run's end.
    pub(super) fn end(&self) -> Micros {
        self.plan().duration.as_micros() as Micros
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get() || self.now() >= self.end()
    }

    /// Until the run is stopped.
    pub(super) async fn over(&self) {
        let woken = self.wake.notified();
        if !self.over.get() {
            woken.await;
        }
    }

    /// The step of the profile that goes on now.
    pub(super) fn step(&self) -> u32 {
        let now = self.now();
        let begun = self
            .plan()
            .arrivals
            .steps
            .partition_point(|(at, _)| *at <= now);
        begun.saturating_sub(1) as u32
    }

    pub(super) fn tally<T>(&self, note: impl FnOnce(&mut Tally) -> T) -> T {
        note(&mut self.tally.borrow_mut())
    }
}

/// Runs a thread: every place whose number leaves `number`.
pub(super) fn work(
    common: &Arc<Common>,
    number: usize,
    out: &Sender<Box<Tick>>,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    common.ready.wait();
    let start = *common.start.get_or_init(Instant::now);
    let thread = Rc::new(Thread {
        common: common.clone(),
        start,
        tally: RefCell::new(Tally::new(start, common.keep_records)),
        over: Cell::new(false),
        wake: Notify::new(),
    });
    let local = LocalSet::new();
    let mut glances = Vec::new();
    let starts = common.plan.arrivals.starts().iter().enumerate();
    for (place, at) in starts.skip(number).step_by(common.plan.threads) {
        let glance: Rc<Cell<Option<Glance>>> = Rc::default();
        glances.push((place as u64, glance.clone()));
        local.spawn_local(sit(thread.clone(), place as u64, *at, glance));
    }
    local.block_on(&runtime, watch(thread.clone(), glances, out.clone()));
    // Places end by themselves at the run's end; wait for none longer than for a last look.
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(1), local)
            .await
            .ok()
    });
    let second = thread.now() / 1_000_000 + 1;
    let _ = out.send(thread.tally(|tally| tally.flush(second)));
    Ok(())
}

/// A place: one viewer after another, until the run is over.
async fn sit(thread: Rc<Thread>, place: u64, at: Micros, glance: Rc<Cell<Option<Glance>>>) {
    tokio::time::sleep_until(thread.moment(at).into()).await;
    let mut nth = 0;
    while !thread.is_over() {
        let session = Session {
            thread: thread.clone(),
            place,
            nth,
            glance: glance.clone(),
        };
        if session.play().await == End::Failed {
            let end = thread.moment(Micros::MAX);
            let next = (Instant::now() + AFTER_FAILURE).min(end);
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = thread.over() => {}
            }
        }
        nth += 1;
    }
}

/// Reports every second, and says when it is over.
async fn watch(
    thread: Rc<Thread>,
    glances: Vec<(u64, Rc<Cell<Option<Glance>>>)>,
    out: Sender<Box<Tick>>,
) {
    let end = thread.moment(Micros::MAX);
    let mut reported = 0;
    while Instant::now() < end && !thread.common.stop.load(Ordering::Relaxed) {
        let next = thread.moment((reported + 1) * 1_000_000);
        // Stopping is noticed within a twentieth of a second.
        let look = (Instant::now() + Duration::from_millis(50))
            .min(next)
            .min(end);
        tokio::time::sleep_until(look.into()).await;
        if Instant::now() >= next && next < end {
            for (place, glance) in &glances {
                if let Some(glance) = glance.get() {
                    thread.tally(|tally| tally.glance(*place, aged(glance, thread.now())));
                }
            }
            reported += 1;
            let _ = out.send(thread.tally(|tally| tally.flush(reported)));
        }
    }
    thread.over.set(true);
    thread.wake.notify_waiters();
}

/// What a player that was looked at a while ago holds now.
fn aged(glance: Glance, now: Micros) -> Glance {
    let passed = if glance.playing {
        now.saturating_sub(glance.at)
    } else {
        0
    };
    Glance {
        at: now,
        buffer: glance.buffer.saturating_sub(passed),
        ..glance
    }
}
