//! Listen, accept, serve, drain.
//!
//! Each worker is a thread with a runtime and listeners of its own; the kernel spreads connections
//! over them (SO_REUSEPORT), and no request crosses threads.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};

use self::census::Census;
#[cfg(any(test, fuzzing))]
pub(crate) use self::direct::plain_request;
pub use self::limits::{Limits, raise_descriptor_limit};
use self::near::Near;
pub use self::roster::Connections;
use self::roster::Roster;
pub use self::shutdown::{Hold, Shutdown};
pub use self::tls::{Certificates, Tls};
use crate::body::Incoming;
use crate::metrics::Metrics;
use crate::{Body, Conn, Trust};

mod bind;
mod census;
mod direct;
mod limits;
mod near;
mod proxy;
mod roster;
mod serve;
mod shutdown;
mod tls;
mod worker;

#[cfg(test)]
mod tests;

/// Where and how to listen.
#[derive(Debug, Clone, Default)]
pub struct Listen {
    /// `HOST:PORT` each; port 0 takes a free one; without a host, all addresses of the machine.
    pub addresses: Vec<String>,
    /// Listen on a port that another process already listens on (it must have said so too).
    /// Off by default: a second server on the same port is mostly a mistake.
    pub share: bool,
    /// Encrypt, on all addresses.
    pub tls: Option<Tls>,
    /// Bounds on what clients may do.
    pub limits: Limits,
    /// Whose word about a client counts.
    pub trust: Trust,
    /// Who answers our first packet sooner is near, and is sent to without pacing; zero: nobody.
    pub near_rtt: Duration,
    /// Threads, each with a runtime and listeners of its own; 0: one per core.
    pub workers: usize,
    /// Where the server counts connections.
    pub metrics: Metrics,
}

/// Bound sockets, not serving yet.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    /// For each worker, its listener for each address.
    listeners: Vec<Vec<std::net::TcpListener>>,
    common: Arc<Common>,
}

/// What all workers share.
struct Common {
    limits: Limits,
    trust: Trust,
    tls: Option<Certificates>,
    census: Census,
    near: Option<Near>,
    /// Of each worker.
    rosters: Vec<Roster>,
}

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Resolves and binds all addresses. From then on clients can connect; they are answered once
    /// the server runs.
    pub fn bind(listen: Listen) -> io::Result<Server> {
        let workers = match listen.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given => given,
        };
        let tls = listen.tls.as_ref().map(Certificates::new).transpose()?;
        let (addresses, listeners) = bind::all(&listen.addresses, workers, listen.share)?;
        let census = Census::new(&listen.limits, &listen.metrics);
        let common = Arc::new(Common {
            limits: listen.limits,
            trust: listen.trust,
            tls,
            census,
            near: Near::begin(&listeners, listen.near_rtt),
            rosters: (0..workers).map(|_| Roster::default()).collect(),
        });
        Ok(Server {
            addresses,
            listeners,
            common,
        })
    }

    /// The addresses really bound, in the order given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// True when clients must speak TLS.
    pub fn secure(&self) -> bool {
        self.common.tls.is_some()
    }

    /// To change certificates while it runs, where clients must speak TLS.
    pub fn certificates(&self) -> Option<Certificates> {
        self.common.tls.clone()
    }

    /// To look at its connections while it runs.
    pub fn connections(&self) -> Connections {
        Connections(self.common.rosters.clone())
    }

    /// Serves until `shutdown` has drained or stopped it. `factory` is called once on each worker's
    /// thread, inside its runtime, with the worker's number; what it returns answers the requests.
    pub fn run<F, H, R>(self, factory: F, shutdown: Shutdown) -> io::Result<()>
    where
        F: Fn(usize) -> H + Send + Sync,
        H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        let (common, factory, shutdown) = (&self.common, &factory, &shutdown);
        std::thread::scope(|scope| {
            let start = |(number, listeners)| {
                let work = move || {
                    let common = Arc::clone(common);
                    worker::run(common, number, listeners, shutdown, || factory(number))
                };
                let name = format!("worker-{number}");
                std::thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, work)
            };
            let threads: Vec<_> = self.listeners.into_iter().enumerate().map(start).collect();
            // A worker that cannot start, or fails, ends the others too.
            let join = |thread: io::Result<std::thread::ScopedJoinHandle<'_, io::Result<()>>>| {
                let result = thread.and_then(|thread| match thread.join() {
                    Ok(result) => result,
                    Err(_) => Err(io::Error::other("a worker panicked")),
                });
                result.inspect_err(|_| shutdown.stop())
            };
            let results: Vec<_> = threads.into_iter().map(join).collect();
            results.into_iter().collect()
        })
    }
}
