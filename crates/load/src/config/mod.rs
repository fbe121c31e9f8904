//! `headwater load`: its words, and what they start.

mod client;
mod outputs;
mod players;
mod rate;
mod reports;
mod stop;

use crate::client::Url;
use crate::report::Expectation;
use clap::{ArgMatches, Command};
use net::config::{Knob, Layers, Sources, Wrong, count};
use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

pub use client::{CLIENT, settings};
pub use outputs::{OUTPUTS, Said, deliver, expectations, open};

/// The words of `headwater load`.
pub fn command() -> Command {
    Command::new("load")
        .about("Load any origin with request rates or emulated viewers, and say honestly how it answered")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(rate::command())
        .subcommand(players::command())
        .subcommand(reports::report())
        .subcommand(reports::compare())
}

/// Runs what was asked for. Exit status: 0 all well, 1 a run or an expectation failed, 2 wrong usage.
pub fn run(flags: &ArgMatches) -> ExitCode {
    let result = match flags.subcommand() {
        Some(("rate", flags)) => rate::run(flags),
        Some(("players", flags)) => players::run(flags),
        Some(("report", flags)) => reports::run_report(flags),
        Some(("compare", flags)) => reports::run_compare(flags),
        _ => return ExitCode::from(2),
    };
    match result {
        Ok(code) => code,
        Err(Stop::Usage(wrong)) => said(2, &wrong.to_string()),
        Err(Stop::Failed(what)) => said(1, &what),
    }
}

/// To standard output. Whoever reads it may have seen enough: a closed pipe is no failure.
fn say(what: impl Display) {
    let _ = write!(std::io::stdout().lock(), "{what}");
}

fn said(code: u8, what: &str) -> ExitCode {
    eprintln!("headwater load: {what}");
    ExitCode::from(code)
}

/// Why a command ends before its end.
#[derive(Debug)]
pub enum Stop {
    /// Wrong usage: exit status 2.
    Usage(Wrong),
    /// It could not be done: exit status 1.
    Failed(String),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Stop {
        Stop::Usage(wrong)
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Failed(what)
    }
}

/// All settings of a command, from its flags, the environment and a file.
///
/// # Errors
/// As [`Layers::new`].
pub fn layers(knobs: &'static [&'static [Knob]], flags: &ArgMatches) -> Result<Layers, Wrong> {
    Layers::new(&Sources {
        knobs,
        tables: &[],
        flags,
        env: &|name| std::env::var(name).ok(),
        read: &|path| std::fs::read_to_string(path),
    })
}

/// What a run begins with.
struct Begun {
    layers: Layers,
    expected: Vec<Expectation>,
    /// What it is run against, as it was typed.
    words: Vec<String>,
}

/// Reads a run's settings; None: they were only to be shown, and have been.
fn begin(
    knobs: &'static [&'static [Knob]],
    flags: &ArgMatches,
    words: &str,
) -> Result<Option<Begun>, Wrong> {
    let layers = layers(knobs, flags)?;
    if layers.print {
        say(&layers);
        return Ok(None);
    }
    let words = flags.get_many(words).into_iter().flatten().cloned();
    Ok(Some(Begun {
        expected: expectations(&layers)?,
        words: words.collect(),
        layers,
    }))
}

fn seed(layers: &Layers) -> Result<u64, Wrong> {
    let whole = |text: &str| text.parse().map_err(|_| "it is a whole number".to_owned());
    Ok(layers.with("seed", whole)?.unwrap_or(1))
}

/// As many threads as are wanted; one a core where nothing is said.
fn threads(layers: &Layers) -> Result<usize, Wrong> {
    let wanted = layers
        .with("threads", count)?
        .filter(|threads| *threads > 0);
    Ok(wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)))
}

fn url(text: &str) -> Result<Url, String> {
    let url =
        Url::parse(text).map_err(|error| format!("no URL ({error}), such as http://host/path"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("neither http nor https: {other}")),
    }
}

/// `yes` or `no`.
fn yes_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("it is yes or no".into()),
    }
}
