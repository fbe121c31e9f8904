//! Ends all processes in the registered namespaces when the main process exits or drops its
//! [`CleanupGuard`].
//!
//! The main process starts this program a second time, as the guard. The guard waits until its
//! standard input ends, which also happens if the main process is killed. Then the guard ends all
//! processes in the namespaces and removes the registered folders, so that even a crash leaves
//! neither processes nor files. The guard keeps the namespaces open, so that the kernel cannot give
//! their inode numbers to other namespaces. If the guard dies first, the main process cleans up.

use super::NetworkNamespace;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time between `SIGTERM` and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(3);
/// Time limit for ending all processes, and for removing each folder.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// The handle of the guard process. Dropping the handle ends all processes in the registered
/// namespaces and removes the registered folders.
pub struct CleanupGuard {
    process: Child,
    duty: CleanupDuty,
}

/// The namespaces whose processes are to be ended, and the folders to be removed.
#[derive(Debug, Default)]
struct CleanupDuty {
    namespaces: Vec<u64>,
    folders: Vec<PathBuf>,
}

impl CleanupGuard {
    /// Arguments with which this program runs as the guard ([`run_cleanup_process`]).
    pub const ARGUMENTS: [&str; 2] = ["lab", "guard"];

    /// Starts this program as the guard, with [`CleanupGuard::ARGUMENTS`].
    ///
    /// # Errors
    /// The program cannot be started a second time.
    pub fn start() -> io::Result<CleanupGuard> {
        let mut command = Command::new("/proc/self/exe");
        command.args(CleanupGuard::ARGUMENTS).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C sends a signal to the whole foreground process group. The guard gets its own
        // group, because it must survive the signal.
        let process = command.process_group(0).spawn()?;
        let duty = CleanupDuty::default();
        Ok(CleanupGuard { process, duty })
    }

    /// Registers a namespace whose processes the guard ends.
    ///
    /// # Errors
    /// The guard has exited.
    pub fn register_namespace(&mut self, namespace: &NetworkNamespace) -> io::Result<()> {
        self.duty.namespaces.push(namespace.inode());
        let (inode, path) = (namespace.inode(), namespace.path());
        self.send_line(format!("{inode} {}", path.display()).as_bytes())
    }

    /// Registers a folder that the guard removes. The path of the folder must be absolute.
    ///
    /// # Errors
    /// The guard has exited, or the path is not absolute or contains a line break.
    pub fn delete_at_exit(&mut self, folder: &Path) -> io::Result<()> {
        let bytes = folder.as_os_str().as_bytes();
        if !folder.is_absolute() || bytes.contains(&b'\n') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.duty.folders.push(folder.to_owned());
        self.send_line(bytes)
    }

    fn send_line(&mut self, line: &[u8]) -> io::Result<()> {
        let stdin = self.process.stdin.as_mut();
        let stdin = stdin.ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(&[line, b"\n"].concat())
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        if !self.process.wait().is_ok_and(|status| status.success()) {
            self.duty.clean_up();
        }
    }
}

/// Runs as the guard process. Reads namespaces (inode and path) and folders from standard input,
/// one per line. Cleans up when standard input ends.
pub fn run_cleanup_process() {
    let (mut duty, mut held) = (CleanupDuty::default(), Vec::new());
    let (mut input, mut line) = (io::stdin().lock(), Vec::new());
    // Ignores an incomplete line at the end.
    while input.read_until(b'\n', &mut line).is_ok() && line.pop() == Some(b'\n') {
        match parse_namespace_line(&line) {
            Some((inode, path)) => {
                duty.namespaces.push(inode);
                held.extend(File::open(path).ok());
            }
            None => duty.folders.push(OsStr::from_bytes(&line).into()),
        }
        line.clear();
    }
    duty.clean_up();
    drop(held);
}

/// Parses the inode and the path of a namespace. Returns `None` if the line is a folder.
fn parse_namespace_line(line: &[u8]) -> Option<(u64, &str)> {
    let (inode, path) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    Some((inode.parse().ok()?, path))
}

impl CleanupDuty {
    fn clean_up(&self) {
        self.end_processes();
        for folder in self.folders.iter().filter(|folder| folder.is_absolute()) {
            let started = Instant::now();
            // Retries, because a process that is exiting may still create files.
            while std::fs::remove_dir_all(folder).is_err() && folder.exists() {
                if started.elapsed() > RESPONSE_TIMEOUT {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn end_processes(&self) {
        let (started, mut signaled) = (Instant::now(), BTreeSet::new());
        let mut none_found = 0;
        // Stops only after two consecutive searches that find no process, because a process may be
        // created during the first search.
        while none_found < 2 && started.elapsed() < RESPONSE_TIMEOUT {
            let found = self.find_processes();
            none_found = if found.is_empty() { none_found + 1 } else { 0 };
            for (pid, process) in found {
                if started.elapsed() > GRACE {
                    let _ = pidfd_send_signal(process, Signal::KILL);
                } else if signaled.insert(pid.as_raw_nonzero()) {
                    // Sends only one SIGTERM to each process, because many servers exit immediately
                    // on a second SIGTERM.
                    let _ = pidfd_send_signal(process, Signal::TERM);
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns all processes in the registered namespaces.
    fn find_processes(&self) -> Vec<(Pid, OwnedFd)> {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let names = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let pids = names.filter_map(|name| Pid::from_raw(name.parse().ok()?));
        // Opens a pidfd of each process before the check. If the process ID is reused after the
        // check, the signal cannot reach the new process.
        let held = pids.filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)));
        held.filter(|(pid, _)| self.has_process(*pid)).collect()
    }

    fn has_process(&self, pid: Pid) -> bool {
        ["net", "uts"].into_iter().any(|kind| {
            let path = format!("/proc/{}/ns/{kind}", pid.as_raw_nonzero());
            std::fs::metadata(path).is_ok_and(|ns| self.namespaces.contains(&ns.ino()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_distinguished_from_folders() {
        let parsed = parse_namespace_line(b"4026532281 /proc/12/fd/7");
        assert_eq!(parsed, Some((4_026_532_281, "/proc/12/fd/7")));
        for folder in ["/tmp/scratch-0", "/tmp/12 /7", "/12", "/tmp/\u{e4} b"] {
            assert_eq!(parse_namespace_line(folder.as_bytes()), None, "{folder}");
        }
    }
}
