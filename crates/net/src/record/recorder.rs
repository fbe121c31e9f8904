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
/// Written at a time, about.
const BUFFER_BYTES: usize = 256 << 10;
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

const REOPENED: Row = Row {
    name: "records_reopened",
    unit: "",
    help: "Times that the file of records was opened anew",
};

/// Where records go. Cheap to clone; [`Recorder::close`], or else the last clone to be dropped, waits
/// until all is written.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Arc<Thread>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    written: Counter,
    dropped: Counter,
    reopened: Counter,
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
    /// What waits goes to the old file, what comes then to the one of this name by then.
    reopen: bool,
}

impl Recorder {
    /// Appends to a file, which is made if it is not there.
    pub fn open(path: &Path, metrics: &Metrics) -> io::Result<Recorder> {
        Recorder::to(append(path)?, path, metrics)
    }

    fn to(file: File, path: &Path, metrics: &Metrics) -> io::Result<Recorder> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            written: metrics.counter(&WRITTEN),
            dropped: metrics.counter(&DROPPED),
            reopened: metrics.counter(&REOPENED),
        });
        let (theirs, path) = (Arc::clone(&shared), path.to_owned());
        let run = move || theirs.write_all(BufWriter::with_capacity(BUFFER_BYTES, file), &path);
        let handle = std::thread::Builder::new()
            .name("records".into())
            .spawn(run)?;
        let thread = Thread {
            shared: Arc::clone(&shared),
            handle: Mutex::new(Some(handle)),
        };
        Ok(Recorder {
            shared,
            thread: Arc::new(thread),
        })
    }

    /// Waits until all that came is written. What comes then is dropped, and counted as that. Whoever
    /// ends a program calls it: the last clone may be with a thread that nobody waits for.
    pub fn close(&self) {
        self.thread.close();
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

    /// Opens the file anew under its name, soon: it was moved away, and another is to begin. All
    /// records go to the one or the other.
    pub fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.wake.notify_one();
    }

    fn line(&self, record: Line) {
        let mut queue = self.shared.lock();
        if queue.closed || queue.waiting.len() >= WAITING_MAX {
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
    fn write_all(&self, mut to: BufWriter<File>, path: &Path) {
        let mut batch = Vec::new();
        loop {
            let (closed, reopen) = self.next_batch(&mut batch);
            let count = batch.len() as u64;
            match write_batch(&mut to, &batch) {
                Ok(()) => self.written.inc_by(count),
                Err(error) => {
                    tracing::warn!(%error, count, "records could not be written");
                    self.dropped.inc_by(count)
                }
            };
            batch.clear();
            if reopen {
                match append(path) {
                    Ok(file) => {
                        to = BufWriter::with_capacity(BUFFER_BYTES, file);
                        self.reopened.inc();
                    }
                    Err(error) => {
                        tracing::warn!(%error, path = %path.display(), "records go to the old file")
                    }
                }
            }
            if closed {
                return;
            }
        }
    }

    /// Fills `batch`; whether it is the last one, and the last one for this file.
    fn next_batch(&self, batch: &mut Vec<Line>) -> (bool, bool) {
        let idle = |queue: &mut Queue| {
            !queue.closed && !queue.reopen && queue.waiting.len() < WAITING_MAX / 4
        };
        let waited = self.wake.wait_timeout_while(self.lock(), DELAY_MAX, idle);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.waiting, batch);
        (queue.closed, std::mem::take(&mut queue.reopen))
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
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
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl Thread {
    fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handle.take() {
            // The thread cannot panic on outside input; if it did, there is nothing left to do.
            let _ = handle.join();
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn all_is_written_once_it_is_closed_whoever_still_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let recorder = Recorder::open(&path, &Metrics::new()).unwrap();
        let other = recorder.clone();
        other.access(sample());
        recorder.close();
        other.access(sample());
        let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines(), 1);
        assert_eq!(other.shared.dropped.get(), 1);
        drop((recorder, other));
        assert_eq!(lines(), 1);
    }

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
    fn a_file_that_is_moved_away_is_followed_by_another_and_no_record_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let metrics = Metrics::new();
        let recorder = Recorder::open(&path, &metrics).unwrap();
        for turn in 0..5 {
            for request in 0..500 {
                recorder.access(Access {
                    request: turn * 500 + request,
                    ..sample()
                });
                if request == 250 {
                    std::fs::rename(&path, dir.path().join(format!("{turn}"))).unwrap();
                    recorder.reopen();
                    // The next turn moves what this one has opened.
                    while !path.exists() {
                        std::thread::yield_now();
                    }
                }
            }
        }
        drop(recorder);
        let files = std::fs::read_dir(dir.path()).unwrap();
        let texts: Vec<_> = files
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        assert_eq!(texts.len(), 6);
        let lines = texts.iter().flat_map(|text| text.lines());
        let mut seen: Vec<u64> = lines
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|line| line["request"].as_u64().unwrap())
            .collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..2500));
        let text = metrics.text().unwrap();
        assert!(text.contains("headwater_records_reopened_total 5"));
    }

    #[test]
    fn a_full_disk_loses_records_and_says_so() {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            println!("skipped: no /dev/full here");
            return;
        };
        let metrics = Metrics::new();
        let recorder = Recorder::to(full, Path::new("/dev/full"), &metrics).unwrap();
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
