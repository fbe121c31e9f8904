//! Pins commands to processors.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::io;
use toml::Value;

/// Processor numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CpuList(Vec<usize>);

/// A value that is not a set of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid processors; write numbers from 0, such as [0, 2] or \"0-1\"")]
pub(crate) struct InvalidCpus;

impl CpuList {
    /// Parses `[0, 2]` or `"0-1,3"`.
    ///
    /// # Errors
    /// The value has neither form, is empty, or contains an invalid processor number.
    pub(super) fn parse_cpu_list(value: &Value) -> Result<CpuList, InvalidCpus> {
        let numbers = match value {
            Value::Array(all) => all
                .iter()
                .map(|n| n.as_integer()?.try_into().ok())
                .collect(),
            Value::String(text) => parse_cpu_ranges(text),
            _ => None,
        };
        let numbers: Option<Vec<usize>> = numbers;
        match numbers {
            Some(mut all) if !all.is_empty() && all.iter().all(|n| *n < CpuSet::MAX_CPU) => {
                all.sort_unstable();
                all.dedup();
                Ok(CpuList(all))
            }
            _ => Err(InvalidCpus),
        }
    }

    /// Pins the calling thread, and the processes that this thread will start, to these processors.
    pub(super) fn pin_thread(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|n| set.set(*n));
        sched_setaffinity(None, &set).map_err(|error| self.affinity_error(&error))
    }

    /// Checks that a process may run on exactly these processors. The check is necessary because
    /// the kernel silently ignores requested processors that the machine lacks.
    pub(super) fn check_process_pinned(&self, process: u32) -> io::Result<()> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        let set = sched_getaffinity(pid).map_err(|error| self.affinity_error(&error))?;
        let are: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).collect();
        match are == self.0 {
            true => Ok(()),
            false => Err(self.affinity_error(&format!("the kernel allows only {are:?}"))),
        }
    }

    fn affinity_error(&self, what: &dyn std::fmt::Display) -> io::Error {
        io::Error::other(format!("cpus {:?}: {what}", self.0))
    }
}

/// Parses `0-1,3`; `None` if the text is invalid.
fn parse_cpu_ranges(text: &str) -> Option<Vec<usize>> {
    // Uses a set, because a short text could repeat a large range many times and would then need
    // much memory.
    let mut all = BTreeSet::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last >= CpuSet::MAX_CPU {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_parsed() {
        let read = |text: &str| {
            let table: toml::Table = format!("c = {text}").parse().unwrap();
            CpuList::parse_cpu_list(&table["c"]).map(|cpus| cpus.0)
        };
        assert_eq!(read("[1, 0, 1]"), Ok(vec![0, 1]));
        assert_eq!(read("'0-2,5'"), Ok(vec![0, 1, 2, 5]));
        for wrong in [
            "[]",
            "''",
            "'2-1'",
            "[-1]",
            "['0']",
            "0",
            "'0-99999999999'",
            "[100000]",
            "'a'",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_runs_where_its_thread_was_pinned() {
        std::thread::spawn(|| {
            let one = CpuList(vec![0]);
            one.pin_thread().unwrap();
            let mut child = std::process::Command::new("sleep")
                .arg("9")
                .spawn()
                .unwrap();
            assert!(one.check_process_pinned(child.id()).is_ok());
            assert!(
                CpuList(vec![0, 1])
                    .check_process_pinned(child.id())
                    .is_err()
            );
            child.kill().unwrap();
            child.wait().unwrap();
        })
        .join()
        .unwrap();
    }
}
