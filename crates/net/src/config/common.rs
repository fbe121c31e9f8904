//! What every server can be told.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Knob, Layers, Wrong, units};
use crate::server::Tls;
use crate::{Cidr, Limits, Trust};

/// The knobs of every server, besides where it listens.
pub const COMMON: &[Knob] = &[
    Knob::new(
        "workers",
        "N",
        "0",
        "Threads that serve, each with its own listeners; 0: one per core",
    ),
    Knob::new(
        "tls-cert",
        "FILE",
        "",
        "Certificate chain in PEM: all listeners then speak TLS",
    ),
    Knob::new("tls-key", "FILE", "", "Private key in PEM"),
    Knob::new(
        "log-format",
        "text|json",
        "text",
        "How the log on standard error is written",
    ),
    Knob::new(
        "log",
        "FILTER",
        "info",
        "What is logged: error, warn, info, debug, or tracing's directives",
    ),
    Knob::new(
        "records",
        "FILE",
        "",
        "Write an access record per request to FILE, a JSON object a line",
    ),
    Knob::new(
        "connections-max",
        "N",
        "32768",
        "Open connections in all; one more is answered 503",
    ),
    Knob::new(
        "connections-per-address-max",
        "N",
        "16384",
        "Open connections of one address",
    ),
    Knob::new(
        "header-timeout",
        "DURATION",
        "10s",
        "Time for a request's header to arrive",
    ),
    Knob::new(
        "idle-timeout",
        "DURATION",
        "75s",
        "Time a connection may be kept without a request",
    ),
    Knob::new(
        "stall-timeout",
        "DURATION",
        "30s",
        "Time a client may take no byte of its response",
    ),
    Knob::new(
        "near-rtt",
        "DURATION",
        "1ms",
        "Where the system paces (bbr), do not pace those whose first round trip is shorter; 0s: pace all",
    ),
    Knob::new(
        "announce",
        "DURATION",
        "0s",
        "After SIGTERM, time to go on accepting while /readyz says no",
    ),
    Knob::new(
        "drain-timeout",
        "DURATION",
        "30s",
        "Then, time for responses under way to end",
    ),
    Knob::new(
        "trust-proxy",
        "NETWORK",
        "",
        "Who begins connections with a PROXY header, version 2, such as 10.0.0.0/8",
    )
    .list(),
    Knob::new(
        "trust-forwarded",
        "NETWORK",
        "",
        "Whose X-Forwarded-For is believed, such as 10.0.0.0/8",
    )
    .list(),
];

/// Beyond are other machine rooms, where queues begin to be somebody else's.
const NEAR_RTT: Duration = Duration::from_millis(1);

/// [`COMMON`], as it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// Threads that serve; 0: one per core.
    pub workers: usize,
    /// Certificate chain and private key, both PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// How the log is written.
    pub log_format: LogFormat,
    /// What is logged: a level, or `tracing`'s directives.
    pub log: String,
    /// Where records go, a JSON object a line.
    pub records: Option<PathBuf>,
    /// Bounds on clients.
    pub limits: Limits,
    /// Whose word about a client counts.
    pub trust: Trust,
    /// Who answers sooner is not paced.
    pub near_rtt: Duration,
}

/// How the log is written to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: a JSON object a line.
    Json,
}

impl Common {
    /// Gives the layers their meaning.
    ///
    /// # Errors
    /// [`Wrong`], naming the knob and who set it, for the first value that means nothing.
    pub fn new(layers: &Layers) -> Result<Common, Wrong> {
        let tls = match (layers.path("tls-cert"), layers.path("tls-key")) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                let what = "tls-cert and tls-key are only of use together";
                return Err(Wrong(what.into()));
            }
        };
        let format = layers.with("log-format", log_format)?;
        Ok(Common {
            workers: layers.with("workers", units::count)?.unwrap_or(0),
            tls,
            log_format: format.unwrap_or(LogFormat::Text),
            log: layers.one("log").unwrap_or("info").to_owned(),
            records: layers.path("records"),
            limits: limits(layers)?,
            trust: Trust {
                proxy: networks(layers, "trust-proxy")?,
                forwarded: networks(layers, "trust-forwarded")?,
            },
            near_rtt: layers
                .with("near-rtt", units::duration)?
                .unwrap_or(NEAR_RTT),
        })
    }

    /// Reads the certificate and its key, if there are any.
    ///
    /// # Errors
    /// With the name of the file that cannot be read.
    pub fn read_tls(&self) -> io::Result<Option<Tls>> {
        let Some((cert, key)) = &self.tls else {
            return Ok(None);
        };
        let read = |path: &Path| {
            let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
            std::fs::read(path).map_err(named)
        };
        Ok(Some(Tls {
            cert: read(cert)?,
            key: read(key)?,
        }))
    }

    /// Starts the log on standard error. A log that is there already stays.
    ///
    /// # Errors
    /// [`Wrong`] when the filter means nothing.
    pub fn start_log(&self) -> Result<(), Wrong> {
        use tracing_subscriber::{EnvFilter, fmt};
        let filter = EnvFilter::try_new(&self.log);
        let filter = filter.map_err(|e| Wrong(format!("log = {:?}: {e}", self.log)))?;
        let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
        let terminal = io::IsTerminal::is_terminal(&io::stderr());
        // Fails only if a log is there already: then that one is used.
        let _ = match self.log_format {
            LogFormat::Text => builder.with_ansi(terminal).try_init(),
            LogFormat::Json => builder.json().flatten_event(true).try_init(),
        };
        Ok(())
    }
}

fn limits(layers: &Layers) -> Result<Limits, Wrong> {
    let default = Limits::default();
    let time = |name, default| Ok(layers.with(name, units::duration)?.unwrap_or(default));
    let count = |name, default| Ok(layers.with(name, units::count)?.unwrap_or(default));
    Ok(Limits {
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

fn networks(layers: &Layers, name: &str) -> Result<Vec<Cidr>, Wrong> {
    let list = layers.list(name);
    let parse = |text: &String| Cidr::parse(text).map_err(|why| Wrong(format!("{name}: {why}")));
    list.iter().map(parse).collect()
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("it is text or json".into()),
    }
}
