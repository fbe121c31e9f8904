//! A server program, with its ports and threads while it runs, and its exit.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread::JoinHandle;

use http::{Request, Response};

use crate::admin_port::ADMIN;
use crate::body::Incoming;
use crate::config::{CommonSettings, UsageError};
use crate::record::Recorder;
use crate::server::ListenerCopies;
use crate::{Body, Conn, Server, Shutdown};

mod certificates;
mod handover;
mod service_manager;

pub use self::handover::InheritedPorts;
use self::service_manager::{ServiceState, notify_service_manager};

/// The error that prevented a program from starting, or that ended the program.
#[derive(Debug)]
pub enum FatalError {
    /// Wrong usage. The exit code is 2.
    Usage(UsageError),
    /// The failed step and its cause. The exit code is 1.
    Cannot(String, io::Error),
}

impl FatalError {
    /// Returns a function for `map_err` that names the failed step.
    pub fn cannot(what: impl fmt::Display) -> impl FnOnce(io::Error) -> FatalError {
        let what = what.to_string();
        move |why| FatalError::Cannot(what, why)
    }

    /// Prints the error, if there is one, to standard error. Returns the exit code.
    pub fn report_result(result: Result<(), FatalError>) -> ExitCode {
        let Err(failed) = result else {
            return ExitCode::SUCCESS;
        };
        eprintln!("headwater: {failed}");
        match failed {
            FatalError::Usage(_) => 2.into(),
            FatalError::Cannot(..) => 1.into(),
        }
    }
}

impl fmt::Display for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FatalError::Usage(wrong) => wrong.fmt(f),
            FatalError::Cannot(what, why) => {
                write!(f, "{what}: {}", crate::describe_io_error(why))
            }
        }
    }
}

impl std::error::Error for FatalError {}

impl From<UsageError> for FatalError {
    fn from(wrong: UsageError) -> FatalError {
        FatalError::Usage(wrong)
    }
}

/// Running servers, each with its own threads. One [`Shutdown`] ends all servers.
#[derive(Debug)]
pub struct RunningProgram {
    shutdown: Shutdown,
    /// Ends the admin port. The admin port stays open, and reports the drain, until the main port
    /// has finished.
    admin_shutdown: Shutdown,
    ports: Vec<ServedPort>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    records: Vec<Recorder>,
    /// Copies of the listeners of each port, for a successor.
    copies: Vec<(&'static str, ListenerCopies)>,
    offers_ports: bool,
    notices: Vec<String>,
}

#[derive(Debug)]
struct ServedPort {
    name: &'static str,
    addresses: Vec<SocketAddr>,
    secure: bool,
}

fn build_current_thread_runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// The name of a program's main port.
pub const MAIN: &str = "serve";

impl RunningProgram {
    /// Creates a program without servers.
    pub fn new(shutdown: Shutdown) -> RunningProgram {
        RunningProgram {
            shutdown,
            admin_shutdown: Shutdown::new(),
            ports: Vec::new(),
            threads: Vec::new(),
            records: Vec::new(),
            copies: Vec::new(),
            offers_ports: false,
            notices: Vec::new(),
        }
    }

    /// Adds a line that [`RunningProgram::announce`] prints before the addresses.
    pub fn add_notice(&mut self, line: String) {
        self.notices.push(line);
    }

    /// If `common` contains a hand-over socket, makes the program offer its ports to a successor.
    /// Only ports that are started after this call are offered.
    pub fn enable_handover(&mut self, common: &CommonSettings) {
        self.offers_ports = common.handover_socket.is_some();
    }

    /// Adds a recorder that [`RunningProgram::join`] closes. All records are then written before
    /// `join` returns.
    pub fn close_recorder_on_exit(&mut self, recorder: Option<&Recorder>) {
        self.records.extend(recorder.cloned());
    }

    /// Starts a server on a new thread (see [`Server::run`]).
    ///
    /// `name` is [`MAIN`], or the name that [`RunningProgram::announce`] prints for an additional
    /// port.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the system cannot create a thread.
    pub fn start_server<F, H, R>(
        &mut self,
        name: &'static str,
        server: Server,
        factory: F,
    ) -> Result<(), FatalError>
    where
        F: Fn(usize) -> H + Send + Sync + 'static,
        H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        self.ports.push(ServedPort {
            name,
            addresses: server.addresses().to_vec(),
            secure: server.is_secure(),
        });
        if self.offers_ports {
            let copies = server.copy_listeners();
            let copies = copies.map_err(FatalError::cannot("cannot copy a listener"))?;
            self.copies.push((name, copies));
        }
        let (shutdown, admin_shutdown) = (self.shutdown.clone(), self.admin_shutdown.clone());
        if name == ADMIN {
            self.drain_admin_on_handover(admin_shutdown.clone())?;
            return self.spawn_thread(name, move || {
                let result = server.run(factory, admin_shutdown);
                result.inspect_err(|_| shutdown.stop())
            });
        }
        self.spawn_thread(name, move || {
            let result = server.run(factory, shutdown);
            admin_shutdown.stop();
            result
        })
    }

    /// Drains the admin port together with the main port after a hand-over, because both ports then
    /// belong to the successor.
    fn drain_admin_on_handover(&mut self, admin_shutdown: Shutdown) -> Result<(), FatalError> {
        let shutdown = self.shutdown.clone();
        self.spawn_async_thread("admin-hand-over", move || async move {
            shutdown.wait_until_draining().await;
            if shutdown.is_handed_over() {
                admin_shutdown.hand_over();
            }
        })
    }

    /// Runs `work` on a new thread. The work must return when the program drains.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the system cannot create a thread.
    pub fn spawn_thread(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), FatalError> {
        let builder = std::thread::Builder::new().name(name.into());
        let thread = builder
            .spawn(work)
            .map_err(FatalError::cannot("cannot start a thread"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Runs a future on a new thread. The future must complete when the program drains.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the system cannot create a thread.
    pub fn spawn_async_thread<W, R>(
        &mut self,
        name: &'static str,
        work: W,
    ) -> Result<(), FatalError>
    where
        W: FnOnce() -> R + Send + 'static,
        R: Future<Output = ()>,
    {
        let runtime = build_current_thread_runtime().map_err(FatalError::cannot(name))?;
        self.spawn_thread(name, move || {
            runtime.block_on(async { work().await });
            Ok(())
        })
    }

    /// Calls `work` on each SIGHUP. The signal then no longer ends the process.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the system rejects the handler or cannot create a thread.
    pub fn on_hangup(&mut self, mut work: impl FnMut() + Send + 'static) -> Result<(), FatalError> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime =
            build_current_thread_runtime().map_err(FatalError::cannot("cannot handle SIGHUP"))?;
        // Installs the handler before the new thread starts. Until the handler is installed, SIGHUP
        // ends the process.
        let within = runtime.enter();
        let registered = signal(SignalKind::hangup());
        drop(within);
        let mut hangups = registered.map_err(FatalError::cannot("cannot handle SIGHUP"))?;
        let shutdown = self.shutdown.clone();
        self.spawn_thread("hangup", move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        () = shutdown.wait_until_draining() => return,
                        _ = hangups.recv() => {
                            notify_service_manager(ServiceState::Reloading);
                            work();
                            notify_service_manager(ServiceState::Ready);
                        }
                    }
                }
            });
            Ok(())
        })
    }

    /// Returns the addresses of the main port.
    pub fn main_addresses(&self) -> &[SocketAddr] {
        self.find_port(MAIN).map_or(&[], |port| &port.addresses)
    }

    /// Returns the address of the port with this name, if there is one.
    pub fn port_address(&self, name: &str) -> Option<SocketAddr> {
        self.find_port(name)?.addresses.first().copied()
    }

    fn find_port(&self, name: &str) -> Option<&ServedPort> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// Prints the addresses to standard output, as `listening on http://HOST:PORT` for the main
    /// port and `NAME on http://HOST:PORT` for each other port. Then reports to the service manager
    /// that the program is ready.
    pub fn announce(&self) {
        let mut out = io::stdout().lock();
        for line in &self.notices {
            // Ignores the error, because the parent process may have closed our standard output.
            let _ = writeln!(out, "{line}");
        }
        for port in &self.ports {
            let scheme = if port.secure { "https" } else { "http" };
            let verb = match port.name {
                MAIN => "listening",
                name => name,
            };
            for address in &port.addresses {
                // Ignores the error, because our standard output may be closed.
                let _ = writeln!(out, "{verb} on {scheme}://{address}");
            }
        }
        let _ = out.flush();
        notify_service_manager(ServiceState::Ready);
    }

    /// Returns the handle that ends the program.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Waits until all threads have finished.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when a server failed.
    pub fn join(mut self) -> Result<(), FatalError> {
        let mut result = self.notify_manager_on_drain();
        for thread in self.threads {
            let ended = thread.join();
            let ended = ended.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            result = result.and(ended);
        }
        for records in self.records {
            records.close();
        }
        result.map_err(FatalError::cannot("the server failed"))
    }

    /// Reports the start of the drain to the service manager, unless the ports are offered to a
    /// successor.
    fn notify_manager_on_drain(&mut self) -> io::Result<()> {
        // The drain may be part of a hand-over, after which the service continues in the successor.
        if self.offers_ports || !service_manager::has_service_manager() {
            return Ok(());
        }
        let shutdown = self.shutdown.clone();
        let wait = move || async move {
            shutdown.wait_until_draining().await;
            notify_service_manager(ServiceState::Stopping);
        };
        self.spawn_async_thread("service-manager", wait)
            .map_err(|error| io::Error::other(error.to_string()))
    }
}
