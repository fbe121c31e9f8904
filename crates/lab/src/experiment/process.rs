//! The commands of one run that were started: watched, and reaped.

use super::command::last_words;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// All of a run. When dropped it waits for each: whoever owns it sees to it that they end.
#[derive(Default)]
pub(super) struct Processes(RefCell<Vec<Process>>);

struct Process {
    role: Role,
    name: String,
    child: Child,
    output: PathBuf,
    /// None for a function: it may run as long as it likes.
    until: Option<(Instant, Duration)>,
    ended: bool,
}

/// What a process is to an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Function,
    Sink,
}

impl Processes {
    /// A function, which must not end by itself.
    pub(super) fn function(&self, name: &str, child: Child, output: &Path) {
        self.add(Role::Function, name, child, output, None);
    }

    /// A sink, which must end well in this time.
    pub(super) fn sink(&self, name: &str, child: Child, output: &Path, within: Duration) {
        self.add(
            Role::Sink,
            name,
            child,
            output,
            Some((Instant::now() + within, within)),
        );
    }

    fn add(
        &self,
        role: Role,
        name: &str,
        child: Child,
        output: &Path,
        until: Option<(Instant, Duration)>,
    ) {
        self.0.borrow_mut().push(Process {
            role,
            name: name.to_owned(),
            child,
            output: output.to_owned(),
            until,
            ended: false,
        });
    }

    /// Whether all sinks have ended.
    ///
    /// # Errors
    /// A function that has ended, a sink that ended badly or takes too long; with what it said.
    pub(super) fn all_sinks_ended(&self) -> Result<bool, String> {
        let mut all = true;
        for process in self
            .0
            .borrow_mut()
            .iter_mut()
            .filter(|process| !process.ended)
        {
            process.look()?;
            all &= process.ended || process.role == Role::Function;
        }
        Ok(all)
    }
}

impl Process {
    fn look(&mut self) -> Result<(), String> {
        let name = &self.name;
        let status = self.child.try_wait();
        let status = status.map_err(|error| format!("{name}: {error}"))?;
        self.ended = status.is_some();
        let what = match (self.role, status, self.until) {
            (Role::Sink, Some(status), _) if status.success() => return Ok(()),
            (Role::Sink, Some(status), _) => format!("sink {name}: {status}"),
            (Role::Function, Some(status), _) => format!("function {name}: it has ended: {status}"),
            (_, None, Some((until, within))) if Instant::now() > until => {
                format!("sink {name}: not ended within {within:?}")
            }
            _ => return Ok(()),
        };
        Err(what + &last_words(&self.output))
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.0.get_mut() {
            // Left alive only where it has got out of what is taken away.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}
