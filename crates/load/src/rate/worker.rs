//! A thread of the generator, from its start to its end.

use super::Plan;
use super::profile::Profile;
use super::rest::{self, UnderWay};
use super::schedule::keep_schedule;
use super::slot::Running;
use super::tally::{Tally, Tick};
use super::target::Targets;
use super::thread::Thread;
use super::watch::watch;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;
use tokio::runtime::{Builder, LocalOptions};

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

/// This thread's part of a number.
pub(super) fn share(all: usize, threads: usize, number: usize) -> usize {
    all / threads + usize::from(number < all % threads)
}

/// Runs a thread to its end; what it sees goes to `out`.
pub(super) fn work(
    common: Arc<Common>,
    number: usize,
    out: &Sender<Box<Tick>>,
) -> Result<(), String> {
    let under_way = Arc::new(UnderWay::default());
    let mut builder = Builder::new_current_thread();
    if matches!(common.plan.profile, Profile::Max { .. }) {
        let under_way = under_way.clone();
        rest::on_time();
        builder.on_thread_park(move || under_way.rest());
    }
    let runtime = builder
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let thread = Rc::new(Thread::new(common.clone(), number, under_way));
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
