//! The reasons why this machine cannot emulate links.

use std::io;

/// A permission or tool that this machine lacks.
#[derive(Debug, thiserror::Error)]
pub enum UnavailableError {
    /// Namespaces or TUN devices are unavailable.
    #[error(
        "cannot emulate links: {0}; run as root or under `unshare -Ur`, with a readable /dev/net/tun"
    )]
    Links(io::Error),
    /// Namespaces that mark the processes of an agent are unavailable.
    #[error("cannot track the processes to be started: {0}; run as root or under `unshare -Ur`")]
    Marks(io::Error),
    /// The kernel's emulator netem or its tools are unavailable.
    #[error(
        "netem unavailable: {0}; install iproute2 and the kernel modules sch_netem and sch_tbf, \
         or leave out by = \"netem\""
    )]
    NetemLink(io::Error),
}
