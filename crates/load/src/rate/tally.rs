//! What a thread has seen since it last told the collector.

use super::Kind;
use super::slot::{Done, Job};
use crate::client::{Failure, Fault};
use crate::result::{Cell, Record, Times};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A thread's report of about a second.
#[derive(Default)]
pub(crate) struct Tick {
    /// Which thread's.
    pub(crate) thread: usize,
    /// Seconds of the run that have passed.
    pub(crate) second: u64,
    /// Counts by step and kind.
    pub(crate) cells: BTreeMap<(u32, Kind), Box<Cell>>,
    /// Requests that became due, by step.
    pub(crate) due: BTreeMap<u32, u64>,
    pub(crate) unsent: u64,
    pub(crate) abandoned: u64,
    pub(crate) lag: Times,
    pub(crate) connect: Times,
    pub(crate) examples: BTreeMap<Fault, String>,
    pub(crate) records: Vec<Record>,
    /// Connections open on all threads.
    pub(crate) open: u64,
    /// The thread's last.
    pub(crate) last: bool,
}

/// Counts as they come.
pub(super) struct Tally {
    pub(super) tick: Box<Tick>,
    start: Instant,
    keep_records: bool,
}

impl Tally {
    pub(super) fn new(start: Instant, keep_records: bool) -> Tally {
        Tally {
            tick: Box::default(),
            start,
            keep_records,
        }
    }

    /// Takes what there is and starts anew.
    pub(super) fn flush(&mut self, thread: usize, second: u64) -> Box<Tick> {
        let mut tick = std::mem::take(&mut self.tick);
        tick.thread = thread;
        tick.second = second;
        tick
    }

    pub(super) fn became_due(&mut self, step: u32) {
        *self.tick.due.entry(step).or_default() += 1;
    }

    pub(super) fn started(&mut self, late: Duration) {
        self.tick.lag.record(late);
    }

    pub(super) fn connected(&mut self, took: Duration) {
        self.tick.connect.record(took);
    }

    /// A request that ended.
    pub(super) fn ended(&mut self, job: &Job, kind: Kind, done: &Done, failure: Option<&Failure>) {
        let due = self.start + Duration::from_nanos(job.due_ns);
        let cell = self.tick.cells.entry((job.step, kind)).or_default();
        cell.requests += 1;
        cell.bytes += done.bytes;
        cell.late += u64::from(job.late);
        cell.from_due
            .record(done.end.saturating_duration_since(due));
        if let Some(sent) = done.sent {
            cell.from_sent
                .record(done.end.saturating_duration_since(sent));
            if let Some(first) = done.first {
                cell.first_byte
                    .record(first.saturating_duration_since(sent));
            }
        }
        match failure {
            Some(failure) => {
                *cell.faults.entry(failure.fault).or_default() += 1;
                let examples = &mut self.tick.examples;
                examples
                    .entry(failure.fault)
                    .or_insert_with(|| failure.to_string());
            }
            None => *cell.statuses.entry(done.status).or_default() += 1,
        }
        if self.keep_records {
            self.tick
                .records
                .push(self.record(job, kind, done, failure));
        }
    }

    fn record(&self, job: &Job, kind: Kind, done: &Done, failure: Option<&Failure>) -> Record {
        let ms = |moment: Instant| moment.saturating_duration_since(self.start).as_secs_f64() * 1e3;
        Record {
            n: job.n,
            due_ms: job.due_ns as f64 / 1e6,
            sent_ms: done.sent.map(ms),
            first_ms: done.first.map(ms),
            end_ms: ms(done.end),
            step: job.step,
            kind,
            status: done.status,
            bytes: done.bytes,
            fault: failure.map(|failure| failure.fault),
            late: job.late,
        }
    }
}
