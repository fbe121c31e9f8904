//! Ends what runs in namespaces when the process that made them is gone, however it went.
//!
//! A second process of the same program waits for the end of its standard input, which is the end
//! of the first process even where that was `SIGKILL`. Then it ends all that is in the namespaces,
//! and removes the folders that it was told of: a crash leaves no process and no file. It holds the
//! namespaces meanwhile, which go with it: while it looks for one by its number, that is no other's.
//! Should the second process be gone first, the first one does all that.

use super::Namespace;
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

/// How long programs in namespaces have to end by themselves after `SIGTERM`.
const GRACE: Duration = Duration::from_secs(3);
/// How long they are hunted at all.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// The second process. When dropped it ends all that is in the namespaces it knows, and itself.
pub struct Guard {
    process: Child,
    duty: Duty,
}

/// What there is to take away.
#[derive(Debug, Default)]
struct Duty {
    namespaces: Vec<u64>,
    folders: Vec<PathBuf>,
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
        let duty = Duty::default();
        Ok(Guard { process, duty })
    }

    /// Tells it of a namespace whose processes it shall end.
    ///
    /// # Errors
    /// When it is gone.
    pub fn watch(&mut self, namespace: &Namespace) -> io::Result<()> {
        self.duty.namespaces.push(namespace.inode());
        let (inode, path) = (namespace.inode(), namespace.path());
        self.tell(format!("{inode} {}", path.display()).as_bytes())
    }

    /// Tells it of a folder that it shall remove, by its absolute path.
    ///
    /// # Errors
    /// When it is gone, or the path cannot be told.
    pub fn remove(&mut self, folder: &Path) -> io::Result<()> {
        let bytes = folder.as_os_str().as_bytes();
        if !folder.is_absolute() || bytes.contains(&b'\n') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.duty.folders.push(folder.to_owned());
        self.tell(bytes)
    }

    fn tell(&mut self, line: &[u8]) -> io::Result<()> {
        let stdin = self.process.stdin.as_mut();
        let stdin = stdin.ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(&[line, b"\n"].concat())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        if !self.process.wait().is_ok_and(|status| status.success()) {
            self.duty.fulfil();
        }
    }
}

/// What the second process does: reads namespaces' inodes with where they are, and folders' paths, a
/// line each, until its input ends, then ends all processes in them and removes these.
pub fn stand() {
    let (mut duty, mut held) = (Duty::default(), Vec::new());
    let (mut input, mut line) = (io::stdin().lock(), Vec::new());
    // Torn off where the first process died: what came whole counts.
    while input.read_until(b'\n', &mut line).is_ok() && line.pop() == Some(b'\n') {
        match numbered(&line) {
            Some((inode, path)) => {
                duty.namespaces.push(inode);
                held.extend(File::open(path).ok());
            }
            None => duty.folders.push(OsStr::from_bytes(&line).into()),
        }
        line.clear();
    }
    duty.fulfil();
    drop(held);
}

/// The inode of a namespace, and where it is found; none of a folder's path.
fn numbered(line: &[u8]) -> Option<(u64, &str)> {
    let (inode, path) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    Some((inode.parse().ok()?, path))
}

impl Duty {
    fn fulfil(&self) {
        self.end_processes();
        for folder in self.folders.iter().filter(|folder| folder.is_absolute()) {
            let began = Instant::now();
            // Somebody may still have put something in.
            while std::fs::remove_dir_all(folder).is_err() && folder.exists() {
                if began.elapsed() > PATIENCE {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn end_processes(&self) {
        let (began, mut told) = (Instant::now(), BTreeSet::new());
        let mut none_found = 0;
        // Twice: a process may have been born while the list was read.
        while none_found < 2 && began.elapsed() < PATIENCE {
            let found = self.inside();
            none_found = if found.is_empty() { none_found + 1 } else { 0 };
            for (pid, process) in found {
                if began.elapsed() > GRACE {
                    let _ = pidfd_send_signal(process, Signal::KILL);
                } else if told.insert(pid.as_raw_nonzero()) {
                    // Once: to many servers the second one means to drop what they are doing.
                    let _ = pidfd_send_signal(process, Signal::TERM);
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// All processes in the namespaces.
    fn inside(&self) -> Vec<(Pid, OwnedFd)> {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let names = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let pids = names.filter_map(|name| Pid::from_raw(name.parse().ok()?));
        // Held first and looked at then: the number cannot become another process's in between.
        let held = pids.filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)));
        held.filter(|(pid, _)| self.holds(*pid)).collect()
    }

    fn holds(&self, pid: Pid) -> bool {
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
    fn namespaces_are_told_from_folders() {
        let told = numbered(b"4026532281 /proc/12/fd/7");
        assert_eq!(told, Some((4_026_532_281, "/proc/12/fd/7")));
        for folder in ["/tmp/scratch-0", "/tmp/12 /7", "/12", "/tmp/\u{e4} b"] {
            assert_eq!(numbered(folder.as_bytes()), None, "{folder}");
        }
    }
}
