//! Words to a running server, and its end.

use crate::Origin;
use crate::catalog::Catalog;
use crate::config::{IndexCache, KNOBS, Layers, Settings, Sources};
use crate::demo::Demo;
use crate::kept::Kept;
use crate::lately::Lately;
use crate::library::Library;
use crate::observe::{self, Observer};
use crate::page::Page;
use crate::plain::Files;
use crate::ready::Segments;
use crate::seal::{SECRET_BYTES, Secret};
use crate::stores::Stores;
use crate::title::{Lengths, Making};
use clap::ArgMatches;
use net::metrics::Metrics;
use net::program::MAIN;
use net::record::Recorder;
use net::{Failed, Listen, Running, Server, Shutdown};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use store::Store;

/// How long a path is trusted to lead to the same files, where a look costs little.
const RECHECK: Duration = Duration::from_secs(1);
/// The same where it takes a network. What is read is held to the state that was indexed, so that
/// this bounds only how long a title is served that nobody reads anew.
const RECHECK_REMOTE: Duration = Duration::from_secs(60);

/// `headwater serve`: reads settings, serves until told to end, and says how it went.
pub fn serve(flags: &ArgMatches) -> ExitCode {
    Failed::exit(run(flags))
}

fn run(flags: &ArgMatches) -> Result<(), Failed> {
    let env = |name: &str| std::env::var(name).ok();
    let read = |path: &str| std::fs::read_to_string(path);
    let sources = Sources {
        knobs: KNOBS,
        tables: &[],
        flags,
        env: &env,
        read: &read,
    };
    let layers = Layers::new(&sources)?;
    let settings = Settings::new(&layers)?;
    if layers.print {
        // Whoever reads it may have seen enough.
        let _ = write!(io::stdout().lock(), "{layers}");
        return Ok(());
    }
    settings.common.start_log()?;
    let shutdown = Shutdown::on_signals().map_err(Failed::cannot("signals"))?;
    let running = start(&settings, shutdown)?;
    running.announce();
    running.join()
}

/// Starts a server, which serves from now on on threads of its own.
///
/// # Errors
/// [`Failed`] when the library, a certificate or an address cannot be had.
pub fn start(settings: &Settings, shutdown: Shutdown) -> Result<Running, Failed> {
    if let Err(error) = net::server::raise_descriptor_limit() {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let demo = match settings.source {
        Some(_) => None,
        None => Some(Demo::new().map_err(Failed::cannot("the built-in film"))?),
    };
    let metrics = Metrics::default();
    let recorder = recorder(settings, &metrics)?;
    let place = demo.as_ref().map(|demo| demo.path().display().to_string());
    let place = settings.source.clone().or(place).unwrap_or_default();
    let options = store::Options {
        watch: recorder.clone().map(observe::watch),
        holder: Some(store::Holder::new({
            let shutdown = shutdown.clone();
            move || shutdown.hold()
        })),
        ..settings.storage.clone()
    };
    let open = |place: &str, options| {
        let store = Store::new(place, options).map(Arc::new);
        store.map_err(|why| Failed::cannot("the library")(io::Error::other(why)))
    };
    let elsewhere = settings.media_from.iter().map(|(prefix, place)| {
        let options = store::Options {
            endpoints: Vec::new(),
            ..options.clone()
        };
        Ok((prefix.clone(), open(place, options)?))
    });
    let elsewhere = elsewhere.collect::<Result<_, Failed>>()?;
    let stores = Stores::new(open(&place, options)?, elsewhere);
    let mut running = Running::new(shutdown.clone());
    running.records(recorder.as_ref());
    let origin = Arc::new(origin(settings, stores, &metrics, recorder, &shutdown)?);
    let listen = Listen {
        addresses: settings.listen.clone(),
        tls: settings.common.read_tls().map_err(Failed::cannot("TLS"))?,
        limits: settings.common.limits.clone(),
        trust: settings.common.trust.clone(),
        near_rtt: settings.common.near_rtt,
        workers: settings.common.workers,
        metrics,
        ..Listen::default()
    };
    let server = Server::bind(listen).map_err(Failed::cannot(settings.listen.join(", ")))?;
    running.follow_tls(&settings.common, server.certificates())?;
    running.serve(MAIN, server, move |_| {
        // Its file is there as long as anybody serves it.
        let _kept = &demo;
        let origin = origin.clone();
        move |request, conn| origin.clone().answer(request, conn)
    })?;
    Ok(running)
}

fn origin(
    settings: &Settings,
    stores: Stores,
    metrics: &Metrics,
    recorder: Option<Recorder>,
    shutdown: &Shutdown,
) -> Result<Origin, Failed> {
    let store = stores.films().clone();
    let suits = if store.is_remote() {
        RECHECK_REMOTE
    } else {
        RECHECK
    };
    let recheck = settings.recheck.unwrap_or(suits);
    let lengths = Lengths {
        hls_ms: settings.hls_segment_ms,
        dash_ms: settings.dash_segment_ms,
    };
    let remembered = match settings.index_cache {
        IndexCache::Off => None,
        IndexCache::Memory | IndexCache::Disk(_) => Some(settings.index_memory_bytes),
    };
    let making = Making {
        lengths,
        secret: secret(settings)?,
    };
    let catalog = Catalog::new(
        Arc::new(stores),
        kept(settings)?,
        making,
        recheck,
        remembered,
    );
    let catalog = Arc::new(catalog.reading_ahead(settings.read_ahead));
    Ok(Origin {
        // A segment that is ready belongs to a title that is remembered.
        segments: Arc::new(Segments::new(
            remembered.map_or(0, |_| settings.segment_memory_bytes),
        )),
        lately: Lately::new(remembered.is_some()),
        files: Arc::new(Files::new(store, recheck)),
        listing: Library::new(catalog.clone()),
        page: Page::new(),
        observer: Observer::new(metrics.clone(), recorder),
        shutdown: shutdown.clone(),
        catalog,
    })
}

/// What segments are encrypted with. As a shell's `$(cat FILE)` has it: ends of lines at its end are no
/// part of it, and nothing else that cannot be seen may be.
fn secret(settings: &Settings) -> Result<Option<Secret>, Failed> {
    let Some(path) = &settings.aes_secret else {
        return Ok(None);
    };
    let failed = || Failed::cannot(path.display());
    let text = std::fs::read(path).map_err(failed())?;
    let ends = text.iter().rev().take_while(|byte| **byte == b'\n').count();
    let secret = text.get(..text.len() - ends).unwrap_or_default();
    if secret.iter().any(u8::is_ascii_control) {
        let what = "a secret is one line of text, this has control characters in it";
        return Err(failed()(io::Error::other(what)));
    }
    if !SECRET_BYTES.contains(&secret.len()) {
        let (least, most) = SECRET_BYTES.into_inner();
        let what = format!(
            "a secret has {least} to {most} bytes, this has {}: openssl rand -hex 32 makes one",
            secret.len()
        );
        return Err(failed()(io::Error::other(what)));
    }
    Ok(Some(Secret::new(secret, settings.aes_key_url.as_deref())))
}

fn kept(settings: &Settings) -> Result<Kept, Failed> {
    let IndexCache::Disk(folder) = &settings.index_cache else {
        return Ok(Kept::default());
    };
    let kept = Kept::on_disk(folder, settings.index_disk_bytes);
    kept.map_err(|e| Failed::cannot(folder.display())(e))
}

fn recorder(settings: &Settings, metrics: &Metrics) -> Result<Option<Recorder>, Failed> {
    let Some(path) = &settings.common.records else {
        return Ok(None);
    };
    let open = Recorder::open(path, metrics);
    Ok(Some(open.map_err(Failed::cannot(path.display()))?))
}
