//! Start of the edge: settings, ports, threads and reloads.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use http::header::HeaderValue;
use net::admin_port::{ADMIN, bind_admin_port};
use net::config::{SettingLayers, UsageError};
use net::lifecycle::{InheritedPorts, MAIN};
use net::metrics::Metrics;
use net::server::ConnectionInspector;
use net::{
    FatalError, OverloadLevel, OverloadManager, RunningProgram, Server, ServerOptions, Shutdown,
};
use store::cache::FetchTable;
use trace::{CollectorHeaders, RequestTracing, Tracer};

use crate::Edge;
use crate::admin::{self, AdminPort};
use crate::apply_rules::RuleApplier;
use crate::cache_outcome::NAME;
use crate::config::{EdgeSettings, SETTINGS, TABLES};
use crate::disk::{self, DiskCache};
use crate::fetch::InFlightBytes;
use crate::origins::{EdgeCredentials, OriginClient, OriginMetrics};
use crate::reload::ReloadableEdge;
use crate::telemetry::RequestTelemetry;

/// Runs `headwater edge`: reads the settings, serves until the process receives a stop signal, and
/// returns the exit code.
pub fn run_edge_command(flags: &ArgMatches) -> ExitCode {
    FatalError::report_result(run_edge(flags))
}

fn run_edge(flags: &ArgMatches) -> Result<(), FatalError> {
    if let Some(("explain", flags)) = flags.subcommand() {
        return Ok(crate::explain_rules::print_rule_verdicts(flags)?);
    }
    #[cfg(feature = "nats")]
    if let Some((name, flags)) = flags.subcommand()
        && let Some(published) = crate::fleet::run_fleet_command(name, flags)
    {
        return published;
    }
    let layers = SettingLayers::read_settings(SETTINGS, TABLES, flags)?;
    if layers.print {
        // Ignores the error, because the reader may have closed the pipe (`| head`).
        let _ = write!(io::stdout(), "{layers}");
        return Ok(());
    }
    EdgeSettings::from_layers(&layers)?.common.start_log()?;
    let shutdown = Shutdown::on_signals().map_err(FatalError::cannot("cannot handle signals"))?;
    let flags = flags.clone();
    // A reload uses the same flags, but reads the environment and the settings file again.
    let running = start_edge(
        move || EdgeSettings::from_layers(&SettingLayers::read_settings(SETTINGS, TABLES, &flags)?),
        shutdown,
    )?;
    running.announce();
    running.join()
}

/// Starts an edge on new threads. Calls `read` to get the settings, now and at each reload (SIGHUP,
/// or a request to the admin port).
///
/// # Errors
/// [`FatalError`] when the settings are invalid, or when a certificate, file or address is
/// unavailable.
pub fn start_edge(
    read: impl Fn() -> Result<EdgeSettings, UsageError> + Send + Sync + 'static,
    shutdown: Shutdown,
) -> Result<RunningProgram, FatalError> {
    if let Err(error) = net::server::raise_descriptor_limit() {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let settings = read()?;
    let workers = match settings.common.workers {
        0 => net::resources::default_workers(),
        given => given,
    };
    let metrics = Metrics::of_process(PROGRAM);
    shutdown.register_metrics(&metrics);
    let overload = OverloadManager::start_memory_monitor(settings.common.memory_limit(), &metrics)
        .map_err(FatalError::cannot("cannot watch the memory"))?;
    let listen = ServerOptions {
        addresses: settings.listen.clone(),
        workers,
        overload: overload.clone(),
        // If there is an admin port, it serves these paths, and the main port does not.
        essential_paths: match settings.admin {
            Some(_) => &[],
            None => &["/healthz", "/readyz", "/metrics"],
        },
        metrics: metrics.clone(),
        ..settings
            .common
            .server_options()
            .map_err(FatalError::cannot("TLS"))?
    };
    #[cfg(feature = "nats")]
    let nats = settings.nats.clone();
    let handover_socket = settings.common.handover_socket.clone();
    let mut inherited = InheritedPorts::take_inherited_ports(PROGRAM, handover_socket.as_deref())?;
    let server = Server::bind_inherited(listen, inherited.take_port(MAIN));
    let server = server.map_err(FatalError::cannot("--listen"))?;
    let admin = bind_admin_port(settings.admin.as_ref(), inherited.take_port(ADMIN))?;
    let mut running = RunningProgram::new(shutdown.clone());
    running.enable_handover(&settings.common);
    running.watch_tls_files(&settings.common, server.certificates())?;
    let replaces = inherited.has_predecessor();
    let edge = build_edge(settings, workers, &metrics, &shutdown, overload, replaces)?;
    running.close_recorder_on_exit(edge.telemetry.recorder());
    running.close_recorder_on_exit(edge.collector.as_ref().and_then(|c| c.recorder()));
    edge.origins
        .credentials()
        .clone()
        .follow_files(&mut running)?;
    let disk = edge.disk.clone();
    let live = Arc::new(ReloadableEdge::new(edge, Box::new(read)));
    if let Some(bound) = admin {
        serve_admin_port(&mut running, &live, bound, server.connections(), workers)?;
    }
    start_health_probes(&mut running, &live, workers + 1)?;
    start_resolutions(&mut running, &live)?;
    #[cfg(feature = "nats")]
    crate::fleet::start_fleet_commands(&mut running, &live, nats, &metrics, workers + 2)?;
    let reload_target = live.clone();
    running.on_hangup(move || {
        // `reload_settings` logs the error.
        let _ = reload_target.reload_settings();
    })?;
    running.start_server(MAIN, server, move |worker| {
        let live = live.clone();
        move |request, conn| live.current_edge().handle_request(worker, request, conn)
    })?;
    open_disk_later(&mut running, &disk)?;
    if handover_socket.is_some() {
        release_disk_to_successor(&mut running, &disk)?;
    }
    running.replace_predecessor(PROGRAM, handover_socket.as_deref(), inherited)?;
    Ok(running)
}

/// Starts the admin port. `worker` is the index of the port's own pool of upstream connections.
/// The lower indexes belong to the worker threads.
fn serve_admin_port(
    running: &mut RunningProgram,
    edge: &Arc<ReloadableEdge>,
    (port, token): (Server, Arc<str>),
    connections: ConnectionInspector,
    worker: usize,
) -> Result<(), FatalError> {
    let admin = Arc::new(AdminPort {
        edge: edge.clone(),
        token,
        connections,
        worker,
        started_at: Instant::now(),
    });
    running.start_server(ADMIN, port, move |_| {
        let admin = admin.clone();
        move |request, conn| admin::handle_admin_request(admin.clone(), request, conn)
    })
}

/// Name of the program. In a handover, the predecessor refuses a successor with another name.
const PROGRAM: &str = "edge";

/// Number of users of upstream connections besides the worker threads: the admin port, the health
/// probes, and the fleet commands from NATS.
const WORKERS_BESIDE: usize = 3;

/// Interval at which the edge closes idle upstream connections that are no longer usable.
const IDLE_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Starts the thread that probes the origins and closes idle connections that are no longer usable.
fn start_health_probes(
    running: &mut RunningProgram,
    live: &Arc<ReloadableEdge>,
    worker: usize,
) -> Result<(), FatalError> {
    let (live, shutdown) = (live.clone(), running.shutdown().clone());
    running.spawn_async_thread("health", move || async move {
        tokio::select! {
            () = shutdown.wait_until_draining() => {}
            () = probe_periodically(&live, worker) => {}
            () = sweep_periodically(&live) => {}
        }
    })
}

/// Probes the origins at the interval of the current settings. Never returns.
async fn probe_periodically(live: &ReloadableEdge, worker: usize) {
    loop {
        let edge = live.current_edge();
        edge.origins.probe_origins(worker).await;
        tokio::time::sleep(edge.settings.health_interval).await;
    }
}

/// Closes idle upstream connections that are no longer usable. Never returns.
async fn sweep_periodically(live: &ReloadableEdge) {
    loop {
        tokio::time::sleep(IDLE_SWEEP_INTERVAL).await;
        live.current_edge().origins.sweep_idle_connections();
    }
}

/// Starts the task that resolves origins in DNS, at the interval of the current settings and after
/// each reload.
fn start_resolutions(
    running: &mut RunningProgram,
    live: &Arc<ReloadableEdge>,
) -> Result<(), FatalError> {
    let (live, shutdown) = (live.clone(), running.shutdown().clone());
    running.spawn_async_thread("resolve", move || async move {
        loop {
            let edge = live.current_edge();
            tokio::select! {
                () = shutdown.wait_until_draining() => return,
                () = edge.origins.refresh_members(&edge.settings.dns_servers) => {}
            }
            tokio::select! {
                () = shutdown.wait_until_draining() => return,
                () = live.wait_until_reloaded() => {}
                () = tokio::time::sleep(edge.settings.dns_interval) => {}
            }
        }
    })
}

/// Interval at which a successor process tries to open the disk tier's folder, which its
/// predecessor may still use.
const DISK_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Opens the disk tier when the predecessor process has released it or has exited.
fn open_disk_later(running: &mut RunningProgram, disk: &Arc<DiskCache>) -> Result<(), FatalError> {
    if !disk.is_unopened() {
        return Ok(());
    }
    let (disk, shutdown) = (disk.clone(), running.shutdown().clone());
    running.spawn_async_thread("open-disk", move || async move {
        while !disk.try_open_tier() {
            tokio::select! {
                () = shutdown.wait_until_draining() => return,
                () = tokio::time::sleep(DISK_RETRY_INTERVAL) => {}
            }
        }
    })
}

/// Releases the disk tier to a successor process when the drain starts. The drain may take minutes.
/// Without the disk tier, the successor would fetch objects from the origin although they are on
/// disk.
fn release_disk_to_successor(
    running: &mut RunningProgram,
    disk: &Arc<DiskCache>,
) -> Result<(), FatalError> {
    let (disk, shutdown) = (disk.clone(), running.shutdown().clone());
    running.spawn_async_thread("release-disk", move || async move {
        shutdown.wait_until_draining().await;
        if shutdown.is_handed_over() {
            disk.flush_and_release();
        }
    })
}

fn start_tracing(settings: &EdgeSettings) -> Result<Option<RequestTracing>, FatalError> {
    let tracing = &settings.common.tracing;
    let headers = tracing
        .otlp_headers
        .clone()
        .map(CollectorHeaders::from_file);
    let headers = headers.transpose();
    let headers = headers.map_err(FatalError::cannot("--otlp-headers-file"))?;
    let ratio = tracing.sample_ratio();
    let start = |url: &String| Tracer::start_export(url, headers, "headwater-edge", ratio);
    let tracer = tracing.otlp_endpoint.as_ref().map(start).transpose();
    let tracer = tracer.map_err(FatalError::cannot("--otlp-endpoint"))?;
    let timing = tracing.read_timing_token();
    let timing = timing.map_err(FatalError::cannot("--server-timing-token-file"))?;
    let timing =
        timing.map(|token| Box::new(move |headers: &_| token.has_required_token(headers)) as _);
    Ok(RequestTracing::new(tracer, timing))
}

pub(crate) fn build_edge(
    settings: EdgeSettings,
    workers: usize,
    metrics: &Metrics,
    shutdown: &Shutdown,
    overload: OverloadManager,
    replaces: bool,
) -> Result<Edge, FatalError> {
    let counts = OriginMetrics::new(metrics, workers + WORKERS_BESIDE);
    let credentials = EdgeCredentials::read_credentials(&settings)?;
    let origins = OriginClient::new(&settings.pools, &settings.treatment, counts, credentials);
    let origins = origins.map_err(|e| FatalError::Usage(UsageError(format!("origin: {e}"))))?;
    let tracing = start_tracing(&settings)?;
    let recorder = settings.common.open_recorder(metrics);
    let recorder = recorder.map_err(FatalError::cannot("--records"))?;
    let collector = settings.common.open_collector(metrics, recorder.as_ref());
    let collector = collector.map_err(FatalError::cannot("--cmcd-records"))?;
    let instance = format!("{NAME}-{:016x}", RandomState::new().build_hasher().finish());
    let (memory, disk) = disk::open_memory_and_disk(&settings, metrics, replaces)?;
    let shrinking = Arc::downgrade(&memory);
    overload.add_relief_action(move |level| match (level, shrinking.upgrade()) {
        (OverloadLevel::Normal, Some(memory)) => memory.restore_capacity(),
        (_, Some(memory)) => memory.shrink(),
        (_, None) => {}
    });
    Ok(Edge {
        memory,
        disk,
        flights: FetchTable::default(),
        in_flight_bytes: InFlightBytes::default(),
        arena: Arc::new(store::Arena::new(settings.memory_bytes)),
        origins,
        rules: RuleApplier::new(&settings, metrics, recorder.clone()),
        collector,
        telemetry: Arc::new(RequestTelemetry::new(metrics.clone(), recorder, tracing)),
        shutdown: shutdown.clone(),
        overload,
        loop_token: HeaderValue::try_from(instance)
            .map_err(|e| FatalError::cannot("instance name")(io::Error::other(e)))?,
        settings,
    })
}
