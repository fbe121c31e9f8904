//! Words to a running edge, and its end.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;

use clap::ArgMatches;
use http::header::HeaderValue;
use net::config::{Layers, Sources, Wrong};
use net::metrics::Metrics;
use net::record::Recorder;
use net::upstream::Upstream;
use net::{Limits, Listen, Server, Shutdown};
use store::cache::{Flights, Memory};

use crate::Edge;
use crate::admin;
use crate::config::{KNOBS, Settings, TABLES};
use crate::observe::Observer;
use crate::origins::Origins;
use crate::reason::NAME;
use crate::steer::Steer;

/// Why there is no edge.
#[derive(Debug)]
pub enum Failed {
    /// It was asked for wrongly: exit code 2.
    Usage(Wrong),
    /// It could not be: what, and why. Exit code 1.
    Cannot(String, io::Error),
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

/// An edge that runs.
pub struct Running {
    addresses: Vec<SocketAddr>,
    secure: bool,
    shutdown: Shutdown,
    threads: Vec<JoinHandle<io::Result<()>>>,
    admin: Option<SocketAddr>,
}

/// `headwater edge`: reads settings, relays until told to end, and says how it went.
pub fn edge(flags: &ArgMatches) -> ExitCode {
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("headwater: {failed}");
            ExitCode::from(if matches!(failed, Failed::Usage(_)) {
                2
            } else {
                1
            })
        }
    }
}

fn run(flags: &ArgMatches) -> Result<(), Failed> {
    if let Some(("explain", flags)) = flags.subcommand() {
        return crate::explain::explain(flags).map_err(Failed::Usage);
    }
    let sources = Sources {
        knobs: KNOBS,
        tables: TABLES,
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    };
    let layers = Layers::new(&sources).map_err(Failed::Usage)?;
    if layers.print {
        // Whoever reads it may have seen enough (`| head`).
        let _ = write!(io::stdout(), "{layers}");
        return Ok(());
    }
    let settings = Settings::new(&layers).map_err(Failed::Usage)?;
    settings.common.start_log().map_err(Failed::Usage)?;
    let shutdown = Shutdown::on_signals().map_err(cannot("signals"))?;
    let running = start(settings, shutdown)?;
    let mut out = io::stdout().lock();
    for url in running.urls() {
        // Whoever started us may not care, and have closed it.
        let _ = writeln!(out, "listening on {url}");
    }
    if let Some(address) = running.admin() {
        let _ = writeln!(out, "admin on http://{address}");
    }
    let _ = out.flush();
    drop(out);
    running.join()
}

/// Starts an edge, which serves from now on on threads of its own.
///
/// # Errors
/// [`Failed`] when the origin is none, or a certificate, a file or an address cannot be had.
pub fn start(settings: Settings, shutdown: Shutdown) -> Result<Running, Failed> {
    if let Err(error) = net::server::raise_descriptor_limit() {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let workers = match settings.common.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        given => given,
    };
    let metrics = Metrics::default();
    let listen = Listen {
        addresses: settings.listen.clone(),
        tls: settings.common.read_tls().map_err(cannot("TLS"))?,
        limits: settings.common.limits.clone(),
        workers,
        metrics: metrics.clone(),
        ..Listen::default()
    };
    let server = Server::bind(listen).map_err(cannot(&settings.listen.join(", ")))?;
    let (addresses, secure) = (server.addresses().to_vec(), server.secure());
    let admin = settings.admin.clone();
    let edge = Arc::new(build(settings, workers, &metrics, &shutdown)?);
    let admin = admin.map(|(listen, token)| bind_admin(&listen, &token));
    let admin = admin.transpose()?;
    let admin_address = admin
        .as_ref()
        .and_then(|(server, _)| server.addresses().first().copied());
    let mut threads = Vec::new();
    if let Some((server, token)) = admin {
        let (edge, told) = (edge.clone(), shutdown.clone());
        threads.push(thread("admin", move || {
            let answer = |_| {
                let (edge, token) = (edge.clone(), token.clone());
                move |request, _| admin::answer(edge.clone(), token.clone(), request)
            };
            server.run(answer, told)
        })?);
    }
    let told = shutdown.clone();
    threads.push(thread("serve", move || {
        let answer = |worker| {
            let edge = edge.clone();
            move |request, conn| edge.clone().answer(worker, request, conn)
        };
        server.run(answer, told)
    })?);
    Ok(Running {
        addresses,
        secure,
        shutdown,
        threads,
        admin: admin_address,
    })
}

fn thread(
    name: &str,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<io::Result<()>>, Failed> {
    let builder = std::thread::Builder::new().name(name.into());
    builder.spawn(work).map_err(cannot("a thread"))
}

/// A port of its own with few connections, and the token that it asks for.
fn bind_admin(listen: &str, token: &Path) -> Result<(Server, Arc<str>), Failed> {
    let name = token.display().to_string();
    let text = std::fs::read_to_string(token).map_err(cannot(&name))?;
    let text = text.trim();
    if text.len() < TOKEN_BYTES_MIN {
        let what = format!("{name}: a token has {TOKEN_BYTES_MIN} characters or more");
        return Err(Failed::Usage(Wrong(what)));
    }
    let server = Server::bind(Listen {
        addresses: vec![listen.to_owned()],
        workers: 1,
        limits: Limits {
            connections_max: 64,
            ..Limits::default()
        },
        ..Listen::default()
    });
    Ok((server.map_err(cannot(listen))?, text.into()))
}

/// Shorter tokens could be guessed.
const TOKEN_BYTES_MIN: usize = 16;

fn build(
    settings: Settings,
    workers: usize,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> Result<Edge, Failed> {
    let upstream = Upstream::new(&settings.origin, workers, settings.patience.clone());
    let upstream = upstream.map_err(|e| Failed::Usage(Wrong(format!("origin: {e}"))))?;
    let open = |path: &std::path::PathBuf| {
        Recorder::open(path, metrics).map_err(|e| cannot(&path.display().to_string())(e))
    };
    let recorder = settings.common.records.as_ref().map(open).transpose()?;
    let instance = format!("{NAME}-{:016x}", RandomState::new().build_hasher().finish());
    Ok(Edge {
        memory: Memory::new(settings.memory_bytes),
        flights: Flights::default(),
        origins: Origins::new(upstream, metrics),
        steer: Steer::new(&settings, metrics, recorder.clone()),
        observer: Observer::new(metrics.clone(), recorder),
        shutdown: shutdown.clone(),
        instance: HeaderValue::try_from(instance)
            .map_err(|e| cannot("a name")(io::Error::other(e)))?,
        settings,
    })
}

fn cannot(what: &str) -> impl FnOnce(io::Error) -> Failed {
    let what = what.to_owned();
    move |why| Failed::Cannot(what, why)
}

impl Running {
    /// Where it listens, as URLs.
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.secure { "https" } else { "http" };
        let url = |address| format!("{scheme}://{address}");
        self.addresses.iter().map(url).collect()
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where the admin port listens, if there is one.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Tells it to end.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Waits until it has ended.
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
        result.map_err(cannot("the server"))
    }
}
