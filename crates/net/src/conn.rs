//! A connection as a handler sees it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

use http::Version;

pub(crate) use self::io::Io;
pub use self::mapped::Mapped;
pub(crate) use self::piped::Piped;
pub(crate) use self::shared::{Clock, Fate, InFlight, Shared};
pub use self::tcp::{Bbr, Refused, TcpInfo, Transport};

mod gather;
mod io;
mod mapped;
mod piped;
mod shared;
pub(crate) mod tcp;

/// The connection that a request came by. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Conn {
    pub(crate) shared: Arc<Shared>,
    /// The request's number on its connection, from 1.
    pub request: u64,
    pub(crate) client: IpAddr,
}

impl Conn {
    /// The other end; behind a trusted balancer that speaks the PROXY protocol, its client's.
    pub fn peer(&self) -> SocketAddr {
        self.shared.peer()
    }

    /// Whose request it is: the other end, or whom a trusted relay forwards it of.
    pub fn client(&self) -> IpAddr {
        self.client
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

    /// What TCP knows of the connection now.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn tcp(&self) -> std::io::Result<TcpInfo> {
        self.shared.tcp()
    }

    /// Sends what follows on this connection in this way, until its next request comes: then all
    /// is put back, whatever was set. (Not at the end of the response: its last bytes then still
    /// wait in the socket, and are to leave in the same way.) Returns what was refused.
    pub fn steer(&self, wanted: &Transport) -> Vec<Refused> {
        self.shared.steer(wanted)
    }

    /// For looking at the connection later without keeping it open.
    pub fn watch(&self) -> Watch {
        Watch(Arc::downgrade(&self.shared))
    }
}

/// A connection that may be gone by now.
#[derive(Debug, Clone)]
pub struct Watch(pub(crate) Weak<Shared>);

impl Watch {
    /// What TCP knows of it; `None` when it is gone.
    pub fn tcp(&self) -> Option<TcpInfo> {
        self.0.upgrade()?.tcp().ok()
    }

    /// Requests so far; `None` when it is gone.
    pub fn requests(&self) -> Option<u64> {
        Some(self.0.upgrade()?.requests())
    }
}
