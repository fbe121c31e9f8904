//! Finds processes that a program left behind. The processes inherit a mark in their environment.
#![allow(dead_code)] // Each test binary uses a part of this module.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The environment variable that contains the mark.
const VARIABLE: &str = "HEADWATER_TEST_MARK";

/// Marks a command, and finds all its descendants in any namespace or session.
pub struct Mark(String);

impl Mark {
    pub fn new() -> Mark {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Mark(format!("{VARIABLE}={}-{number}", std::process::id()))
    }

    pub fn put(&self, command: &mut Command) {
        command.env(VARIABLE, self.0.split_once('=').unwrap().1);
    }

    /// Returns the ids and command lines of the marked processes.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ours = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|one| one == self.0.as_bytes())
        };
        let named = |pid: u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&line).replace('\0', " "))
        };
        pids.filter(ours).map(named).collect()
    }

    /// Panics unless all marked processes exit within 20 s.
    pub fn nothing_stays(&self) {
        let began = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "left behind: {left:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Waits until a condition holds. After 30 s, panics with `what`, which names the condition.
pub fn wait(what: &str, until: impl Fn() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "timed out waiting for {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
