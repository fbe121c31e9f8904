//! The open loop's schedule: every request is handed out when it is due.

use super::arrivals::Arrivals;
use super::pacer::Timer;
use super::slot::Job;
use super::thread::Thread;
use super::worker::share;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Requests handed out in one go before others get a turn.
const BATCH: u32 = 64;

/// Hands out every request when it is due.
pub(super) async fn keep_schedule(thread: Rc<Thread>) -> std::io::Result<()> {
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
