//! An experiment on a thread of its own, for whoever serves others meanwhile.

use super::{Job, Outcome, Progress, run};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Runs until it is complete, stopped or dropped.
pub struct Running {
    stop: Arc<AtomicBool>,
    progress: Arc<Mutex<Option<Progress>>>,
    thread: Option<JoinHandle<Result<Outcome, String>>>,
}

impl Running {
    /// Begins, or goes on where the job's folder says that it was.
    pub fn start(job: Job) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let progress: Arc<Mutex<Option<Progress>>> = Arc::default();
        let (stopped, told) = (Arc::clone(&stop), Arc::clone(&progress));
        let thread = std::thread::spawn(move || {
            let mut say = |progress: &Progress| {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress.clone());
            };
            run(&job, &stopped, &mut say)
        });
        Running {
            stop,
            progress,
            thread: Some(thread),
        }
    }

    /// How far it is; none before the first run.
    pub fn progress(&self) -> Option<Progress> {
        let progress = self.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it has ended, well or not.
    pub fn ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks it to end soon; what stands is taken away.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// As [`run`].
    pub fn wait(mut self) -> Result<Outcome, String> {
        self.join()
    }

    fn join(&mut self) -> Result<Outcome, String> {
        let thread = self.thread.take().ok_or("it was waited for")?;
        thread.join().unwrap_or_else(|_| Err("it panicked".into()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        let _ = self.join();
    }
}
