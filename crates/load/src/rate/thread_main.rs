//! The main function of a generator thread.

use super::monotonic_timer::MonotonicTimer;
use super::open_loop_schedule::follow_schedule;
use super::rate_profile::RateProfile;
use super::rate_thread::RateThread;
use super::shared_run::{SharedRun, share_of_thread};
use super::slot_runner::SlotRunner;
use super::thread_housekeeping::run_housekeeping;
use super::thread_stats::RateIntervalReport;
use super::wakeup_batching::{InFlightRequests, reduce_timer_slack};
use crate::generator_threads::{GeneratorError, StartBarrier};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Instant;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinError;

/// Runs a generator thread to its end, and sends the reports of the thread to `out`.
pub(super) fn run_thread(
    common: Arc<SharedRun>,
    number: usize,
    out: &Sender<Box<RateIntervalReport>>,
) -> Result<(), GeneratorError> {
    let mut barrier = StartBarrier::new(&common.ready, &common.stop);
    let in_flight = Arc::new(InFlightRequests::default());
    let mut builder = Builder::new_current_thread();
    if matches!(common.plan.profile, RateProfile::Max { .. }) {
        let in_flight = in_flight.clone();
        reduce_timer_slack();
        builder.on_thread_park(move || in_flight.sleep_to_batch_responses());
    }
    let runtime = builder
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(GeneratorError::StartRuntime)?;
    runtime.block_on(async {
        // The connections may use all descriptors. Therefore, the timer is created before them.
        let timer = MonotonicTimer::new().map_err(GeneratorError::UseTimer)?;
        let thread = Rc::new(RateThread::new(common.clone(), number, in_flight));
        let ahead = connect_ahead(&thread).await;
        // This call blocks the thread on purpose. Nothing else may run on this thread until all
        // threads are ready.
        barrier.wait_for_all();
        let start = *common.start.get_or_init(Instant::now);
        thread.start.set(start);
        thread.with_stats(|stats| stats.set_start(start));
        ahead.into_iter().for_each(|runner| {
            tokio::task::spawn_local(runner.send_until_run_ends());
        });
        let schedule = tokio::task::spawn_local(follow_schedule(thread.clone(), timer));
        run_housekeeping(&thread, out, &schedule).await;
        schedule.abort();
        let scheduled = schedule.await;
        let second = start.elapsed().as_secs() + 1;
        let mut report = thread.with_stats(|stats| stats.take_last_report(number, second));
        report.unsent += thread.queue.borrow().len() as u64;
        let _ = out.send(report);
        let result = result_of_schedule(scheduled);
        if result.is_err() {
            common.stop.store(true, Ordering::Relaxed);
        }
        result
    })
}

/// Returns the error of the schedule's task, if there is one. A task that was aborted has no error.
fn result_of_schedule(ended: Result<std::io::Result<()>, JoinError>) -> Result<(), GeneratorError> {
    match ended {
        Ok(result) => result.map_err(GeneratorError::UseTimer),
        Err(error) if error.is_panic() => Err(GeneratorError::ThreadPanicked),
        Err(_) => Ok(()),
    }
}

/// Creates the slots that exist from the start, and opens their connections.
async fn connect_ahead(thread: &Rc<RateThread>) -> Vec<SlotRunner> {
    let plan = &thread.common.plan;
    let connections = plan.connections.min(plan.connections_max);
    let mut count = share_of_thread(connections, plan.threads, thread.number);
    if thread.is_http2() {
        count *= plan.streams.max(1);
    }
    let mut tasks = Vec::new();
    for _ in 0..count {
        let (slot, id) = thread.add_slot();
        let mut runner = SlotRunner::new(thread.clone(), slot, id);
        tasks.push(tokio::task::spawn_local(async move {
            runner.connect_ahead().await;
            runner
        }));
    }
    let mut ahead = Vec::new();
    for task in tasks {
        ahead.extend(task.await);
    }
    ahead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_timer_fails_the_run() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let failed = std::io::Result::<()>::Err(std::io::ErrorKind::OutOfMemory.into());
            let result = result_of_schedule(Ok(failed));
            assert!(matches!(result, Err(GeneratorError::UseTimer(_))));
            let panicked = tokio::spawn(async { panic!("expected by the test") }).await;
            let result = result_of_schedule(panicked);
            assert!(matches!(result, Err(GeneratorError::ThreadPanicked)));
            let aborted = tokio::spawn(std::future::pending());
            aborted.abort();
            assert!(result_of_schedule(aborted.await).is_ok());
        });
    }
}
