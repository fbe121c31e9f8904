//! Which processors something may run on.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::io;
use toml::Value;

/// Some processors, by number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cpus(Vec<usize>);

impl Cpus {
    /// As it is written: `[0, 2]` or `"0-1,3"`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub(super) fn read(value: &Value) -> Result<Cpus, String> {
        let numbers = match value {
            Value::Array(all) => all
                .iter()
                .map(|n| n.as_integer()?.try_into().ok())
                .collect(),
            Value::String(text) => ranges(text),
            _ => None,
        };
        let numbers: Option<Vec<usize>> = numbers;
        match numbers {
            Some(mut all) if !all.is_empty() && all.iter().all(|n| *n < CpuSet::MAX_CPU) => {
                all.sort_unstable();
                all.dedup();
                Ok(Cpus(all))
            }
            _ => Err("processors are numbers from 0, such as [0, 2] or \"0-1\"".into()),
        }
    }

    /// Keeps the calling thread, and what it will start, on these.
    pub(super) fn pin(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|n| set.set(*n));
        sched_setaffinity(None, &set).map_err(|error| self.wrong(&error))
    }

    /// Whether a process is on these: the kernel leaves out what the machine has not.
    pub(super) fn hold(&self, process: u32) -> io::Result<()> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        let set = sched_getaffinity(pid).map_err(|error| self.wrong(&error))?;
        let are: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).collect();
        match are == self.0 {
            true => Ok(()),
            false => Err(self.wrong(&format!("the kernel gives {are:?}"))),
        }
    }

    fn wrong(&self, what: &dyn std::fmt::Display) -> io::Error {
        io::Error::other(format!("cpus {:?}: {what}", self.0))
    }
}

/// `0-1,3`; none where it is something else.
fn ranges(text: &str) -> Option<Vec<usize>> {
    // Once each: a short text may say many of them again and again.
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
    fn lists_and_ranges() {
        let read = |text: &str| {
            let table: toml::Table = format!("c = {text}").parse().unwrap();
            Cpus::read(&table["c"]).map(|cpus| cpus.0)
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
    fn a_process_is_where_its_thread_was_pinned() {
        std::thread::spawn(|| {
            let one = Cpus(vec![0]);
            one.pin().unwrap();
            let mut child = std::process::Command::new("sleep")
                .arg("9")
                .spawn()
                .unwrap();
            assert!(one.hold(child.id()).is_ok());
            assert!(Cpus(vec![0, 1]).hold(child.id()).is_err());
            child.kill().unwrap();
            child.wait().unwrap();
        })
        .join()
        .unwrap();
    }
}
