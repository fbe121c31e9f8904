//! Words to a running edge.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use http::header::HeaderValue;
use net::config::{Layers, Sources, Wrong};
use net::metrics::Metrics;
use net::program::MAIN;
use net::record::Recorder;
use net::{Failed, Limits, Listen, Running, Server, Shutdown};
use store::cache::Flights;

use crate::Edge;
use crate::admin::{self, Admin};
use crate::config::{KNOBS, Settings, TABLES};
use crate::disk;
use crate::fetch::Flying;
use crate::live::Live;
use crate::observe::Observer;
use crate::origins::{Counts, Origins};
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
    let layers = layers(flags)?;
    if layers.print {
        // Whoever reads it may have seen enough (`| head`).
        let _ = write!(io::stdout(), "{layers}");
        return Ok(());
    }
    Settings::new(&layers)?.common.start_log()?;
    let shutdown = Shutdown::on_signals().map_err(Failed::cannot("signals"))?;
    let flags = flags.clone();
    // Flags stay as they were given; the environment and the file may say something else by then.
    let running = start(move || Settings::new(&self::layers(&flags)?), shutdown)?;
    running.announce();
    running.join()
}

fn layers(flags: &ArgMatches) -> Result<Layers, Wrong> {
    Layers::new(&Sources {
        knobs: KNOBS,
        tables: TABLES,
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    })
}

/// Starts an edge, which serves from now on on threads of its own. `read` is called once now, and
/// again at each reload: at SIGHUP, and when the admin port is asked to.
///
/// # Errors
/// [`Failed`] when the settings mean nothing, or a certificate, a file or an address cannot be had.
pub fn start(
    read: impl Fn() -> Result<Settings, Wrong> + Send + Sync + 'static,
    shutdown: Shutdown,
) -> Result<Running, Failed> {
    if let Err(error) = net::server::raise_descriptor_limit() {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let settings = read()?;
    let workers = match settings.common.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        given => given,
    };
    let metrics = Metrics::default();
    let listen = Listen {
        addresses: settings.listen.clone(),
        tls: settings.common.read_tls().map_err(Failed::cannot("TLS"))?,
        limits: settings.common.limits.clone(),
        trust: settings.common.trust.clone(),
        near_rtt: settings.common.near_rtt,
        workers,
        metrics: metrics.clone(),
        ..Listen::default()
    };
    let server = Server::bind(listen).map_err(Failed::cannot(settings.listen.join(", ")))?;
    let admin = bind_admin(&settings)?;
    let mut running = Running::new(shutdown.clone());
    running.follow_tls(&settings.common, server.certificates())?;
    let edge = build(settings, workers, &metrics, &shutdown)?;
    running.records(edge.observer.recorder());
    let live = Arc::new(Live::new(edge, Box::new(read)));
    if let Some((port, token)) = admin {
        let admin = Arc::new(Admin {
            live: live.clone(),
            token,
            connections: server.connections(),
            // The workers' own come first.
            worker: workers,
            since: Instant::now(),
        });
        running.serve(ADMIN, port, move |_| {
            let admin = admin.clone();
            move |request, conn| admin::answer(admin.clone(), request, conn)
        })?;
    }
    watch_health(&mut running, &live, workers + 1)?;
    let told = live.clone();
    running.on_hangup(move || {
        // Said in the log.
        let _ = told.reload();
    })?;
    running.serve(MAIN, server, move |worker| {
        let live = live.clone();
        move |request, conn| live.now().answer(worker, request, conn)
    })?;
    Ok(running)
}

/// What the admin port is called, in the log and where it is announced.
pub const ADMIN: &str = "admin";

/// Who uses connections to origins besides the workers: the admin port, and probes.
const WORKERS_BESIDE: usize = 2;

/// Asks the origins how they are, as often as the settings of the day say.
fn watch_health(running: &mut Running, live: &Arc<Live>, worker: usize) -> Result<(), Failed> {
    let (live, shutdown) = (live.clone(), running.shutdown().clone());
    running.until_drained("health", move || async move {
        loop {
            let edge = live.now();
            tokio::select! {
                () = shutdown.draining() => return,
                () = edge.origins.probe(worker) => {}
            }
            tokio::select! {
                () = shutdown.draining() => return,
                () = tokio::time::sleep(edge.settings.health_interval) => {}
            }
        }
    })
}

/// A port of its own with few connections, and the token that it asks for.
fn bind_admin(settings: &Settings) -> Result<Option<(Server, Arc<str>)>, Failed> {
    let Some((listen, token)) = &settings.admin else {
        return Ok(None);
    };
    let text = net::token::read(token).map_err(|error| Failed::Usage(Wrong(error.to_string())))?;
    let server = Server::bind(Listen {
        addresses: vec![listen.clone()],
        workers: 1,
        limits: Limits {
            connections_max: 64,
            // So that nobody without the token takes all of them for long.
            idle_timeout: Duration::from_secs(15),
            // It says "not ready" as long as the other port still takes requests.
            announce: settings.common.limits.announce,
            drain_timeout: settings.common.limits.drain_timeout,
            ..Limits::default()
        },
        ..Listen::default()
    });
    Ok(Some((server.map_err(Failed::cannot(listen))?, text)))
}

fn build(
    settings: Settings,
    workers: usize,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> Result<Edge, Failed> {
    let counts = Counts::new(metrics, workers + WORKERS_BESIDE);
    let origins = Origins::new(&settings.pools, &settings.treatment, counts);
    let origins = origins.map_err(|e| Failed::Usage(Wrong(format!("origin: {e}"))))?;
    let open = |path: &std::path::PathBuf| {
        Recorder::open(path, metrics).map_err(Failed::cannot(path.display()))
    };
    let recorder = settings.common.records.as_ref().map(open).transpose()?;
    let instance = format!("{NAME}-{:016x}", RandomState::new().build_hasher().finish());
    let (memory, disk) = disk::tiers(&settings, metrics)?;
    Ok(Edge {
        memory,
        disk,
        flights: Flights::default(),
        flying: Flying::default(),
        arena: Arc::new(store::Arena::new(settings.memory_bytes)),
        origins,
        steer: Steer::new(&settings, metrics, recorder.clone()),
        observer: Arc::new(Observer::new(metrics.clone(), recorder)),
        shutdown: shutdown.clone(),
        instance: HeaderValue::try_from(instance)
            .map_err(|e| Failed::cannot("a name")(io::Error::other(e)))?,
        settings,
    })
}
