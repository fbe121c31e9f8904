//! Listen, accept, serve, drain.

use std::io;
use std::net::SocketAddr;

use http::{Request, Response};
use hyper::body::Incoming;

pub use self::limits::Limits;
pub use self::shutdown::Shutdown;
use crate::metrics::Metrics;
use crate::{Body, Conn};

mod limits;
mod shutdown;

/// Where and how to listen.
#[derive(Debug, Clone, Default)]
pub struct Listen {
    /// `HOST:PORT` each; port 0 takes a free one.
    pub addresses: Vec<String>,
    /// Encrypt, on all addresses.
    pub tls: Option<Tls>,
    /// Bounds on what clients may do.
    pub limits: Limits,
    /// Threads, each with a runtime and listeners of its own; 0: one per core.
    pub workers: usize,
    /// Where the server counts connections.
    pub metrics: Metrics,
}

/// A certificate chain and its key, in PEM.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The chain, the server's own certificate first.
    pub cert: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
}

/// Bound sockets, not serving yet.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// Resolves and binds all addresses.
    pub fn bind(_listen: Listen) -> io::Result<Server> {
        Ok(Server {
            addresses: Vec::new(),
        })
    }

    /// The addresses really bound.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until `shutdown` has drained or stopped it. `factory` is called once on each worker's
    /// thread, inside its runtime, with the worker's number; what it returns answers the requests.
    pub fn run<F, H, R>(self, _factory: F, _shutdown: Shutdown) -> io::Result<()>
    where
        F: Fn(usize) -> H + Send + Sync,
        H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        Ok(())
    }
}
