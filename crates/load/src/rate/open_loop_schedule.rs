//! The schedule of the open loop dispatches every request when it is due.

use super::arrival_times::ArrivalTimes;
use super::monotonic_timer::MonotonicTimer;
use super::rate_thread::RateThread;
use super::scheduled_request::ScheduledRequest;
use super::slot_runner::SlotRunner;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Number of requests that are dispatched in a row before the schedule yields to other tasks of its
/// thread.
const BATCH: u32 = 64;

/// Dispatches every request of a thread when it is due.
pub(super) async fn follow_schedule(
    thread: Rc<RateThread>,
    timer: MonotonicTimer,
) -> std::io::Result<()> {
    let plan = thread.common.plan.clone();
    let steps = plan.profile.measured_steps();
    let slots_max = thread.slots_max();
    let arrivals = ArrivalTimes::new(&plan.profile, plan.spacing, plan.seed);
    let mine = arrivals
        .enumerate()
        .skip(thread.number)
        .step_by(plan.threads);
    let mut step = 0;
    let mut batch = 0;
    for (n, due_s) in mine {
        let due = Duration::from_secs_f64(due_s);
        if thread.run_start() + due > Instant::now() {
            timer.wait_until(thread.run_start() + due).await?;
            batch = 0;
        }
        if thread.is_stopped() {
            break;
        }
        while step + 1 < steps.len() && due_s >= steps[step].end_s {
            step += 1;
        }
        let job = ScheduledRequest {
            n: n as u64,
            due_ns: due.as_nanos() as u64,
            step: step as u32,
            late: false,
        };
        dispatch_request(&thread, job, slots_max);
        batch += 1;
        if batch >= BATCH {
            tokio::task::yield_now().await;
            batch = 0;
        }
    }
    Ok(())
}

/// Passes a request to an idle slot. If no slot is idle, adds a slot. If there are already
/// `slots_max` slots, queues the request.
fn dispatch_request(thread: &Rc<RateThread>, request: ScheduledRequest, slots_max: usize) {
    thread.with_stats(|stats| stats.count_due(request.step));
    let Some(request) = thread.assign_to_idle_slot(request) else {
        return;
    };
    if thread.slots.borrow().len() >= slots_max {
        return thread.queue_request(request);
    }
    let (slot, id) = thread.add_slot();
    slot.assign_request(request);
    tokio::task::spawn_local(SlotRunner::new(thread.clone(), slot, id).send_until_run_ends());
}
