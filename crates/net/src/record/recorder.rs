//! The thread that writes records, and its bounded queue.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use super::lines_file::LinesFile;
use super::{AccessRecord, CmcdRecord, RecordFormat, StorageRequestRecord, TcpRecord};
use crate::metrics::{Counter, MetricSpec, Metrics};

/// Maximum number of records in the queue. A full queue uses about 30 MB. Further records are
/// dropped and counted.
const WAITING_MAX: usize = 65_536;
/// Maximum number of player reports in the queue. A full queue uses about 60 MB. Player reports are
/// larger than other records.
const REPORTS_WAITING_MAX: usize = 8192;
/// Longest time for which the writer thread waits before it writes queued records.
const DELAY_MAX: Duration = Duration::from_millis(200);

const WRITTEN: MetricSpec = MetricSpec {
    name: "records_written",
    unit: "",
    help: "Records written to the file",
};
const DROPPED: MetricSpec = MetricSpec {
    name: "records_dropped",
    unit: "",
    help: "Records lost because the disk was too slow or full",
};

const REOPENED: MetricSpec = MetricSpec {
    name: "records_reopened",
    unit: "",
    help: "Times that the records file was reopened",
};

/// Writes records to a file. Cheap to clone. [`Recorder::close`] waits until all records are
/// written. Dropping the last clone does the same.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<RecorderState>,
    thread: Arc<WriterThread>,
}

#[derive(Debug)]
struct RecorderState {
    format: RecordFormat,
    queue: Mutex<RecordQueue>,
    waiting_max: usize,
    wake: Condvar,
    counters: RecorderCounters,
}

/// The counters of all recorders of a process.
#[derive(Debug, Clone)]
struct RecorderCounters {
    written: Counter,
    dropped: Counter,
    reopened: Counter,
}

impl RecorderCounters {
    fn new(metrics: &Metrics) -> RecorderCounters {
        RecorderCounters {
            written: metrics.counter(&WRITTEN),
            dropped: metrics.counter(&DROPPED),
            reopened: metrics.counter(&REOPENED),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RecordLine {
    Access(Box<AccessRecord>),
    Storage(Box<StorageRequestRecord>),
    Tcp(Box<TcpRecord>),
    Cmcd(Box<CmcdRecord>),
}

#[derive(Debug, Default)]
struct RecordQueue {
    waiting: Vec<RecordLine>,
    closed: bool,
    /// Whether to reopen the file by its name. Queued records are written to the old file, and
    /// later records to the new file.
    reopen: bool,
}

impl Recorder {
    /// Opens a file for appending. Creates the file if it does not exist.
    pub fn open_file(path: &Path, format: RecordFormat, metrics: &Metrics) -> io::Result<Recorder> {
        let counters = RecorderCounters::new(metrics);
        Recorder::with_file(LinesFile::open(path)?, path, format, counters, WAITING_MAX)
    }

    /// Opens a file for player reports in JSON. If the process has a `main` recorder, both
    /// recorders share their counters.
    ///
    /// # Errors
    /// When the file cannot be opened. The error contains the name of the file.
    pub fn open_for_cmcd(
        path: &Path,
        main: Option<&Recorder>,
        metrics: &Metrics,
    ) -> io::Result<Recorder> {
        let named = |e: io::Error| {
            let cause = crate::describe_io_error(&e);
            io::Error::new(e.kind(), format!("cannot open {}: {cause}", path.display()))
        };
        let file = LinesFile::open(path).map_err(named)?;
        let counters = match main {
            Some(main) => main.shared.counters.clone(),
            None => RecorderCounters::new(metrics),
        };
        Recorder::with_file(
            file,
            path,
            RecordFormat::Json,
            counters,
            REPORTS_WAITING_MAX,
        )
    }

    fn with_file(
        file: LinesFile,
        path: &Path,
        format: RecordFormat,
        counters: RecorderCounters,
        waiting_max: usize,
    ) -> io::Result<Recorder> {
        let shared = Arc::new(RecorderState {
            format,
            queue: Mutex::default(),
            waiting_max,
            wake: Condvar::new(),
            counters,
        });
        let (thread_state, path) = (Arc::clone(&shared), path.to_owned());
        let run = move || thread_state.write_until_closed(file, &path);
        let handle = std::thread::Builder::new()
            .name("records".into())
            .spawn(run)?;
        let thread = WriterThread {
            shared: Arc::clone(&shared),
            handle: Mutex::new(Some(handle)),
        };
        Ok(Recorder {
            shared,
            thread: Arc::new(thread),
        })
    }

    /// Closes the recorder and waits until all queued records are written. Later records are
    /// dropped and counted.
    ///
    /// Call this method before the program exits. A thread that is never joined may hold the last
    /// clone, which is then never dropped.
    pub fn close(&self) {
        self.thread.close();
    }

    /// Queues one record. Never waits for the disk.
    pub fn record_access(&self, record: AccessRecord) {
        self.push_line(RecordLine::Access(Box::new(record)));
    }

    /// Queues the record of a storage request, if the format supports such records.
    pub fn record_storage(&self, record: StorageRequestRecord) {
        if self.records_more_than_access() {
            self.push_line(RecordLine::Storage(Box::new(record)));
        }
    }

    /// Queues a record of TCP statistics, if the format supports such records.
    pub fn record_tcp(&self, record: TcpRecord) {
        if self.records_more_than_access() {
            self.push_line(RecordLine::Tcp(Box::new(record)));
        }
    }

    /// Queues the record of a player's report.
    pub fn record_cmcd(&self, record: CmcdRecord) {
        self.push_line(RecordLine::Cmcd(Box::new(record)));
    }

    /// Returns whether the format supports records of storage requests, TCP statistics and CMCD.
    /// Access-log formats support only access records.
    pub fn records_more_than_access(&self) -> bool {
        self.shared.format == RecordFormat::Json
    }

    /// Makes the writer thread reopen the file by its name. Call this method after the old file was
    /// moved away. No record is lost.
    pub fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.wake.notify_one();
    }

    fn push_line(&self, record: RecordLine) {
        let mut queue = self.shared.lock();
        if queue.closed || queue.waiting.len() >= self.shared.waiting_max {
            drop(queue);
            self.shared.counters.dropped.inc();
            return;
        }
        queue.waiting.push(record);
        // The writer thread polls the queue, because a wake-up for each record would cost more than
        // the write.
        if queue.waiting.len() == self.shared.waiting_max / 4 {
            self.shared.wake.notify_one();
        }
    }
}

impl RecorderState {
    fn lock(&self) -> MutexGuard<'_, RecordQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes records until the recorder is closed.
    fn write_until_closed(&self, mut to: LinesFile, path: &Path) {
        let mut batch = Vec::new();
        self.write_file_header(&mut to);
        loop {
            let (closed, reopen) = self.next_batch(&mut batch);
            self.write_batch(&mut to, &batch);
            batch.clear();
            if reopen {
                match LinesFile::open(path) {
                    Ok(file) => {
                        to = file;
                        self.write_file_header(&mut to);
                        self.counters.reopened.inc();
                    }
                    Err(error) => {
                        tracing::warn!(%error, path = %path.display(), "cannot reopen the records file; records go to the old one")
                    }
                }
            }
            if closed {
                return;
            }
        }
    }

    /// Writes the header lines of a newly opened file. An error is only logged, because later lines
    /// have the right format even without the header lines.
    fn write_file_header(&self, to: &mut LinesFile) {
        let format = self.format;
        let written = to.write_lines([format], |format, lines| format.write_header_lines(lines));
        if let (_, Err(error)) = written {
            tracing::warn!(%error, "cannot write the head of the records file");
        }
    }

    /// Writes records, and counts the written and the lost records.
    fn write_batch(&self, to: &mut LinesFile, batch: &[RecordLine]) {
        if batch.is_empty() {
            return;
        }
        let (written, result) = to.write_lines(batch, |record, lines| match record {
            RecordLine::Access(access) => self.format.write_access(lines, access),
            other => write_json(lines, other),
        });
        self.counters.written.inc_by(written);
        if let Err(error) = result {
            let count = batch.len() as u64 - written;
            tracing::warn!(%error, count, "cannot write records");
            self.counters.dropped.inc_by(count);
        }
    }

    /// Waits for records and moves them to `batch`. Returns whether the recorder is closed, and
    /// whether the file must be reopened after this batch.
    fn next_batch(&self, batch: &mut Vec<RecordLine>) -> (bool, bool) {
        let idle = |queue: &mut RecordQueue| {
            !queue.closed && !queue.reopen && queue.waiting.len() < self.waiting_max / 4
        };
        let waited = self.wake.wait_timeout_while(self.lock(), DELAY_MAX, idle);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.waiting, batch);
        (queue.closed, std::mem::take(&mut queue.reopen))
    }
}

fn write_json(lines: &mut Vec<u8>, record: &RecordLine) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, record)?;
    lines.push(b'\n');
    Ok(())
}

#[derive(Debug)]
struct WriterThread {
    shared: Arc<RecorderState>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl WriterThread {
    fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handle.take() {
            // Ignores a panic of the thread, because `close` could not repair the error.
            let _ = handle.join();
        }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::time::Instant;

    use super::super::tests::sample_access;
    use super::*;

    #[test]
    fn closing_writes_all_records_while_other_clones_exist() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let recorder = Recorder::open_file(&path, RecordFormat::Json, &Metrics::new()).unwrap();
        let other = recorder.clone();
        other.record_access(sample_access());
        recorder.close();
        other.record_access(sample_access());
        let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines(), 1);
        assert_eq!(other.shared.counters.dropped.get(), 1);
        drop((recorder, other));
        assert_eq!(lines(), 1);
    }

    #[test]
    fn every_record_is_a_line_when_the_recorder_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let metrics = Metrics::new();
        let recorder = Recorder::open_file(&path, RecordFormat::Json, &metrics).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|connection| {
                let recorder = recorder.clone();
                std::thread::spawn(move || {
                    for request in 0..1000 {
                        recorder.record_access(AccessRecord {
                            connection,
                            request,
                            ..sample_access()
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
                .encode_text()
                .unwrap()
                .contains("headwater_records_written_total 4000")
        );
    }

    #[test]
    fn a_file_that_is_moved_away_is_followed_by_another_and_no_record_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let metrics = Metrics::new();
        let recorder = Recorder::open_file(&path, RecordFormat::Json, &metrics).unwrap();
        for turn in 0..5 {
            for request in 0..500 {
                recorder.record_access(AccessRecord {
                    request: turn * 500 + request,
                    ..sample_access()
                });
                if request == 250 {
                    std::fs::rename(&path, dir.path().join(format!("{turn}"))).unwrap();
                    recorder.reopen();
                    // Waits until the new file exists, because the next iteration of the outer loop
                    // renames this file.
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
        let text = metrics.encode_text().unwrap();
        assert!(text.contains("headwater_records_reopened_total 5"));
    }

    /// Regression: if a write had ended within a line, a reopened file that was not moved continued
    /// on the same line.
    #[test]
    fn a_record_after_a_reopen_starts_on_a_new_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let recorder = Recorder::open_file(&path, RecordFormat::Json, &Metrics::new()).unwrap();
        // Simulates a disk that became full within this line.
        std::fs::write(&path, "{\"part").unwrap();
        recorder.reopen();
        let end = Instant::now() + Duration::from_secs(60);
        while recorder.shared.counters.reopened.get() == 0 {
            assert!(Instant::now() < end, "not reopened within a minute");
            std::thread::yield_now();
        }
        recorder.record_access(sample_access());
        recorder.close();
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(lines[1]).is_ok());
    }

    #[test]
    fn each_file_of_an_extended_log_declares_its_fields() {
        let dir = tempfile::tempdir().unwrap();
        let [path, moved] = ["log", "log.1"].map(|name| dir.path().join(name));
        let recorder = Recorder::open_file(&path, RecordFormat::W3c, &Metrics::new()).unwrap();
        recorder.record_access(sample_access());
        std::fs::rename(&path, &moved).unwrap();
        recorder.reopen();
        while !path.exists() {
            std::thread::yield_now();
        }
        recorder.record_access(sample_access());
        recorder.close();
        for path in [path, moved] {
            let text = std::fs::read_to_string(path).unwrap();
            let starts: Vec<_> = text.lines().map(|line| line.split(' ').next()).collect();
            let head = [
                "#Version:",
                "#Software:",
                "#Date:",
                "#Fields:",
                "2024-02-29",
            ];
            assert!(starts.into_iter().flatten().eq(head), "{text}");
        }
    }

    /// Regression: a write ended within a line, and a line of the other process followed.
    #[test]
    fn the_lines_of_two_processes_do_not_mix_during_a_hand_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        // Each process opens the file itself.
        let open = || Recorder::open_file(&path, RecordFormat::Json, &Metrics::new()).unwrap();
        let recorders = [open(), open()];
        std::thread::scope(|scope| {
            for recorder in &recorders {
                scope.spawn(|| (0..10_000).for_each(|_| recorder.record_access(sample_access())));
            }
        });
        drop(recorders);
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            assert!(
                serde_json::from_str::<serde_json::Value>(line).is_ok(),
                "{line}"
            );
        }
        assert_eq!(text.lines().count(), 20_000);
    }

    #[test]
    fn a_full_disk_loses_records_and_counts_them() {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            println!("skipped: no /dev/full here");
            return;
        };
        let metrics = Metrics::new();
        let recorder = Recorder::with_file(
            LinesFile::new(full),
            Path::new("/dev/full"),
            RecordFormat::Json,
            RecorderCounters::new(&metrics),
            WAITING_MAX,
        )
        .unwrap();
        recorder.record_access(sample_access());
        drop(recorder);
        assert!(
            metrics
                .encode_text()
                .unwrap()
                .contains("headwater_records_dropped_total 1")
        );
    }
}
