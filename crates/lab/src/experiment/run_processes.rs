//! Watches and reaps the processes of one run.

use super::run_error::RunError;
use super::shell_process::last_output;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// All processes of a run. The owner must end the processes before it drops this value. Dropping
/// this value kills any remaining processes and waits until each process has exited.
#[derive(Default)]
pub(super) struct RunProcesses(RefCell<Vec<WatchedProcess>>);

struct WatchedProcess {
    role: ProcessRole,
    name: String,
    child: Child,
    output: PathBuf,
    /// Deadline and time limit of a sink; `None` for functions, which have no time limit.
    until: Option<(Instant, Duration)>,
    ended: bool,
}

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessRole {
    Function,
    Sink,
}

impl RunProcesses {
    /// Adds a function, which must not exit.
    pub(super) fn add_function_process(&self, name: &str, child: Child, output: &Path) {
        self.add_watched_process(ProcessRole::Function, name, child, output, None);
    }

    /// Adds a sink, which must succeed within a time limit.
    pub(super) fn add_sink(&self, name: &str, child: Child, output: &Path, within: Duration) {
        self.add_watched_process(
            ProcessRole::Sink,
            name,
            child,
            output,
            Some((Instant::now() + within, within)),
        );
    }

    fn add_watched_process(
        &self,
        role: ProcessRole,
        name: &str,
        child: Child,
        output: &Path,
        until: Option<(Instant, Duration)>,
    ) {
        self.0.borrow_mut().push(WatchedProcess {
            role,
            name: name.to_owned(),
            child,
            output: output.to_owned(),
            until,
            ended: false,
        });
    }

    /// Returns whether all sinks have exited.
    ///
    /// # Errors
    /// A function has exited, or a sink has failed or exceeded its time limit.
    pub(super) fn all_sinks_ended(&self) -> Result<bool, RunError> {
        let mut all = true;
        for process in self
            .0
            .borrow_mut()
            .iter_mut()
            .filter(|process| !process.ended)
        {
            process.poll_status()?;
            all &= process.ended || process.role == ProcessRole::Function;
        }
        Ok(all)
    }
}

impl WatchedProcess {
    fn poll_status(&mut self) -> Result<(), RunError> {
        let name = self.name.clone();
        let status = match self.child.try_wait() {
            Ok(status) => status,
            Err(source) => return Err(RunError::Watch { name, source }),
        };
        self.ended = status.is_some();
        let last_output = || last_output(&self.output);
        match (self.role, status, self.until) {
            (ProcessRole::Sink, Some(status), _) if status.success() => Ok(()),
            (ProcessRole::Sink, Some(status), _) => Err(RunError::SinkFailed {
                name,
                status,
                last_output: last_output(),
            }),
            (ProcessRole::Function, Some(status), _) => Err(RunError::FunctionEnded {
                name,
                status,
                last_output: last_output(),
            }),
            (_, None, Some((until, timeout))) if Instant::now() > until => {
                Err(RunError::SinkTimeout {
                    name,
                    timeout,
                    last_output: last_output(),
                })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for RunProcesses {
    fn drop(&mut self) {
        for process in self.0.get_mut() {
            // The kill only affects processes that escaped from the namespace, because all other
            // processes have ended.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}
