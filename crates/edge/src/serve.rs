//! Words to a running edge, and its end.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use http::header::HeaderValue;
use net::config::{Layers, Sources, Wrong};
use net::metrics::Metrics;
use net::program::MAIN;
use net::record::Recorder;
use net::upstream::Upstream;
use net::{Failed, Limits, Listen, Running, Server, Shutdown};
use store::cache::{Flights, Memory};

use crate::Edge;
use crate::admin;
use crate::config::{KNOBS, Settings, TABLES};
use crate::fetch::Flying;
use crate::observe::Observer;
use crate::origins::Origins;
use crate::reason::NAME;
use crate::steer::Steer;

/// `headwater edge`: reads settings, relays until told to end, and says how it went.
pub fn edge(flags: &ArgMatches) -> ExitCode {
    Failed::exit(run(flags))
}

fn run(flags: &ArgMatches) -> Result<(), Failed> {
    if let Some(("explain", flags)) = flags.subcommand() {
        return Ok(crate::explain::explain(flags)?);
    }
    let sources = Sources {
        knobs: KNOBS,
        tables: TABLES,
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    };
    let layers = Layers::new(&sources)?;
    if layers.print {
        // Whoever reads it may have seen enough (`| head`).
        let _ = write!(io::stdout(), "{layers}");
        return Ok(());
    }
    let settings = Settings::new(&layers)?;
    settings.common.start_log()?;
    let shutdown = Shutdown::on_signals().map_err(Failed::cannot("signals"))?;
    let running = start(settings, shutdown)?;
    running.announce();
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
        tls: settings.common.read_tls().map_err(Failed::cannot("TLS"))?,
        limits: settings.common.limits.clone(),
        workers,
        metrics: metrics.clone(),
        ..Listen::default()
    };
    let server = Server::bind(listen).map_err(Failed::cannot(settings.listen.join(", ")))?;
    let admin = settings.admin.clone();
    let edge = Arc::new(build(settings, workers, &metrics, &shutdown)?);
    let admin = admin.map(|(listen, token)| bind_admin(&listen, &token));
    let admin = admin.transpose()?;
    let mut running = Running::new(shutdown);
    if let Some((server, token)) = admin {
        let edge = edge.clone();
        running.serve(ADMIN, server, move |_| {
            let (edge, token) = (edge.clone(), token.clone());
            move |request, _| admin::answer(edge.clone(), token.clone(), request)
        })?;
    }
    running.serve(MAIN, server, move |worker| {
        let edge = edge.clone();
        move |request, conn| edge.clone().answer(worker, request, conn)
    })?;
    Ok(running)
}

/// What the admin port is called, in the log and where it is announced.
pub const ADMIN: &str = "admin";

/// A port of its own with few connections, and the token that it asks for.
fn bind_admin(listen: &str, token: &Path) -> Result<(Server, Arc<str>), Failed> {
    let name = token.display().to_string();
    let text = std::fs::read_to_string(token).map_err(Failed::cannot(&name))?;
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
    Ok((server.map_err(Failed::cannot(listen))?, text.into()))
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
        Recorder::open(path, metrics).map_err(|e| Failed::cannot(path.display())(e))
    };
    let recorder = settings.common.records.as_ref().map(open).transpose()?;
    let instance = format!("{NAME}-{:016x}", RandomState::new().build_hasher().finish());
    Ok(Edge {
        memory: Memory::new(settings.memory_bytes),
        flights: Flights::default(),
        flying: Flying::default(),
        origins: Origins::new(upstream, metrics),
        steer: Steer::new(&settings, metrics, recorder.clone()),
        observer: Observer::new(metrics.clone(), recorder),
        shutdown: shutdown.clone(),
        instance: HeaderValue::try_from(instance)
            .map_err(|e| Failed::cannot("a name")(io::Error::other(e)))?,
        settings,
    })
}
