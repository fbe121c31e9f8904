//! Network namespaces without names in the file system: nothing is left when their processes end.

use super::kernel;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

/// A network of its own, with nothing but `lo` in it; or only a mark on what is started inside.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    kind: LinkNameSpaceType,
    inode: u64,
}

impl Namespace {
    /// Makes one.
    ///
    /// # Errors
    /// The kernel's, mostly that only root may.
    pub fn new() -> io::Result<Namespace> {
        let file = aside(|| {
            kernel::unshare(UnshareFlags::NEWNET)?;
            kernel::up("lo")?;
            // Else a connection begins with what an earlier one to the same address has learnt.
            std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")?;
            File::open("/proc/thread-self/ns/net")
        })?;
        Namespace::of(file, LinkNameSpaceType::Network)
    }

    /// The network of this process, and yet all that is started inside can be told from everything
    /// else: it has the host's name in a namespace of its own.
    ///
    /// # Errors
    /// The kernel's, mostly that only root may.
    pub fn same_network() -> io::Result<Namespace> {
        let file = aside(|| {
            kernel::unshare(UnshareFlags::NEWUTS)?;
            File::open("/proc/thread-self/ns/uts")
        })?;
        Namespace::of(file, LinkNameSpaceType::HostNameAndNISDomainName)
    }

    fn of(file: File, kind: LinkNameSpaceType) -> io::Result<Namespace> {
        let inode = file.metadata()?.ino();
        Ok(Namespace { file, kind, inode })
    }

    /// The same one, for another holder.
    ///
    /// # Errors
    /// The kernel's, where there are too many descriptors.
    pub fn again(&self) -> io::Result<Namespace> {
        let file = self.file.try_clone()?;
        Ok(Namespace { file, ..*self })
    }

    /// Runs something on a thread inside: sockets made and processes started there stay there.
    ///
    /// # Errors
    /// The kernel's, where the namespace may not be entered; and those of `work`.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        aside(|| {
            move_into_link_name_space(self.file.as_fd(), Some(self.kind))?;
            work()
        })
    }

    /// What names it among all namespaces of this machine.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Where other processes of this user find it, as long as this process lives.
    pub fn path(&self) -> PathBuf {
        let (pid, fd) = (std::process::id(), self.file.as_raw_fd());
        PathBuf::from(format!("/proc/{pid}/fd/{fd}"))
    }
}

/// Moves the calling thread, and what it will start, into the network that a file stands for.
pub(crate) fn enter(file: &File) -> io::Result<()> {
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(io::Error::from)
}

/// Whether links can be made here.
///
/// # Errors
/// A sentence that says what is missing.
pub fn available() -> Result<(), String> {
    let make = || Namespace::new()?.within(|| kernel::tun("probe").map(drop));
    make().map_err(|error| {
        format!(
            "this machine makes no links: {error}. They need root (or `unshare -Ur`) and a \
             readable /dev/net/tun"
        )
    })
}

/// Whether what is started here can be told from everything else, and so be ended.
///
/// # Errors
/// A sentence that says what is missing.
pub(crate) fn marked() -> Result<(), String> {
    Namespace::same_network().map(drop).map_err(|error| {
        format!(
            "what runs here could not be ended again: {error}. It needs root (or `unshare -Ur`)"
        )
    })
}

/// On a thread of its own, whose namespace is nobody else's concern.
fn aside<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(work);
        let failed = |_| Err(io::Error::other("a thread in a namespace panicked"));
        thread.join().unwrap_or_else(failed)
    })
}
