//! A generator thread with its runtime, its places and its counts.

use super::super::player_interface::Micros;
use super::super::viewer::{PlayerSnapshot, SessionEnd};
use super::thread_stats::{ViewerThreadReport, ViewerThreadStats};
use super::viewer_session::ViewerSession;
use super::{DocumentCache, ViewerRunPlan};
use crate::generator_threads::{GeneratorError, StartBarrier};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// Pause after a viewer whose playback failed. In each place, viewers play one after another, and
/// the next viewer starts after this pause. The pause prevents a continuous stream of requests to a
/// server that has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// State that all threads of a run share.
pub(super) struct SharedViewerRun {
    pub(super) plan: Arc<ViewerRunPlan>,
    pub(super) documents: DocumentCache,
    pub(super) start: OnceLock<Instant>,
    pub(super) ready: Barrier,
    pub(super) stop: AtomicBool,
    pub(super) keep_records: bool,
}

/// The state of one thread.
pub(super) struct PlayerThread {
    common: Arc<SharedViewerRun>,
    start: Instant,
    stats: RefCell<ViewerThreadStats>,
    over: Cell<bool>,
    wake: Notify,
}

impl PlayerThread {
    pub(super) fn viewer_run_plan(&self) -> &ViewerRunPlan {
        &self.common.plan
    }

    pub(super) fn documents(&self) -> &DocumentCache {
        &self.common.documents
    }

    /// Returns the microseconds since the run started.
    pub(super) fn now(&self) -> Micros {
        self.to_micros(Instant::now())
    }

    pub(super) fn to_micros(&self, moment: Instant) -> Micros {
        moment.saturating_duration_since(self.start).as_micros() as Micros
    }

    /// Converts microseconds since the run started to an instant. The result is at most the end of
    /// the run.
    pub(super) fn instant_at(&self, at: Micros) -> Instant {
        let at = Duration::from_micros(at).min(self.viewer_run_plan().duration);
        self.start + at
    }

    /// Returns the end of the run, in microseconds since its start.
    pub(super) fn run_end(&self) -> Micros {
        self.viewer_run_plan().duration.as_micros() as Micros
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get() || self.now() >= self.run_end()
    }

    /// Waits until the run ends or is stopped.
    pub(super) async fn wait_for_stop(&self) {
        let woken = self.wake.notified();
        if !self.over.get() {
            woken.await;
        }
    }

    /// Returns the number of the current step of the arrival profile.
    pub(super) fn current_step(&self) -> u32 {
        let now = self.now();
        let begun = self
            .viewer_run_plan()
            .arrivals
            .steps
            .partition_point(|(at, _)| *at <= now);
        begun.saturating_sub(1) as u32
    }

    pub(super) fn with_stats<T>(&self, note: impl FnOnce(&mut ViewerThreadStats) -> T) -> T {
        note(&mut self.stats.borrow_mut())
    }
}

/// Runs generator thread `number`. With n threads, the thread runs every nth place, starting with
/// place `number`.
pub(super) fn run_thread(
    common: &Arc<SharedViewerRun>,
    number: usize,
    out: &Sender<Box<ViewerThreadReport>>,
) -> Result<(), GeneratorError> {
    let mut barrier = StartBarrier::new(&common.ready, &common.stop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(GeneratorError::StartRuntime)?;
    barrier.wait_for_all();
    let start = *common.start.get_or_init(Instant::now);
    let thread = Rc::new(PlayerThread {
        common: common.clone(),
        start,
        stats: RefCell::new(ViewerThreadStats::new(
            start,
            common.keep_records,
            number,
            common.plan.threads,
        )),
        over: Cell::new(false),
        wake: Notify::new(),
    });
    let local = LocalSet::new();
    let mut snapshots = Vec::new();
    let starts = common.plan.arrivals.place_start_times().iter().enumerate();
    for (place, at) in starts.skip(number).step_by(common.plan.threads) {
        let snapshot: Rc<Cell<Option<PlayerSnapshot>>> = Rc::default();
        snapshots.push((place as u64, snapshot.clone()));
        local.spawn_local(run_successive_viewers(
            thread.clone(),
            place as u64,
            *at,
            snapshot,
        ));
    }
    let reported = local.block_on(
        &runtime,
        report_seconds(thread.clone(), snapshots, out.clone()),
    );
    // The tasks of the places finish by themselves at the end of the run. Wait at most one second
    // for these tasks.
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(1), local)
            .await
            .ok()
    });
    let _ = out.send(thread.with_stats(|stats| stats.take_report(reported + 1)));
    Ok(())
}

/// Plays one viewer after another in a place, until the run is over.
async fn run_successive_viewers(
    thread: Rc<PlayerThread>,
    place: u64,
    at: Micros,
    snapshot: Rc<Cell<Option<PlayerSnapshot>>>,
) {
    tokio::time::sleep_until(thread.instant_at(at).into()).await;
    let mut nth = 0;
    while !thread.is_over() {
        let session = ViewerSession {
            thread: thread.clone(),
            place,
            nth,
            snapshot: snapshot.clone(),
        };
        if session.play_session().await == SessionEnd::Failed {
            let end = thread.instant_at(Micros::MAX);
            let next = (Instant::now() + AFTER_FAILURE).min(end);
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = thread.wait_for_stop() => {}
            }
        }
        nth += 1;
    }
}

/// Sends a report every second, and wakes all waiting tasks at the end of the run. Returns the
/// number of reported seconds.
async fn report_seconds(
    thread: Rc<PlayerThread>,
    snapshots: Vec<(u64, Rc<Cell<Option<PlayerSnapshot>>>)>,
    out: Sender<Box<ViewerThreadReport>>,
) -> u64 {
    let end = thread.instant_at(Micros::MAX);
    let mut reported = 0;
    while Instant::now() < end && !thread.common.stop.load(Ordering::Relaxed) {
        let next = thread.instant_at((reported + 1) * 1_000_000);
        // Check the stop flag at least every 50 ms.
        let look = (Instant::now() + Duration::from_millis(50))
            .min(next)
            .min(end);
        tokio::time::sleep_until(look.into()).await;
        if Instant::now() >= next && next < end {
            for (place, snapshot) in &snapshots {
                if let Some(snapshot) = snapshot.get() {
                    thread.with_stats(|stats| {
                        stats.add_player_snapshot(
                            *place,
                            advance_player_snapshot(snapshot, thread.now()),
                        )
                    });
                }
            }
            reported += 1;
            let _ = out.send(thread.with_stats(|stats| stats.take_report(reported)));
        }
    }
    thread.over.set(true);
    thread.wake.notify_waiters();
    reported
}

/// Returns a snapshot that is updated to the current time.
fn advance_player_snapshot(snapshot: PlayerSnapshot, now: Micros) -> PlayerSnapshot {
    let passed = if snapshot.playing {
        now.saturating_sub(snapshot.at)
    } else {
        0
    };
    PlayerSnapshot {
        at: now,
        buffer: snapshot.buffer.saturating_sub(passed),
        ..snapshot
    }
}
