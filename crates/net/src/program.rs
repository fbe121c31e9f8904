//! A server as a program: its ports and threads while it runs, and how it ends.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread::JoinHandle;

use http::{Request, Response};

use crate::body::Incoming;
use crate::config::Wrong;
use crate::record::Recorder;
use crate::{Body, Conn, Server, Shutdown};

mod certificates;

/// Why there is no server, or no more of it.
#[derive(Debug)]
pub enum Failed {
    /// It was asked for wrongly: exit code 2.
    Usage(Wrong),
    /// It could not be: what, and why. Exit code 1.
    Cannot(String, io::Error),
}

impl Failed {
    /// For `map_err`: this could not be.
    pub fn cannot(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Failed {
        let what = what.to_string();
        move |why| Failed::Cannot(what, why)
    }

    /// Says on standard error what failed, and gives the exit code for it.
    pub fn exit(result: Result<(), Failed>) -> ExitCode {
        let Err(failed) = result else {
            return ExitCode::SUCCESS;
        };
        eprintln!("headwater: {failed}");
        match failed {
            Failed::Usage(_) => 2.into(),
            Failed::Cannot(..) => 1.into(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Usage(wrong) => wrong.fmt(f),
            Failed::Cannot(what, why) => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for Failed {}

impl From<Wrong> for Failed {
    fn from(wrong: Wrong) -> Failed {
        Failed::Usage(wrong)
    }
}

/// Servers that run, each on threads of its own; one word ends them all.
#[derive(Debug)]
pub struct Running {
    shutdown: Shutdown,
    ports: Vec<Port>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    records: Option<Recorder>,
}

#[derive(Debug)]
struct Port {
    name: &'static str,
    addresses: Vec<SocketAddr>,
    secure: bool,
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// The name of the port that a program is there for.
pub const MAIN: &str = "serve";

impl Running {
    /// Nothing runs yet.
    pub fn new(shutdown: Shutdown) -> Running {
        Running {
            shutdown,
            ports: Vec::new(),
            threads: Vec::new(),
            records: None,
        }
    }

    /// What is recorded: all of it is written when [`Running::join`] returns.
    pub fn records(&mut self, recorder: Option<&Recorder>) {
        self.records = recorder.cloned();
    }

    /// Serves from now on; see [`Server::run`]. `name` is [`MAIN`], or how [`Running::announce`]
    /// calls a port beside it.
    ///
    /// # Errors
    /// [`Failed::Cannot`] when the system gives no thread.
    pub fn serve<F, H, R>(
        &mut self,
        name: &'static str,
        server: Server,
        factory: F,
    ) -> Result<(), Failed>
    where
        F: Fn(usize) -> H + Send + Sync + 'static,
        H: Fn(Request<Incoming>, Conn) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        self.ports.push(Port {
            name,
            addresses: server.addresses().to_vec(),
            secure: server.secure(),
        });
        let told = self.shutdown.clone();
        self.work(name, move || server.run(factory, told))
    }

    /// Something else that goes on until the end is asked for.
    ///
    /// # Errors
    /// [`Failed::Cannot`] when the system gives no thread.
    pub fn work(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), Failed> {
        let builder = std::thread::Builder::new().name(name.into());
        let thread = builder.spawn(work).map_err(Failed::cannot("a thread"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// The same as a future on a thread of its own, which must end when a drain begins.
    ///
    /// # Errors
    /// [`Failed::Cannot`] when the system gives no thread.
    pub fn until_drained<W, R>(&mut self, name: &'static str, work: W) -> Result<(), Failed>
    where
        W: FnOnce() -> R + Send + 'static,
        R: Future<Output = ()>,
    {
        let runtime = runtime().map_err(Failed::cannot(name))?;
        self.work(name, move || {
            runtime.block_on(async { work().await });
            Ok(())
        })
    }

    /// Calls `work` at each SIGHUP, which from now on does not end the process.
    ///
    /// # Errors
    /// [`Failed::Cannot`] when the system takes no handler or gives no thread.
    pub fn on_hangup(&mut self, mut work: impl FnMut() + Send + 'static) -> Result<(), Failed> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = runtime().map_err(Failed::cannot("SIGHUP"))?;
        // Here, and not on the thread: until it is heard, it ends the process.
        let within = runtime.enter();
        let heard = signal(SignalKind::hangup());
        drop(within);
        let mut hangups = heard.map_err(Failed::cannot("SIGHUP"))?;
        let shutdown = self.shutdown.clone();
        self.work("hangup", move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        () = shutdown.draining() => return,
                        _ = hangups.recv() => work(),
                    }
                }
            });
            Ok(())
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.port(MAIN).map_or(&[], |port| &port.addresses)
    }

    /// Where the port of this name listens, if there is one.
    pub fn beside(&self, name: &str) -> Option<SocketAddr> {
        self.port(name)?.addresses.first().copied()
    }

    fn port(&self, name: &str) -> Option<&Port> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// Says on standard output where it listens: `listening on http://HOST:PORT`, and for other
    /// ports `NAME on http://HOST:PORT`.
    pub fn announce(&self) {
        let mut out = io::stdout().lock();
        for port in &self.ports {
            let scheme = if port.secure { "https" } else { "http" };
            let verb = match port.name {
                MAIN => "listening",
                name => name,
            };
            for address in &port.addresses {
                // Whoever started us may not care, and have closed it.
                let _ = writeln!(out, "{verb} on {scheme}://{address}");
            }
        }
        let _ = out.flush();
    }

    /// Tells it to end.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Waits until all has ended.
    ///
    /// # Errors
    /// [`Failed::Cannot`] when it ended because something failed.
    pub fn join(self) -> Result<(), Failed> {
        let mut result = Ok(());
        for thread in self.threads {
            let ended = thread.join();
            let ended = ended.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            result = result.and(ended);
        }
        if let Some(records) = self.records {
            records.close();
        }
        result.map_err(Failed::cannot("the server"))
    }
}
