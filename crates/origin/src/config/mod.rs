//! Settings as written become settings as meant.
//!
//! Each knob is declared once, in `knobs`; flags, `HEADWATER_*` variables and lines of a TOML
//! file all come from that table. `layers` says who set what; this file gives it meaning.

mod knobs;
mod layers;
mod units;

pub use knobs::command;
pub use layers::{Layers, Sources};

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What `headwater serve` was told, as it is meant.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The library; `None`: the built-in film.
    pub source: Option<PathBuf>,
    /// `HOST:PORT`, at least one.
    pub listen: Vec<String>,
    /// Wished length of HLS segments.
    pub hls_segment_ms: u32,
    /// Wished length of DASH segments.
    pub dash_segment_ms: u32,
    /// Threads that serve; 0: one per core.
    pub workers: usize,
    /// Certificate chain and private key, both PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Bound on all indexes, presentations and manifests in memory.
    pub index_memory_bytes: u64,
    /// How long a path is trusted to lead to the same files.
    pub recheck: Duration,
    /// How the log is written.
    pub log_format: LogFormat,
    /// What is logged: a level, or `tracing`'s directives.
    pub log: String,
    /// Where access records go, a JSON object a line.
    pub records: Option<PathBuf>,
    /// Bounds on clients.
    pub limits: net::Limits,
}

/// How the log is written to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: a JSON object a line.
    Json,
}

/// Wrong usage: what is wrong, where it was written, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(pub String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// Shortest and longest segment that may be wished for.
const SEGMENT_MS: std::ops::RangeInclusive<u64> = 100..=60_000;

impl Settings {
    /// Gives the layers their meaning.
    ///
    /// # Errors
    /// [`Wrong`], naming the knob and who set it, for the first value that means nothing.
    pub fn new(layers: &Layers) -> Result<Settings, Wrong> {
        let segment = layers.with("segment", segment_ms)?.unwrap_or(6000);
        let tls = match (path(layers, "tls-cert"), path(layers, "tls-key")) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                return Err(Wrong(
                    "tls-cert and tls-key are only of use together".into(),
                ));
            }
        };
        Ok(Settings {
            source: path(layers, "source"),
            listen: layers.list("listen"),
            hls_segment_ms: layers.with("hls-segment", segment_ms)?.unwrap_or(segment),
            dash_segment_ms: layers.with("dash-segment", segment_ms)?.unwrap_or(segment),
            workers: layers.with("workers", units::count)?.unwrap_or(0),
            tls,
            index_memory_bytes: layers.with("index-memory", units::bytes)?.unwrap_or(0),
            recheck: layers.with("recheck", units::duration)?.unwrap_or_default(),
            log_format: layers
                .with("log-format", log_format)?
                .unwrap_or(LogFormat::Text),
            log: layers.one("log").unwrap_or("info").to_owned(),
            records: path(layers, "records"),
            limits: limits(layers)?,
        })
    }
}

fn limits(layers: &Layers) -> Result<net::Limits, Wrong> {
    let default = net::Limits::default();
    let time = |name, default| Ok(layers.with(name, units::duration)?.unwrap_or(default));
    let count = |name, default| Ok(layers.with(name, units::count)?.unwrap_or(default));
    Ok(net::Limits {
        connections_max: count("connections-max", default.connections_max)?,
        connections_per_address_max: count(
            "connections-per-address-max",
            default.connections_per_address_max,
        )?,
        header_timeout: time("header-timeout", default.header_timeout)?,
        idle_timeout: time("idle-timeout", default.idle_timeout)?,
        stall_timeout: time("stall-timeout", default.stall_timeout)?,
        announce: time("announce", default.announce)?,
        drain_timeout: time("drain-timeout", default.drain_timeout)?,
        ..default
    })
}

fn path(layers: &Layers, name: &str) -> Option<PathBuf> {
    layers.one(name).map(PathBuf::from)
}

pub(crate) fn segment_ms(text: &str) -> Result<u32, String> {
    let ms = units::duration(text)?.as_millis() as u64;
    match u32::try_from(ms) {
        Ok(small) if SEGMENT_MS.contains(&ms) => Ok(small),
        _ => Err("a segment lasts from 100ms to 60s".into()),
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("it is text or json".into()),
    }
}
