//! What `headwater edge` is told.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use net::config::{Common, Layers, Wrong, bytes, duration};
use net::upstream::Patience;

use crate::fresh::Policy;
use crate::origins::{self, Balance, Care, Pool, Pools, Treatment};
pub use crate::rules::TABLES;
use crate::rules::{self, Rules};

/// The settings, as they are meant.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The servers behind.
    pub pools: Pools,
    /// How they are treated.
    pub treatment: Treatment,
    /// How often those are asked how they are that say where.
    pub health_interval: Duration,
    /// Bound on a request's body.
    pub body_bytes_max: u64,
    /// `HOST:PORT`, at least one.
    pub listen: Vec<String>,
    /// Bound on kept answers.
    pub memory_bytes: u64,
    /// The folder of the disk tier, and its bound.
    pub disk: Option<(PathBuf, u64)>,
    /// The origin is sent the client's Host, and answers are kept by it.
    pub client_host: bool,
    /// Request headers that are sent on beside the usual ones.
    pub forward: Vec<HeaderName>,
    /// For answers that do not say how long they may be kept.
    pub policy: Policy,
    /// The admin port, and the file with its token.
    pub admin: Option<(String, PathBuf)>,
    /// While a response is sent, how often TCP is looked at for the records; zero: only at its
    /// start and end.
    pub tcp_interval: Duration,
    /// Which requests are sent how.
    pub rules: Arc<Rules>,
    /// What every server can be told.
    pub common: Common,
}

impl Settings {
    /// Gives the layers their meaning.
    ///
    /// # Errors
    /// [`Wrong`], naming the knob and who set it, for the first value that means nothing.
    pub fn new(layers: &Layers) -> Result<Settings, Wrong> {
        let time = |name| Ok::<_, Wrong>(layers.with(name, duration)?.unwrap_or_default());
        let name = |text: &String| {
            let wrong = |_| Wrong(format!("forward = {text:?}: no name of a header"));
            text.parse().map_err(wrong)
        };
        Ok(Settings {
            treatment: Treatment {
                patience: Patience {
                    connect: time("origin-connect-timeout")?,
                    first_byte: time("origin-first-byte-timeout")?,
                    between: time("origin-between-timeout")?,
                    at_once_max: layers.with("origin-at-once", at_least_one)?.unwrap_or(1024),
                    ..Patience::default()
                },
                care: Care {
                    failures_max: layers.with("origin-failures", at_least_one)?.unwrap_or(3),
                    retry_after: time("origin-retry-after")?,
                    slow_start: time("origin-slow-start")?,
                },
                retry_share: layers.with("origin-retries", percent)?.unwrap_or(0.0),
            },
            health_interval: time("origin-health-interval")?.max(HEALTH_INTERVAL_MIN),
            body_bytes_max: layers.with("body-max", bytes)?.unwrap_or(0),
            listen: layers.list("listen"),
            memory_bytes: layers.with("memory", memory)?.unwrap_or(0),
            disk: match layers.path("disk-dir") {
                Some(folder) => Some((folder, layers.with("disk", disk)?.unwrap_or(0))),
                None => None,
            },
            client_host: layers.with("forward-host", host)?.unwrap_or(false),
            forward: layers
                .list("forward")
                .iter()
                .map(name)
                .collect::<Result<_, _>>()?,
            policy: Policy {
                negative: time("negative-ttl")?,
                heuristic_max: time("heuristic-max")?,
                ttl: None,
                stale_if_error: time("stale-if-error")?,
            },
            admin: match (layers.one("admin"), layers.path("admin-token-file")) {
                (Some(listen), Some(token)) => Some((listen.to_owned(), token)),
                (None, None) => None,
                _ => {
                    let what = "admin and admin-token-file are only of use together";
                    return Err(Wrong(what.into()));
                }
            },
            tcp_interval: time("tcp-interval")?,
            rules: Arc::new(match layers.file() {
                Some((path, text)) => rules::read(path, text)?,
                None => Rules::default(),
            }),
            pools: pools(layers)?,
            common: Common::new(layers)?,
        })
    }

    /// Takes over from `running` what cannot change while it runs. Returns the names of what
    /// would have.
    pub fn keep_fixed(&mut self, running: &Settings) -> Vec<&'static str> {
        let mut fixed = Vec::new();
        let mut is_fixed = |name, same: bool| {
            if !same {
                fixed.push(name);
            }
        };
        is_fixed("listen", self.listen == running.listen);
        is_fixed("memory", self.memory_bytes == running.memory_bytes);
        is_fixed("disk", self.disk == running.disk);
        is_fixed("admin", self.admin == running.admin);
        is_fixed("tcp-interval", self.tcp_interval == running.tcp_interval);
        is_fixed("what all servers have", self.common == running.common);
        self.listen.clone_from(&running.listen);
        self.memory_bytes = running.memory_bytes;
        self.disk.clone_from(&running.disk);
        self.admin.clone_from(&running.admin);
        self.tcp_interval = running.tcp_interval;
        self.common = running.common.clone();
        fixed
    }

    /// How long an answer that is not to be shared keeps others from waiting for each other.
    pub const APART: Duration = Duration::from_secs(10);
}

/// The least that makes sense: an object of a few hundred kilobytes must fit.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// Asking more often would be a burden of its own.
const HEALTH_INTERVAL_MIN: Duration = Duration::from_millis(50);

fn pools(layers: &Layers) -> Result<Pools, Wrong> {
    let balance = layers.with("origin-balance", Balance::parse)?;
    let health = layers.one("origin-health").map(str::to_owned);
    let origins = layers.list("origin");
    if origins.is_empty() {
        let missing = "--origin is missing: say where answers come from, such as \
                       --origin http://127.0.0.1:8080";
        return Err(Wrong(missing.into()));
    }
    let usual = Pool::new(&origins, balance.unwrap_or(Balance::Path), health);
    let usual = usual.map_err(|why| Wrong(format!("origin: {why}")))?;
    let usual = usual.trusting(layers.path("origin-ca").as_deref());
    let usual = usual.map_err(|why| Wrong(format!("origin-ca: {why}")))?;
    let mut pools = match layers.file() {
        Some((path, text)) => origins::read(path, text, &usual)?,
        None => Pools::new(),
    };
    pools.insert("".into(), usual);
    Ok(pools)
}

fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let count = text.parse().ok().filter(|count| *count >= T::from(1));
    count.ok_or_else(|| "a number from 1 on".into())
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<u32> = text.parse().ok().filter(|percent| *percent <= 100);
    let percent = percent.ok_or("a number from 0 to 100")?;
    Ok(f64::from(percent) / 100.0)
}

fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        enough if enough >= MEMORY_BYTES_MIN => Ok(enough),
        _ => Err("at least 16MiB".into()),
    }
}

/// The least that makes sense: the longest object that memory keeps must fit.
const DISK_BYTES_MIN: u64 = 64 << 20;

fn disk(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        enough if enough >= DISK_BYTES_MIN => Ok(enough),
        _ => Err("at least 64MiB".into()),
    }
}

fn host(text: &str) -> Result<bool, String> {
    match text {
        "origin" => Ok(false),
        "client" => Ok(true),
        _ => Err("it is origin or client".into()),
    }
}

mod knobs;
#[cfg(test)]
mod tests;

pub use knobs::{KNOBS, command};
