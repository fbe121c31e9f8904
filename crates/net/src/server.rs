//! Listening, accepting, serving and draining.
//!
//! Each worker is a thread with its own runtime and listeners. The kernel distributes connections
//! over the workers (SO_REUSEPORT), and each request stays on one thread.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};

use self::connection_limits::ConnectionLimits;
pub use self::connection_registry::ConnectionInspector;
use self::connection_registry::ConnectionRegistry;
#[cfg(any(test, fuzzing))]
pub(crate) use self::http1_fast_path::parse_fast_path_request;
pub use self::inherited::InheritedListener;
pub(crate) use self::inherited::ListenerCopies;
pub use self::limits::{Limits, raise_descriptor_limit};
use self::low_rtt::LowRttDetector;
use self::request_rates::RequestRateLimiter;
pub use self::server_options::ServerOptions;
use self::server_state::ServerState;
pub use self::shutdown::{Shutdown, ShutdownHold};
pub use self::tls::{CurrentCertificates, TlsIdentity};
use crate::body::Incoming;
use crate::config::{SEND_MEMORY, parse_memory_bytes};
use crate::metrics::MetricSpec;
use crate::resources::{self, MemoryLimit};
use crate::send_memory::SendMemory;
use crate::{Body, Conn};

mod ambiguous_framing;
mod bind;
mod certificate_expiry;
mod client_verifier;
mod connection_limits;
mod connection_registry;
mod http1_fast_path;
mod inherited;
mod limits;
mod low_rtt;
mod proxy_protocol;
mod read_turns;
mod request_checks;
mod request_rates;
mod serve_connection;
mod server_options;
mod server_state;
mod shutdown;
mod tls;
mod worker;

#[cfg(test)]
mod tests;

/// A server with bound sockets that is not serving yet.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    /// The listeners of each worker, usually one per address.
    listeners: Vec<Vec<std::net::TcpListener>>,
    common: Arc<ServerState>,
    /// The configured addresses.
    names: Vec<String>,
}

const IN_FLIGHT: MetricSpec = MetricSpec {
    name: "http_requests_in_flight",
    unit: "",
    help: "Requests whose response is not completely sent; on the main port, also the one that reads this",
};
const WORKER_DELAY: MetricSpec = MetricSpec {
    name: "worker_delay",
    unit: "seconds",
    help: "Delay until a worker runs what is due, sampled up to once a second: queue time of requests, and up to 2 ms of the timer",
};

const CERTIFICATE_EXPIRY: MetricSpec = MetricSpec {
    name: "certificate_expiry",
    unit: "seconds",
    help: "Earliest end of validity in the certificate chain, in seconds since 1970; none without TLS",
};

const DRAIN_LIMIT: MetricSpec = MetricSpec {
    name: "drain_limit",
    unit: "seconds",
    help: "Longest time that a drain may take (settings announce and drain-timeout)",
};

/// Stops all other workers if a worker fails or panics. Without this guard, they would continue to
/// serve, but the kernel would still queue connections for the failed worker.
struct StopOnFailure<'a> {
    shutdown: &'a Shutdown,
    succeeded: bool,
}

impl Drop for StopOnFailure<'_> {
    fn drop(&mut self) {
        if !self.succeeded {
            self.shutdown.stop();
        }
    }
}

fn default_send_memory_bytes() -> u64 {
    parse_memory_bytes(SEND_MEMORY, MemoryLimit::detect_memory_limit().bytes()).unwrap_or(u64::MAX)
}

impl Server {
    /// Resolves and binds all addresses. From then on, clients can connect, but the server serves
    /// them only after [`Server::run`] is called.
    pub fn bind(listen: ServerOptions) -> io::Result<Server> {
        Server::bind_inherited(listen, Vec::new())
    }

    /// Binds like [`Server::bind`]. If `inherited` contains sockets for an address, the server uses
    /// these sockets and opens no new sockets for the address. Sockets of a service manager replace
    /// all configured addresses.
    ///
    /// # Errors
    /// When an address cannot be bound.
    pub fn bind_inherited(
        listen: ServerOptions,
        inherited: Vec<InheritedListener>,
    ) -> io::Result<Server> {
        let workers = match listen.workers {
            0 => resources::default_workers(),
            given => given,
        };
        let tls = listen
            .tls
            .as_ref()
            .map(CurrentCertificates::new)
            .transpose()?;
        let (addresses, listeners) =
            bind::bind_all(&listen.addresses, workers, listen.share, inherited)?;
        let connection_limits = ConnectionLimits::new(&listen.limits, &listen.metrics);
        let request_rates = RequestRateLimiter::new(&listen.limits, &listen.metrics);
        let registries: Vec<_> = (0..workers)
            .map(|_| ConnectionRegistry::default())
            .collect();
        let open = ConnectionInspector(registries.clone());
        listen
            .metrics
            .register_scrape_gauge(&IN_FLIGHT, move || Some(open.count_requests_in_flight()));
        let drain_limit = (listen.limits.announce + listen.limits.drain_timeout).as_secs();
        listen
            .metrics
            .register_scrape_gauge(&DRAIN_LIMIT, move || Some(drain_limit));
        let certificates = tls.clone();
        listen
            .metrics
            .register_scrape_gauge(&CERTIFICATE_EXPIRY, move || certificates.as_ref()?.expiry());
        let common = Arc::new(ServerState {
            limits: listen.limits,
            trust: listen.trust,
            tls,
            connection_limits,
            request_rates,
            overload: listen.overload,
            essential_paths: listen.essential_paths,
            send_memory: SendMemory::new(
                listen
                    .send_memory_bytes
                    .unwrap_or_else(default_send_memory_bytes),
                &listen.metrics,
            ),
            low_rtt: LowRttDetector::disable_pacing_on_listeners(&listeners, listen.near_rtt),
            copies: ListenerCopies::default(),
            registries,
            worker_delay: listen.metrics.duration_histogram(&WORKER_DELAY),
        });
        Ok(Server {
            addresses,
            listeners,
            common,
            names: listen.addresses,
        })
    }

    /// Returns the bound addresses, in the configured order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns whether clients must use TLS.
    pub fn is_secure(&self) -> bool {
        self.common.tls.is_some()
    }

    /// Returns a handle for replacing the certificate while the server runs. Returns `None` without
    /// TLS.
    pub fn certificates(&self) -> Option<CurrentCertificates> {
        self.common.tls.clone()
    }

    /// Returns a handle for inspecting open connections while the server runs.
    pub fn connections(&self) -> ConnectionInspector {
        ConnectionInspector(self.common.registries.clone())
    }

    /// Copies the listeners for a successor. The server drops the copies when it closes its ports.
    pub(crate) fn copy_listeners(&self) -> io::Result<ListenerCopies> {
        let copies = self.common.copies.clone();
        copies.duplicate_listeners(&self.names, &self.addresses, &self.listeners)?;
        Ok(copies)
    }

    /// Serves until `shutdown` has drained or stopped the server.
    ///
    /// Calls `factory` once for each worker, on the worker's thread and inside the worker's
    /// runtime. The argument is the worker's number. The returned handler serves the requests of
    /// this worker.
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
                    let mut guard = StopOnFailure {
                        shutdown,
                        succeeded: false,
                    };
                    let common = Arc::clone(common);
                    let result =
                        worker::run_worker(common, number, listeners, shutdown, || factory(number));
                    guard.succeeded = result.is_ok();
                    result
                };
                let name = format!("worker-{number}");
                std::thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, work)
                    .inspect_err(|_| shutdown.stop())
            };
            let threads: Vec<_> = self.listeners.into_iter().enumerate().map(start).collect();
            let join = |thread: io::Result<std::thread::ScopedJoinHandle<'_, io::Result<()>>>| {
                thread.and_then(|thread| match thread.join() {
                    Ok(result) => result,
                    Err(_) => Err(io::Error::other("a worker panicked")),
                })
            };
            let results: Vec<_> = threads.into_iter().map(join).collect();
            results.into_iter().collect()
        })
    }
}
