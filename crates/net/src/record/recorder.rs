//! The thread that writes records, and the bounded queue before it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use super::{Access, Storage, Tcp};
use crate::metrics::{Counter, Metrics, Row};

/// The most records waiting to be written; more are dropped and counted. Some 30 MB.
const WAITING_MAX: usize = 65_536;
/// How long a record may wait before it is written, when few come.
const DELAY_MAX: Duration = Duration::from_millis(200);

const WRITTEN: Row = Row {
    name: "records_written",
    unit: "",
    help: "Records written to the file",
};
const DROPPED: Row = Row {
    name: "records_dropped",
    unit: "",
    help: "Records lost because the disk was too slow or full",
};

/// Where records go. Cheap to clone; the last clone to be dropped waits until all is written.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    _thread: Arc<Thread>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    written: Counter,
    dropped: Counter,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line {
    Access(Box<Access>),
    Storage(Box<Storage>),
    Tcp(Box<Tcp>),
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Line>,
    closed: bool,
}

impl Recorder {
    /// Appends to a file, which is made if it is not there.
    pub fn open(path: &Path, metrics: &Metrics) -> io::Result<Recorder> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Recorder::to(file, metrics)
    }

    fn to(file: File, metrics: &Metrics) -> io::Result<Recorder> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            written: metrics.counter(&WRITTEN),
            dropped: metrics.counter(&DROPPED),
        });
        let theirs = Arc::clone(&shared);
        let run = move || theirs.write_all(BufWriter::with_capacity(1 << 18, file));
        let handle = std::thread::Builder::new()
            .name("records".into())
            .spawn(run)?;
        let thread = Thread {
            shared: Arc::clone(&shared),
            handle: Some(handle),
        };
        Ok(Recorder {
            shared,
            _thread: Arc::new(thread),
        })
    }

    /// Hands over one record. Never waits for the disk.
    pub fn access(&self, record: Access) {
        self.line(Line::Access(Box::new(record)));
    }

    /// The same for a request of the storage.
    pub fn storage(&self, record: Storage) {
        self.line(Line::Storage(Box::new(record)));
    }

    /// The same for what TCP saw.
    pub fn tcp(&self, record: Tcp) {
        self.line(Line::Tcp(Box::new(record)));
    }

    fn line(&self, record: Line) {
        let mut queue = self.shared.lock();
        if queue.waiting.len() >= WAITING_MAX {
            drop(queue);
            self.shared.dropped.inc();
            return;
        }
        queue.waiting.push(record);
        // The writer looks by itself now and then: waking it for each record would cost more than
        // writing does.
        if queue.waiting.len() == WAITING_MAX / 4 {
            self.shared.wake.notify_one();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's whole life.
    fn write_all(&self, mut to: BufWriter<File>) {
        let mut batch = Vec::new();
        loop {
            let closed = self.next_batch(&mut batch);
            let count = batch.len() as u64;
            match write_batch(&mut to, &batch) {
                Ok(()) => self.written.inc_by(count),
                Err(error) => {
                    tracing::warn!(%error, count, "records could not be written");
                    self.dropped.inc_by(count)
                }
            };
            batch.clear();
            if closed {
                return;
            }
        }
    }

    /// Fills `batch`; true when it is the last one.
    fn next_batch(&self, batch: &mut Vec<Line>) -> bool {
        let idle = |queue: &mut Queue| !queue.closed && queue.waiting.len() < WAITING_MAX / 4;
        let waited = self.wake.wait_timeout_while(self.lock(), DELAY_MAX, idle);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.waiting, batch);
        queue.closed
    }
}

fn write_batch(to: &mut BufWriter<File>, batch: &[Line]) -> io::Result<()> {
    for record in batch {
        serde_json::to_writer(&mut *to, record)?;
        to.write_all(b"\n")?;
    }
    to.flush()
}

#[derive(Debug)]
struct Thread {
    shared: Arc<Shared>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
        if let Some(handle) = self.handle.take() {
            // The thread cannot panic on outside input; if it did, there is nothing left to do.
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn every_record_is_a_line_when_the_recorder_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let metrics = Metrics::new();
        let recorder = Recorder::open(&path, &metrics).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|connection| {
                let recorder = recorder.clone();
                std::thread::spawn(move || {
                    for request in 0..1000 {
                        recorder.access(Access {
                            connection,
                            request,
                            ..sample()
                        });
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        drop(recorder);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut seen: Vec<(u64, u64)> = text
            .lines()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                (
                    line["connection"].as_u64().unwrap(),
                    line["request"].as_u64().unwrap(),
                )
            })
            .collect();
        seen.sort_unstable();
        let all: Vec<_> = (0..4)
            .flat_map(|c| (0..1000).map(move |r| (c, r)))
            .collect();
        assert_eq!(seen, all);
        assert!(
            metrics
                .text()
                .unwrap()
                .contains("headwater_records_written_total 4000")
        );
    }

    #[test]
    fn a_full_disk_loses_records_and_says_so() {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            println!("skipped: no /dev/full here");
            return;
        };
        let metrics = Metrics::new();
        let recorder = Recorder::to(full, &metrics).unwrap();
        recorder.access(sample());
        drop(recorder);
        assert!(
            metrics
                .text()
                .unwrap()
                .contains("headwater_records_dropped_total 1")
        );
    }
}
