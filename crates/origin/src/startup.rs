//! Starts `headwater serve`. Reads the arguments and starts the server.

use crate::admin::{self, AdminState};
use crate::config::{IndexCacheStorage, SETTINGS, ServeSettings, SettingLayers};
use crate::demo_film::DemoFilm;
use crate::drm::license_origins::list_license_origins;
use crate::drm::open_drm::{open_library_drm, read_secret};
use crate::request_handler::RequestHandler;
use crate::response::library_list::CachedLibraryList;
use crate::response::response_cache::manifests::ManifestCache;
use crate::response::response_cache::segments::SegmentCache;
use crate::response::static_files::StaticFiles;
use crate::response::web_assets::WebAssets;
use crate::segment::hls_aes128::MasterSecret;
use crate::telemetry::{self, Telemetry};
use crate::title::catalog::Catalog;
use crate::title::index_cache::IndexCache;
use crate::title::opened_title::{LibraryPackagingRules, TargetSegmentDurations};
use crate::title::sidecar_name::TEXT_SUFFIXES;
use crate::title::stores::MediaStores;
use clap::ArgMatches;
use net::admin_port::{ADMIN, bind_admin_port};
use net::edge_secret::EdgeSecret;
use net::lifecycle::{InheritedPorts, MAIN};
use net::metrics::Metrics;
use net::record::Recorder;
use net::server::ConnectionInspector;
use net::{
    FatalError, OverloadLevel, OverloadManager, RunningProgram, Server, ServerOptions, Shutdown,
};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::Store;
use trace::{CollectorHeaders, RequestTracing, Tracer};

/// Name of this program. A process can take over ports only from a process with the same program
/// name.
const PROGRAM: &str = "serve";

/// For this time after a check, a path is assumed to lead to the same files. This value is for
/// local storage, where a check costs little.
const RECHECK_AFTER: Duration = Duration::from_secs(1);
/// Like [`RECHECK_AFTER`], but for storage on a network. Every read from the storage verifies the
/// indexed version. After a title has been replaced, the old version is therefore served only from
/// caches, and for at most this time.
const RECHECK_AFTER_REMOTE: Duration = Duration::from_secs(60);

/// Runs `headwater serve` until a signal stops it, and returns the exit status.
pub fn serve(flags: &ArgMatches) -> ExitCode {
    FatalError::report_result(run_server(flags))
}

fn run_server(flags: &ArgMatches) -> Result<(), FatalError> {
    let layers = SettingLayers::read_settings(SETTINGS, &[], flags)?;
    let settings = ServeSettings::new(&layers)?;
    if layers.print {
        // Ignores a write error, because the reader may have closed the pipe.
        let _ = write!(io::stdout().lock(), "{layers}");
        return Ok(());
    }
    settings.common.start_log()?;
    let shutdown = Shutdown::on_signals().map_err(FatalError::cannot("cannot handle signals"))?;
    let running = start(&settings, shutdown)?;
    running.announce();
    running.join()
}

/// Starts a server on its own threads.
///
/// # Errors
/// Returns a [`FatalError`] if the library, a certificate or an address is unavailable.
pub fn start(settings: &ServeSettings, shutdown: Shutdown) -> Result<RunningProgram, FatalError> {
    if let Err(error) = net::server::raise_descriptor_limit() {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let demo = match settings.source {
        Some(_) => None,
        None => Some(DemoFilm::new().map_err(FatalError::cannot(
            "cannot write the built-in film to a temporary folder",
        ))?),
    };
    let metrics = Metrics::of_process(PROGRAM);
    shutdown.register_metrics(&metrics);
    let overload = OverloadManager::start_memory_monitor(settings.common.memory_limit(), &metrics)
        .map_err(FatalError::cannot("cannot watch the memory"))?;
    let recorder = settings.common.open_recorder(&metrics);
    let recorder = recorder.map_err(FatalError::cannot("--records"))?;
    let stores = open_stores(settings, &demo, recorder.as_ref(), &shutdown, &overload)?;
    let handover_socket = settings.common.handover_socket.as_deref();
    let mut inherited = InheritedPorts::take_inherited_ports(PROGRAM, handover_socket)?;
    let mut running = RunningProgram::new(shutdown.clone());
    running.enable_handover(&settings.common);
    running.close_recorder_on_exit(recorder.as_ref());
    let collector = settings.common.open_collector(&metrics, recorder.as_ref());
    let collector = collector.map_err(FatalError::cannot("--cmcd-records"))?;
    let reports = collector.as_ref().and_then(|c| c.recorder());
    running.close_recorder_on_exit(reports);
    let recorders: Vec<_> = recorder.iter().chain(reports).cloned().collect();
    if !recorders.is_empty() {
        running.on_hangup(move || recorders.iter().for_each(Recorder::reopen))?;
    }
    let telemetry = Telemetry::new(metrics.clone(), recorder, start_tracing(settings)?);
    let mut origin =
        build_request_handler(settings, stores, telemetry, &metrics, &shutdown, &overload)?;
    origin.collector = collector;
    let origin = Arc::new(origin);
    let listen = ServerOptions {
        addresses: settings.listen.clone(),
        overload,
        essential_paths: match settings.admin {
            Some(_) => &["/healthz", "/readyz"],
            None => &["/healthz", "/readyz", "/metrics"],
        },
        metrics,
        ..settings
            .common
            .server_options()
            .map_err(FatalError::cannot("TLS"))?
    };
    let server = Server::bind_inherited(listen, inherited.take_port(MAIN));
    let server = server.map_err(FatalError::cannot("--listen"))?;
    running.watch_tls_files(&settings.common, server.certificates())?;
    let admin = bind_admin_port(settings.admin.as_ref(), inherited.take_port(ADMIN))?;
    running.watch_secret_file(origin.edge_secret.clone())?;
    if let Some(bound) = admin {
        serve_admin_port(&mut running, &origin, server.connections(), bound)?;
    }
    // Lists the library only after the ports are bound. If binding fails, the storage receives no
    // request.
    let library = origin.catalog.library();
    let line = origin
        .library_status
        .start_listing_thread(library, &shutdown);
    if let Some(line) = line.map_err(FatalError::cannot("the library"))? {
        running.add_notice(line);
    }
    running.start_server(MAIN, server, move |_| {
        // This closure owns `demo`, so that the files of the built-in film exist until the server
        // stops.
        let _demo = &demo;
        let origin = origin.clone();
        move |request, conn| origin.clone().handle_request(request, conn)
    })?;
    running.replace_predecessor(PROGRAM, handover_socket, inherited)?;
    Ok(running)
}

fn serve_admin_port(
    running: &mut RunningProgram,
    origin: &Arc<RequestHandler>,
    connections: ConnectionInspector,
    (server, token): (Server, Arc<str>),
) -> Result<(), FatalError> {
    let admin = Arc::new(AdminState {
        origin: origin.clone(),
        token,
        connections,
        started_at: Instant::now(),
    });
    running.start_server(ADMIN, server, move |_| {
        let admin = admin.clone();
        move |request, _| admin::handle_admin_request(admin.clone(), request)
    })
}

/// Opens the library and the stores that the setting `media-from` allows.
fn open_stores(
    settings: &ServeSettings,
    demo: &Option<DemoFilm>,
    recorder: Option<&Recorder>,
    shutdown: &Shutdown,
    overload: &OverloadManager,
) -> Result<MediaStores, FatalError> {
    let place = demo.as_ref().map(|demo| demo.path().display().to_string());
    let place = settings.source.clone().or(place).unwrap_or_default();
    let options = store::Options {
        watch: recorder.cloned().map(telemetry::storage_record_observer),
        holder: Some(store::ThreadHoldFactory::new({
            let shutdown = shutdown.clone();
            move || shutdown.hold_shutdown()
        })),
        ..settings.storage.clone()
    };
    let suspended = options.is_caching_suspended.clone();
    overload.add_relief_action(move |level| {
        suspended.store(level != OverloadLevel::Normal, Ordering::Relaxed);
    });
    let open = |place: &str, options| {
        let store = Store::new(place, options);
        let store = store.map(|store| Arc::new(store.with_companions(&TEXT_SUFFIXES)));
        store.map_err(|why| FatalError::cannot("cannot open the library")(io::Error::other(why)))
    };
    let elsewhere = settings.media_from.iter().map(|(prefix, place)| {
        let options = store::Options {
            endpoints: Vec::new(),
            ..options.clone()
        };
        Ok((prefix.clone(), open(place, options)?))
    });
    let elsewhere = elsewhere.collect::<Result<_, FatalError>>()?;
    Ok(MediaStores::new(open(&place, options)?, elsewhere))
}

fn build_request_handler(
    settings: &ServeSettings,
    stores: MediaStores,
    telemetry: Telemetry,
    metrics: &Metrics,
    shutdown: &Shutdown,
    overload: &OverloadManager,
) -> Result<RequestHandler, FatalError> {
    let store = stores.library().clone();
    let suits = if store.is_remote() {
        RECHECK_AFTER_REMOTE
    } else {
        RECHECK_AFTER
    };
    let recheck = settings.recheck.unwrap_or(suits);
    let segment_durations = TargetSegmentDurations {
        hls_ms: settings.hls_segment_ms,
        dash_ms: settings.dash_segment_ms,
    };
    let catalog_bytes = match settings.index_cache {
        IndexCacheStorage::Off => None,
        IndexCacheStorage::Memory | IndexCacheStorage::Disk(_) => Some(settings.index_memory_bytes),
    };
    let packaging_rules = LibraryPackagingRules {
        segment_durations,
        master_secret: read_master_secret(settings)?,
        manifest_rules: settings.manifest_rules.clone(),
        drm: open_library_drm(settings.drm.as_ref(), metrics)?,
    };
    let catalog = Catalog::new(
        Arc::new(stores),
        open_index_cache(settings)?,
        packaging_rules,
        recheck,
        catalog_bytes,
    );
    let catalog = Arc::new(catalog.with_read_ahead(settings.read_ahead));
    let shrinking = Arc::downgrade(&catalog);
    overload.add_relief_action(move |level| {
        if let Some(catalog) = shrinking.upgrade() {
            catalog.evict_if_memory_is_short(level);
        }
    });
    // A cached segment is valid only while its title is cached. Therefore, no segments are cached
    // if titles are not cached.
    let segment_bytes = catalog_bytes.map_or(0, |_| settings.segment_memory_bytes);
    let segment_cache = Arc::new(SegmentCache::new(segment_bytes, overload.clone()));
    let shrinking = Arc::downgrade(&segment_cache);
    overload.add_relief_action(move |level| {
        if let Some(cache) = shrinking.upgrade() {
            cache.adapt_capacity(level);
        }
    });
    Ok(RequestHandler {
        segment_cache,
        manifest_cache: ManifestCache::new(catalog_bytes.is_some()),
        static_files: Arc::new(StaticFiles::new(store, recheck)),
        library_list: CachedLibraryList::new(catalog.clone()),
        library_status: Arc::default(),
        web_assets: WebAssets::new(&list_license_origins(settings.drm.as_ref())),
        telemetry,
        collector: None,
        has_admin_port: settings.admin.is_some(),
        edge_secret: read_edge_secret(settings)?,
        shutdown: shutdown.clone(),
        catalog,
    })
}

fn read_edge_secret(settings: &ServeSettings) -> Result<Option<EdgeSecret>, FatalError> {
    let secret = settings.edge_secret.clone().map(EdgeSecret::read_secret);
    let secret = secret.transpose();
    secret.map_err(FatalError::cannot("--edge-secret-file"))
}

fn start_tracing(settings: &ServeSettings) -> Result<Option<RequestTracing>, FatalError> {
    let tracing = &settings.common.tracing;
    let headers = tracing
        .otlp_headers
        .clone()
        .map(CollectorHeaders::from_file);
    let headers = headers.transpose();
    let headers = headers.map_err(FatalError::cannot("--otlp-headers-file"))?;
    let ratio = tracing.sample_ratio();
    let start = |url: &String| Tracer::start_export(url, headers, "headwater-serve", ratio);
    let tracer = tracing.otlp_endpoint.as_ref().map(start).transpose();
    let tracer = tracer.map_err(FatalError::cannot("--otlp-endpoint"))?;
    let timing = tracing.read_timing_token();
    let timing = timing.map_err(FatalError::cannot("--server-timing-token-file"))?;
    let timing =
        timing.map(|token| Box::new(move |headers: &_| token.has_required_token(headers)) as _);
    Ok(RequestTracing::new(tracer, timing))
}

fn read_master_secret(settings: &ServeSettings) -> Result<Option<MasterSecret>, FatalError> {
    let Some(path) = &settings.aes_secret else {
        return Ok(None);
    };
    let secret = read_secret("--aes-secret", path)?;
    let url = settings.aes_key_url.as_deref();
    Ok(Some(MasterSecret::new(&secret, url)))
}

fn open_index_cache(settings: &ServeSettings) -> Result<IndexCache, FatalError> {
    let IndexCacheStorage::Disk(folder) = &settings.index_cache else {
        return Ok(IndexCache::default());
    };
    let index_cache = IndexCache::on_disk(folder, settings.index_disk_bytes);
    let what = format!("--index-cache-dir: cannot open {}", folder.display());
    index_cache.map_err(FatalError::cannot(what))
}
