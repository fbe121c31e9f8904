//! A thread's watch: time limits, reports, the end.

use super::tally::Tick;
use super::thread::Thread;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How often the thread looks for requests that take too long, and for the end.
const LOOK: Duration = Duration::from_millis(10);

/// Ends what takes too long, reports every second, and finds the end.
pub(super) async fn watch(
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
        if thread.under_way.count() == 0 && thread.queue.borrow().is_empty() {
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
