//! Words to a running server, and its end.

use crate::Origin;
use crate::catalog::Catalog;
use crate::config::{IndexCache, KNOBS, Layers, Settings, Sources, Wrong};
use crate::demo::Demo;
use crate::kept::Kept;
use crate::library::Library;
use crate::observe::Observer;
use crate::page::Page;
use crate::plain::Files;
use crate::ready::Segments;
use crate::reference::Prefix;
use crate::stores::Stores;
use crate::title::Lengths;
use clap::ArgMatches;
use net::metrics::Metrics;
use net::record::Recorder;
use net::{Listen, Server, Shutdown};
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use store::Folder;

/// Why there is no server.
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

/// A server that runs.
pub struct Running {
    addresses: Vec<SocketAddr>,
    secure: bool,
    shutdown: Shutdown,
    thread: JoinHandle<io::Result<()>>,
    _demo: Option<Demo>,
}

/// `headwater serve`: reads settings, serves until told to end, and says how it went.
pub fn serve(flags: &ArgMatches) -> ExitCode {
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
    let env = |name: &str| std::env::var(name).ok();
    let read = |path: &str| std::fs::read_to_string(path);
    let sources = Sources {
        knobs: KNOBS,
        tables: &[],
        flags,
        env: &env,
        read: &read,
    };
    let layers = Layers::new(&sources).map_err(Failed::Usage)?;
    let settings = Settings::new(&layers).map_err(Failed::Usage)?;
    if layers.print {
        print!("{layers}");
        return Ok(());
    }
    settings.common.start_log().map_err(Failed::Usage)?;
    let shutdown = Shutdown::on_signals().map_err(cannot("signals"))?;
    let running = start(&settings, shutdown)?;
    let mut out = io::stdout().lock();
    for url in running.urls() {
        // Whoever started us may not care, and have closed it.
        let _ = writeln!(out, "listening on {url}");
    }
    let _ = out.flush();
    drop(out);
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
        None => Some(Demo::new().map_err(cannot("the built-in film"))?),
    };
    let path = settings.source.as_deref().or(demo.as_ref().map(Demo::path));
    let path = path.unwrap_or(Path::new("."));
    let folder = Folder::new(path).map_err(|e| cannot(&path.display().to_string())(e))?;
    let metrics = Metrics::default();
    let origin = Arc::new(origin(settings, folder, &metrics, &shutdown)?);
    let listen = Listen {
        addresses: settings.listen.clone(),
        tls: settings.common.read_tls().map_err(cannot("TLS"))?,
        limits: settings.common.limits.clone(),
        workers: settings.common.workers,
        metrics,
        ..Listen::default()
    };
    let server = Server::bind(listen).map_err(cannot(&settings.listen.join(", ")))?;
    let (addresses, secure) = (server.addresses().to_vec(), server.secure());
    let told = shutdown.clone();
    let serve = move || {
        let answer = |_| {
            let origin = origin.clone();
            move |request, conn| origin.clone().answer(request, conn)
        };
        server.run(answer, told)
    };
    let thread = std::thread::Builder::new()
        .name("serve".into())
        .spawn(serve);
    let thread = thread.map_err(cannot("a thread"))?;
    Ok(Running {
        addresses,
        secure,
        shutdown,
        thread,
        _demo: demo,
    })
}

fn origin(
    settings: &Settings,
    folder: Folder,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> Result<Origin, Failed> {
    let folder = Arc::new(folder);
    let lengths = Lengths {
        hls_ms: settings.hls_segment_ms,
        dash_ms: settings.dash_segment_ms,
    };
    let remembered = match settings.index_cache {
        IndexCache::Off => None,
        IndexCache::Memory | IndexCache::Disk(_) => Some(settings.index_memory_bytes),
    };
    let stores = Arc::new(Stores::new(folder.clone(), elsewhere(settings)?));
    let catalog = Arc::new(Catalog::new(
        stores,
        kept(settings)?,
        lengths,
        settings.recheck,
        remembered,
    ));
    let recorder = match &settings.common.records {
        Some(path) => {
            let open = Recorder::open(path, metrics);
            Some(open.map_err(|e| cannot(&path.display().to_string())(e))?)
        }
        None => None,
    };
    Ok(Origin {
        // A segment that is ready belongs to a title that is remembered.
        segments: Segments::new(remembered.map_or(0, |_| settings.segment_memory_bytes)),
        files: Files::new(folder, settings.recheck),
        library: Library::new(catalog.clone()),
        page: Page::new(),
        observer: Observer::new(metrics.clone(), recorder),
        shutdown: shutdown.clone(),
        catalog,
    })
}

fn kept(settings: &Settings) -> Result<Kept, Failed> {
    let IndexCache::Disk(folder) = &settings.index_cache else {
        return Ok(Kept::default());
    };
    let kept = Kept::on_disk(folder, settings.index_disk_bytes);
    kept.map_err(|e| cannot(&folder.display().to_string())(e))
}

/// What absolute URLs in server manifests and index MP4s may name.
fn elsewhere(settings: &Settings) -> Result<Vec<(Prefix, Arc<Folder>)>, Failed> {
    let open = |(prefix, path): &(Prefix, PathBuf)| {
        let folder = Folder::new(path).map_err(|e| cannot(&path.display().to_string())(e))?;
        Ok((prefix.clone(), Arc::new(folder)))
    };
    settings.media_from.iter().map(open).collect()
}

fn cannot(what: &str) -> impl FnOnce(io::Error) -> Failed {
    let what = what.to_owned();
    move |why| Failed::Cannot(what, why)
}

impl Running {
    /// Where it listens, as URLs.
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.secure { "https" } else { "http" };
        self.addresses
            .iter()
            .map(|address| format!("{scheme}://{address}"))
            .collect()
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
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
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        ended.map_err(cannot("the server"))
    }
}
