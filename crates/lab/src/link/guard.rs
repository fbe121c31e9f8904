//! Ends what runs in namespaces when the process that made them is gone, however it went.
//!
//! A second process of the same program waits for the end of its standard input, which is the end
//! of the first process even where that was `SIGKILL`, and then ends all that is in the
//! namespaces: a crash leaves no process. Namespaces go with their last process.

use super::Namespace;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long programs in namespaces have to end by themselves after `SIGTERM`.
const GRACE: Duration = Duration::from_secs(3);
/// How long they are hunted at all.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// The second process. When dropped it ends all that is in the namespaces it knows, and itself.
pub struct Guard {
    process: Child,
}

impl Guard {
    /// The words that bring this program to [`stand`].
    pub const WORDS: [&str; 2] = ["lab", "guard"];

    /// Starts it, as this program with [`Guard::WORDS`].
    ///
    /// # Errors
    /// When this program cannot be started a second time.
    pub fn start() -> io::Result<Guard> {
        let mut command = Command::new("/proc/self/exe");
        command.args(Guard::WORDS).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C at a terminal goes to the foreground's whole group: not to the guard.
        let process = command.process_group(0).spawn()?;
        Ok(Guard { process })
    }

    /// Tells it of a namespace.
    ///
    /// # Errors
    /// When it is gone.
    pub fn watch(&mut self, namespace: &Namespace) -> io::Result<()> {
        let stdin = self.process.stdin.as_mut();
        let stdin = stdin.ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{}", namespace.inode())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// What the second process does: reads the namespaces' inodes, a line each, until its input ends,
/// then ends all processes in them.
pub fn stand() {
    let numbers = io::stdin().lines().map_while(Result::ok);
    let numbers: Vec<u64> = numbers.filter_map(|line| line.parse().ok()).collect();
    empty(&numbers);
}

fn empty(namespaces: &[u64]) {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let polite = began.elapsed() < GRACE;
        let signal = if polite { Signal::TERM } else { Signal::KILL };
        if signal_all(namespaces, signal) == 0 {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// How many processes were found in the namespaces; each was sent the signal.
fn signal_all(namespaces: &[u64], signal: Signal) -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let names = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter_map(|name| Pid::from_raw(name.parse().ok()?));
    pids.filter(|pid| signal_one(*pid, namespaces, signal))
        .count()
}

fn signal_one(pid: Pid, namespaces: &[u64], signal: Signal) -> bool {
    // Held first and looked at then: the number cannot become another process's in between.
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let path = format!("/proc/{}/ns/net", pid.as_raw_nonzero());
    let inside = std::fs::metadata(path).is_ok_and(|ns| namespaces.contains(&ns.ino()));
    inside && pidfd_send_signal(held, signal).is_ok()
}
