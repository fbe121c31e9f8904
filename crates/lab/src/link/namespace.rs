//! Network namespaces without names in the file system. A namespace disappears when its last
//! process and its last open file are gone.

use super::{UnavailableError, system_calls};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

/// A network namespace that starts with only the interface `lo`, or a UTS namespace that only marks
/// the processes inside.
#[derive(Debug)]
pub struct NetworkNamespace {
    file: File,
    kind: LinkNameSpaceType,
    inode: u64,
}

impl NetworkNamespace {
    /// Creates a network namespace.
    ///
    /// # Errors
    /// The process may not create namespaces, for example because it is not root.
    pub fn new() -> io::Result<NetworkNamespace> {
        let file = run_on_thread(|| {
            system_calls::unshare_namespaces(UnshareFlags::NEWNET)?;
            system_calls::bring_up_interface("lo")?;
            // Prevents the kernel from starting new TCP connections with the metrics of earlier
            // connections.
            std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")?;
            File::open("/proc/thread-self/ns/net")
        })?;
        NetworkNamespace::from_file(file, LinkNameSpaceType::Network)
    }

    /// Creates a UTS namespace. Processes inside use the host's network, but can be identified by
    /// the namespace.
    ///
    /// # Errors
    /// The process may not create namespaces, for example because it is not root.
    pub fn create_uts_namespace() -> io::Result<NetworkNamespace> {
        let file = run_on_thread(|| {
            system_calls::unshare_namespaces(UnshareFlags::NEWUTS)?;
            File::open("/proc/thread-self/ns/uts")
        })?;
        NetworkNamespace::from_file(file, LinkNameSpaceType::HostNameAndNISDomainName)
    }

    fn from_file(file: File, kind: LinkNameSpaceType) -> io::Result<NetworkNamespace> {
        let inode = file.metadata()?.ino();
        Ok(NetworkNamespace { file, kind, inode })
    }

    /// Returns another handle of the namespace.
    ///
    /// # Errors
    /// This process has too many open files.
    pub fn try_clone(&self) -> io::Result<NetworkNamespace> {
        let file = self.file.try_clone()?;
        Ok(NetworkNamespace { file, ..*self })
    }

    /// Runs a function on a thread inside the namespace. The sockets and processes that the
    /// function creates stay in the namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered, or `work` fails.
    pub fn run_in_namespace<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        run_on_thread(|| {
            move_into_link_name_space(self.file.as_fd(), Some(self.kind))?;
            work()
        })
    }

    /// Returns the number that identifies the namespace on this machine.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns a path of the namespace for other processes of this user. The path is valid while
    /// this process keeps the namespace open.
    pub fn path(&self) -> PathBuf {
        let (pid, fd) = (std::process::id(), self.file.as_raw_fd());
        PathBuf::from(format!("/proc/{pid}/fd/{fd}"))
    }
}

/// Moves the calling thread, and the processes that it will start, into a network namespace.
pub(crate) fn enter_network(file: &File) -> io::Result<()> {
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(io::Error::from)
}

/// Checks whether links can be created on this machine.
///
/// # Errors
/// Links cannot be created; the error contains the cause.
pub fn check_links_available() -> Result<(), UnavailableError> {
    let make =
        || NetworkNamespace::new()?.run_in_namespace(|| system_calls::open_tun("probe").map(drop));
    make().map_err(UnavailableError::Links)
}

/// Checks whether this machine can mark the processes of an agent with a namespace. Without the
/// mark, the agent could not find and end these processes.
///
/// # Errors
/// Processes cannot be marked; the error contains the cause.
#[cfg(feature = "nats")]
pub(crate) fn check_process_marking_available() -> Result<(), UnavailableError> {
    NetworkNamespace::create_uts_namespace()
        .map(drop)
        .map_err(UnavailableError::Marks)
}

/// Runs a function on a new thread, so that a change of the thread's namespace affects no other
/// code.
fn run_on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(work);
        let failed = |_| Err(io::Error::other("a thread in a namespace panicked"));
        thread.join().unwrap_or_else(failed)
    })
}
