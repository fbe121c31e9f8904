//! What `headwater edge` is told.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Command;
use http::HeaderName;
use net::config::{COMMON, Common, Knob, Layers, Wrong, bytes, duration, flags};
use net::upstream::Patience;

use crate::fresh::Policy;
use crate::origins::{self, Balance, Care, Pool, Pools, Treatment};
pub use crate::rules::TABLES;
use crate::rules::{self, Rules};

/// Every table of settings that `headwater edge` has.
pub const KNOBS: &[&[Knob]] = &[OWN, COMMON];

const OWN: &[Knob] = &[
    Knob::new(
        "origin",
        "URL",
        "",
        "Where answers come from, such as http://127.0.0.1:8080; several share the work",
    )
    .list(),
    Knob::new(
        "origin-balance",
        "path|folder|first",
        "path",
        "Which of several origins is asked first: by hash of the path or its folder, or as written",
    ),
    Knob::new(
        "origin-health",
        "PATH",
        "",
        "A path that origins are asked for now and then; one that fails it is not asked",
    ),
    Knob::new(
        "origin-health-interval",
        "DURATION",
        "2s",
        "How often it is asked for",
    ),
    Knob::new(
        "origin-failures",
        "N",
        "3",
        "Failures in a row after which an origin is not asked for a while",
    ),
    Knob::new(
        "origin-retry-after",
        "DURATION",
        "5s",
        "For how long; twice as long each time it fails again",
    ),
    Knob::new(
        "origin-slow-start",
        "DURATION",
        "10s",
        "Time in which an origin that is back comes to its whole share",
    ),
    Knob::new(
        "origin-retries",
        "PERCENT",
        "20",
        "Of a hundred requests, how many may be sent to a second origin",
    ),
    Knob::new(
        "body-max",
        "BYTES",
        "1MiB",
        "Most bytes of a request's body that is passed on",
    ),
    Knob::new(
        "listen",
        "HOST:PORT",
        "127.0.0.1:8081",
        "Where to listen; port 0 takes a free one",
    )
    .list(),
    Knob::new(
        "memory",
        "BYTES",
        "1GiB",
        "Most memory for kept answers; one of them may take a 32nd of it",
    ),
    Knob::new(
        "disk-dir",
        "FOLDER",
        "",
        "Where answers that leave memory are kept, over restarts too; a folder of this process alone",
    ),
    Knob::new(
        "disk",
        "BYTES",
        "10GiB",
        "Most disk for kept answers, in disk-dir",
    ),
    Knob::new(
        "forward-host",
        "origin|client",
        "origin",
        "Whose Host the origin is sent; the client's is then part of the key",
    ),
    Knob::new(
        "forward",
        "HEADER",
        "",
        "A request header that the origin is sent though it is not among the usual ones",
    )
    .list(),
    Knob::new(
        "negative-ttl",
        "DURATION",
        "1s",
        "How long 404 and 410 are kept that do not say it themselves",
    ),
    Knob::new(
        "heuristic-max",
        "DURATION",
        "1h",
        "Most that is guessed from Last-Modified for answers that say nothing",
    ),
    Knob::new(
        "stale-if-error",
        "DURATION",
        "0s",
        "How long stale answers stand in for a failing origin where they do not say it",
    ),
    Knob::new(
        "origin-at-once",
        "N",
        "1024",
        "Most requests that an origin is sent at a time; others wait, at most as for a connection",
    ),
    Knob::new(
        "origin-connect-timeout",
        "DURATION",
        "3s",
        "Time for a connection to the origin",
    ),
    Knob::new(
        "origin-first-byte-timeout",
        "DURATION",
        "15s",
        "Time for the head of the origin's answer",
    ),
    Knob::new(
        "origin-between-timeout",
        "DURATION",
        "15s",
        "Time between two pieces of the origin's answer",
    ),
    Knob::new(
        "admin",
        "HOST:PORT",
        "",
        "Where to listen for the people who run it: status and purging",
    ),
    Knob::new(
        "admin-token-file",
        "FILE",
        "",
        "File with the token that the admin port asks for",
    ),
    Knob::new(
        "tcp-interval",
        "DURATION",
        "250ms",
        "With --records, how often TCP is looked at while sending; 0s: at start and end only",
    ),
];

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

const AFTER: &str = "\
Each setting is also a line of the TOML file (`memory = \"4GiB\"`) and an environment variable
(`HEADWATER_MEMORY=4GiB`). Flags go before variables, variables before the file.

The file may hold rules, of which the first that matches wins; see docs/edge.md:

  [networks]
  mobile = [\"10.0.0.0/8\"]

  [[rule]]
  when = 'path.endsWith(\".m4s\") && client.net == \"mobile\"'
  congestion = \"bbr\"
  pace = \"1.5 * cmcd.tb\"

Examples:
  headwater edge --origin http://127.0.0.1:8080
  headwater edge explain http://edge/film/1.m4s --client 10.1.2.3 --config edge.toml
  headwater edge --origin https://films.example --listen 0.0.0.0:80 --memory 8GiB
  headwater edge --origin http://10.0.0.1:8080 --origin http://10.0.0.2:8080 --origin-health /healthz
  headwater edge --config edge.toml --print-config";

/// The words of `headwater edge`.
pub fn command() -> Command {
    Command::new("edge")
        .about("Keep what an origin answers, and choose how to send it")
        .after_help(AFTER)
        .args(flags(KNOBS))
        .subcommand(crate::explain::command())
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::config::Sources;

    fn settings(words: &[&str]) -> Result<Settings, Wrong> {
        let all = ["edge"].iter().chain(words);
        let flags = command().try_get_matches_from(all).unwrap();
        let sources = Sources {
            knobs: KNOBS,
            tables: TABLES,
            flags: &flags,
            env: &|_| None,
            read: &|_| Ok(String::new()),
        };
        Settings::new(&Layers::new(&sources)?)
    }

    #[test]
    fn an_origin_is_enough() {
        let is = settings(&["--origin", "http://o:1"]).unwrap();
        assert_eq!(is.policy, Policy::default());
        assert_eq!(is.treatment.patience, Patience::default());
        assert_eq!(is.pools[""].origins, ["http://o:1"]);
        assert_eq!(is.memory_bytes, 1 << 30);
        assert!(!is.client_host);
    }

    #[test]
    fn what_is_wrong_is_said_with_a_remedy() {
        for (words, part) in [
            (&[][..], "--origin is missing"),
            (
                &["--origin", "http://o", "--memory", "1MiB"],
                "at least 16MiB",
            ),
            (
                &["--origin", "http://o", "--forward", "a b"],
                "no name of a header",
            ),
            (
                &["--origin", "http://o", "--forward-host", "me"],
                "origin or client",
            ),
            (
                &["--origin", "http://o", "--origin-health", "healthz"],
                "begins with /",
            ),
            (
                &["--origin", "http://o", "--origin-retries", "101"],
                "from 0 to 100",
            ),
            (
                &["--origin", "http://o", "--trust-proxy", "10.0.0.0/99"],
                "no network",
            ),
        ] {
            let wrong = settings(words).unwrap_err();
            assert!(wrong.0.contains(part), "{wrong}");
        }
    }
}
