//! What a connection's task, its handlers, its bodies and its worker's sweep share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One connection's state.
#[derive(Debug)]
pub struct Shared {
    pub(crate) id: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) secure: bool,
    bodies: AtomicU64,
}

/// Held while a response is leaving; the connection is not idle before it is dropped.
#[derive(Debug)]
pub struct InFlight {
    shared: Arc<Shared>,
}

impl InFlight {
    /// One more response on this connection.
    pub(crate) fn new(shared: Arc<Shared>) -> InFlight {
        shared.bodies.fetch_add(1, Ordering::Relaxed);
        InFlight { shared }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.shared.bodies.fetch_sub(1, Ordering::Relaxed);
    }
}
