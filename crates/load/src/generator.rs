//! The threads of a generator, and the one that adds up what they see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often a person's wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// What the adding thread hears.
pub(crate) enum Heard<T> {
    /// A thread's report.
    Report(Box<T>),
    /// Nothing new for [`LOOK`].
    Nothing,
    /// A person wants it to end; said once.
    Stop,
}

/// Starts threads that `work`, and hands what they report to `hear` until the last has ended.
///
/// # Errors
/// A thread that could not start or went wrong, or what `hear` could not do.
pub(crate) fn run<T: Send + 'static>(
    name: &str,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(usize, &Sender<Box<T>>) -> Result<(), String> + Clone + Send + 'static,
    mut hear: impl FnMut(Heard<T>) -> Result<(), String>,
) -> Result<(), String> {
    let (out, reports) = channel();
    let mut workers = Vec::new();
    for number in 0..threads {
        let (work, out) = (work.clone(), out.clone());
        let worker = std::thread::Builder::new()
            .name(format!("{name}-{number}"))
            .spawn(move || work(number, &out));
        workers.push(worker.map_err(|error| format!("no thread: {error}"))?);
    }
    drop(out);
    let mut stopping = false;
    loop {
        if !stopping && stop.load(Ordering::Relaxed) {
            stopping = true;
            hear(Heard::Stop)?;
        }
        match reports.recv_timeout(LOOK) {
            Ok(report) => hear(Heard::Report(report))?,
            Err(RecvTimeoutError::Timeout) => hear(Heard::Nothing)?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    for worker in workers {
        let ended = worker.join();
        ended.map_err(|_| "a thread of the generator ended in panic")??;
    }
    Ok(())
}

/// Processor time of this process so far, in seconds.
pub(crate) fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
