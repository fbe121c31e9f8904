//! Generator threads, and the loop that collects their reports.

use crate::client::RequestFailure;
use crate::result::OutputError;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Maximum time between two checks of the stop flag.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The reason why a run could not start or did not finish.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// A target's request cannot be encoded.
    #[error("cannot encode a request: {0}; check the targets' URLs and header fields")]
    EncodeRequest(RequestFailure),
    /// The system could not start a thread.
    #[error("cannot start a generator thread: {0}; use fewer --threads or allow more processes")]
    StartThread(io::Error),
    /// A thread could not create its event loop.
    #[error("cannot start an event loop: {0}; use fewer --threads or allow more open files")]
    StartRuntime(io::Error),
    /// The timer of a thread could not be created or failed.
    #[error("a generator thread's timer failed: {0}; use fewer --threads or allow more open files")]
    UseTimer(io::Error),
    /// A thread panicked.
    #[error("a generator thread panicked; the message above is a bug in headwater")]
    ThreadPanicked,
    /// An output file cannot be written.
    #[error(transparent)]
    WriteOutput(#[from] OutputError),
}

/// Waits until all threads of a run are ready. If a thread fails before it is ready, dropping this
/// value stops the run and releases the other threads, which would otherwise wait forever.
pub(crate) struct StartBarrier<'a> {
    ready: &'a Barrier,
    stop: &'a AtomicBool,
    has_waited: bool,
}

impl<'a> StartBarrier<'a> {
    /// Creates the value of one thread. `ready` is for all threads of the run.
    pub(crate) fn new(ready: &'a Barrier, stop: &'a AtomicBool) -> StartBarrier<'a> {
        StartBarrier {
            ready,
            stop,
            has_waited: false,
        }
    }

    /// Blocks this thread until all threads are ready.
    pub(crate) fn wait_for_all(&mut self) {
        self.has_waited = true;
        self.ready.wait();
    }
}

impl Drop for StartBarrier<'_> {
    fn drop(&mut self) {
        if !self.has_waited {
            self.stop.store(true, Ordering::Relaxed);
            self.ready.wait();
        }
    }
}

/// An event for the loop that collects the threads' reports.
pub(crate) enum GeneratorEvent<T> {
    /// A thread's report.
    Report(Box<T>),
    /// No report arrived within [`STOP_CHECK_INTERVAL`].
    Nothing,
    /// The user requested a stop. This event is sent only once.
    Stop,
}

/// Starts `threads` threads that run `work`. Passes their reports to `on_event` until all threads
/// have finished.
///
/// # Errors
/// A thread could not start or failed, or `on_event` failed.
pub(crate) fn run_threads<T: Send + 'static>(
    name: &str,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(usize, &Sender<Box<T>>) -> Result<(), GeneratorError> + Clone + Send + 'static,
    mut on_event: impl FnMut(GeneratorEvent<T>) -> Result<(), GeneratorError>,
) -> Result<(), GeneratorError> {
    let (out, reports) = channel();
    let build = |number| Builder::new().name(format!("{name}-{number}"));
    let workers = start_threads(threads, build, out, work)?;
    let mut stopping = false;
    loop {
        if !stopping && stop.load(Ordering::Relaxed) {
            stopping = true;
            on_event(GeneratorEvent::Stop)?;
        }
        match reports.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(report) => on_event(GeneratorEvent::Report(report))?,
            Err(RecvTimeoutError::Timeout) => on_event(GeneratorEvent::Nothing)?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    for worker in workers {
        let ended = worker.join();
        ended.map_err(|_| GeneratorError::ThreadPanicked)??;
    }
    Ok(())
}

/// Starts `threads` threads. They run `work` once all of them exist, because `work` waits for all
/// threads. If a thread cannot be started, the others finish without running `work`.
fn start_threads<T: Send + 'static>(
    threads: usize,
    build: impl Fn(usize) -> Builder,
    out: Sender<Box<T>>,
    work: impl Fn(usize, &Sender<Box<T>>) -> Result<(), GeneratorError> + Clone + Send + 'static,
) -> Result<Vec<JoinHandle<Result<(), GeneratorError>>>, GeneratorError> {
    let mut workers = Vec::new();
    let mut starts = Vec::new();
    for number in 0..threads {
        let (work, out) = (work.clone(), out.clone());
        let (start, wait_for_start) = channel::<()>();
        let worker = build(number).spawn(move || match wait_for_start.recv() {
            Ok(()) => work(number, &out),
            Err(_) => Ok(()),
        });
        workers.push(worker.map_err(GeneratorError::StartThread)?);
        starts.push(start);
    }
    for start in starts {
        // Sending cannot fail, because each thread waits for this message.
        let _ = start.send(());
    }
    Ok(workers)
}

/// Returns the processor time that this process has used, in seconds.
pub(crate) fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn run_with_failing_thread(
        fail: fn() -> Result<(), GeneratorError>,
    ) -> Result<(), GeneratorError> {
        let shared = Arc::new((Barrier::new(3), AtomicBool::new(false)));
        let of_threads = shared.clone();
        let work = move |number, _: &Sender<Box<()>>| {
            let (ready, stop) = &*of_threads;
            let mut start = StartBarrier::new(ready, stop);
            if number == 1 {
                fail()?;
            }
            start.wait_for_all();
            assert!(stop.load(Ordering::Relaxed), "the others stop");
            Ok(())
        };
        run_threads("test", 3, &AtomicBool::new(false), work, |_| Ok(()))
    }

    #[test]
    fn a_thread_that_fails_before_the_start_ends_the_run() {
        let failed = run_with_failing_thread(|| {
            Err(GeneratorError::StartRuntime(io::ErrorKind::Other.into()))
        });
        assert!(
            matches!(failed, Err(GeneratorError::StartRuntime(_))),
            "{failed:?}"
        );
        let failed = run_with_failing_thread(|| panic!("expected by the test"));
        assert!(
            matches!(failed, Err(GeneratorError::ThreadPanicked)),
            "{failed:?}"
        );
    }

    /// Regression: the threads that had been started waited forever for the missing thread.
    #[test]
    fn no_thread_works_if_one_cannot_be_started() {
        let build = |number| match number {
            // The system cannot reserve a stack of this size.
            2 => Builder::new().stack_size(1 << 60),
            _ => Builder::new(),
        };
        let work = |_, out: &Sender<_>| {
            let _ = out.send(Box::new(()));
            Ok(())
        };
        let (out, reports) = channel();
        let failed = start_threads(3, build, out, work).map(|_| ());
        assert!(
            matches!(failed, Err(GeneratorError::StartThread(_))),
            "{failed:?}"
        );
        // This call returns when all threads have finished.
        assert!(reports.recv().is_err(), "a thread has worked");
    }
}
