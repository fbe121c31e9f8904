//! A connection as a handler sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Version;

pub(crate) use self::io::Io;
pub use self::mapped::Mapped;
pub(crate) use self::shared::{Clock, Fate, InFlight, Shared};

mod gather;
mod io;
mod mapped;
mod shared;

/// The connection that a request came by. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Conn {
    pub(crate) shared: Arc<Shared>,
    /// The request's number on its connection, from 1.
    pub request: u64,
}

impl Conn {
    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.shared.peer
    }

    /// True when the connection is encrypted.
    pub fn secure(&self) -> bool {
        self.shared.secure
    }

    /// The connection's number, unique in this process, from 1.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// True when the bytes of a response will be read in user space (encrypted, or framed by
    /// HTTP/2) and not only by the kernel. Such bodies must not be mapped files: if the file is cut
    /// meanwhile, reading them is a bus error, whereas a plain vectored write just fails.
    pub fn touches_bytes(&self, version: Version) -> bool {
        self.shared.secure || version > Version::HTTP_11
    }
}
