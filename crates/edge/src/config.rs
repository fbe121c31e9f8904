//! What `headwater edge` is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Command;
use http::{HeaderName, Uri};
use net::config::{COMMON, Common, Knob, Layers, Wrong, bytes, duration, flags};
use net::upstream::Patience;

use crate::fresh::Policy;
pub use crate::rules::TABLES;
use crate::rules::{self, Rules};

/// Every table of settings that `headwater edge` has.
pub const KNOBS: &[&[Knob]] = &[OWN, COMMON];

const OWN: &[Knob] = &[
    Knob::new(
        "origin",
        "URL",
        "",
        "Where answers come from, such as http://127.0.0.1:8080",
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
    /// The server behind.
    pub origin: Uri,
    /// `HOST:PORT`, at least one.
    pub listen: Vec<String>,
    /// Bound on kept answers.
    pub memory_bytes: u64,
    /// The origin is sent the client's Host, and answers are kept by it.
    pub client_host: bool,
    /// Request headers that are sent on beside the usual ones.
    pub forward: Vec<HeaderName>,
    /// For answers that do not say how long they may be kept.
    pub policy: Policy,
    /// Bounds on the origin.
    pub patience: Patience,
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
        let url = |text: &str| text.parse::<Uri>().map_err(|error| error.to_string());
        let origin = layers.with("origin", url)?;
        let missing = "--origin is missing: say where answers come from, such as \
                       --origin http://127.0.0.1:8080";
        let time = |name| Ok::<_, Wrong>(layers.with(name, duration)?.unwrap_or_default());
        let name = |text: &String| {
            let wrong = |_| Wrong(format!("forward = {text:?}: no name of a header"));
            text.parse().map_err(wrong)
        };
        Ok(Settings {
            origin: origin.ok_or_else(|| Wrong(missing.into()))?,
            listen: layers.list("listen"),
            memory_bytes: layers.with("memory", memory)?.unwrap_or(0),
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
            patience: Patience {
                connect: time("origin-connect-timeout")?,
                first_byte: time("origin-first-byte-timeout")?,
                between: time("origin-between-timeout")?,
                ..Patience::default()
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
            common: Common::new(layers)?,
        })
    }

    /// How long an answer that is not to be shared keeps others from waiting for each other.
    pub const APART: Duration = Duration::from_secs(10);
}

/// The least that makes sense: an object of a few hundred kilobytes must fit.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        enough if enough >= MEMORY_BYTES_MIN => Ok(enough),
        _ => Err("at least 16MiB".into()),
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
        assert_eq!(is.patience, Patience::default());
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
        ] {
            let wrong = settings(words).unwrap_err();
            assert!(wrong.0.contains(part), "{wrong}");
        }
    }
}
