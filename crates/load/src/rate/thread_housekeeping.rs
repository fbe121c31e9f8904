//! Supervises a generator thread: enforces time limits, sends reports, and ends the run.

use super::rate_thread::RateThread;
use super::thread_stats::RateIntervalReport;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Interval at which the supervisor checks the time limits and the end of the run.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Expires overdue requests, sends a report every second, and ends the run.
pub(super) async fn run_housekeeping(
    thread: &Rc<RateThread>,
    out: &Sender<Box<RateIntervalReport>>,
    schedule: &tokio::task::JoinHandle<std::io::Result<()>>,
) {
    let mut reported = 0;
    let mut ending: Option<Instant> = None;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let now = Instant::now();
        thread
            .slots
            .borrow()
            .iter()
            .for_each(|slot| slot.expire_request(Some(now)));
        let passed = now.saturating_duration_since(thread.run_start()).as_secs();
        if passed > reported {
            reported = passed;
            let mut report = thread.with_stats(|stats| stats.take_report(thread.number, passed));
            report.open = thread.common.plan.dialer.connection_counts().open_count();
            if let Some(metrics) = &thread.stats.borrow().metrics {
                metrics.set_connections_gauge(report.open);
            }
            let _ = out.send(report);
        }
        let scheduled = match thread.closed_loop {
            Some(length) => now >= thread.run_start() + length || thread.is_stopped(),
            None => schedule.is_finished() || thread.is_stopped(),
        };
        if !scheduled {
            continue;
        }
        if thread.is_stopped() && !thread.closed.get() {
            let left = std::mem::take(&mut *thread.queue.borrow_mut());
            thread.with_stats(|stats| stats.report.unsent += left.len() as u64);
        }
        thread.closed.set(true);
        let grace = match thread.is_stopped() {
            true => Duration::from_secs(1),
            false => thread.common.plan.drain,
        };
        let until = ending.get_or_insert(now).checked_add(grace);
        if thread.in_flight.count() == 0 && thread.queue.borrow().is_empty() {
            return;
        }
        if until.is_some_and(|until| now >= until) {
            thread.over.set(true);
            thread
                .slots
                .borrow()
                .iter()
                .for_each(|slot| slot.expire_request(None));
            // Gives the slots time to record their last requests before the final report is sent.
            tokio::time::sleep(CHECK_INTERVAL).await;
            return;
        }
    }
}
