//! `headwater lab serve`.

use super::Stop;
use crate::serve::start;
use clap::{ArgMatches, Command};
use net::config::{Common, Knob, Layers, Wrong, count, flags as knob_flags};
use net::{Cidr, Failed, Shutdown};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const KNOBS: &[&[Knob]] = &[&[
    Knob::new(
        "listen",
        "HOST:PORT",
        "127.0.0.1:8090",
        "Where to listen; port 0 takes a free one; beyond loopback only with --token-file",
    )
    .list(),
    Knob::new(
        "token-file",
        "FILE",
        "",
        "Ask everybody for the token in FILE, 16 characters or more",
    ),
    Knob::new(
        "host",
        "NAME",
        "",
        "A name that it is reached by, besides localhost and addresses",
    )
    .list(),
    Knob::new("out", "DIR", "lab", "Where results go, a folder for each"),
    Knob::new(
        "base",
        "DIR",
        ".",
        "What relative paths of sources are relative to",
    ),
    Knob::new(
        "workflows-max",
        "N",
        "64",
        "Workflows and tasks that are known at a time",
    ),
    Knob::new(
        "report-to",
        "NETWORK",
        "127.0.0.0/8",
        "Where descriptions may have reports sent, such as 10.0.0.0/8",
    )
    .list(),
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
]];

const AFTER: &str = "\
The Workflow Manager of NBMP (ISO/IEC 23090-8): POST, GET, PATCH and DELETE at /workflows and
/tasks, /discover-functions, /openapi.json, and a page at /. What is posted runs commands, one
workflow after the other, as `lab run` would. Results are in DIR/workflows/ID until it is deleted.

Examples:
  headwater lab serve --out results &
  headwater lab convert experiments/congestion.toml -o congestion.wdd.json
  curl --data-binary @congestion.wdd.json -H 'Content-Type: application/mpeg-nbmp-wdd+json' \\
      'http://127.0.0.1:8090/workflows?scale=small'";

/// What the manager may do.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) listen: Vec<String>,
    pub(crate) token: Option<Arc<str>>,
    pub(crate) hosts: Vec<String>,
    pub(crate) out: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) workflows_max: usize,
    pub(crate) report_to: Vec<Cidr>,
}

impl Settings {
    fn new(layers: &Layers) -> Result<Settings, Wrong> {
        let token = layers
            .path("token-file")
            .map(|path| net::token::read(&path));
        let networks = layers.list("report-to");
        let network =
            |text: &String| Cidr::parse(text).map_err(|why| Wrong(format!("report-to: {why}")));
        Ok(Settings {
            listen: layers.list("listen"),
            token: token
                .transpose()
                .map_err(|error| Wrong(error.to_string()))?,
            hosts: layers.list("host"),
            out: layers.path("out").unwrap_or_default(),
            base: layers.path("base").unwrap_or_default(),
            workflows_max: layers.with("workflows-max", count)?.unwrap_or_default(),
            report_to: networks.iter().map(network).collect::<Result<_, _>>()?,
        })
    }
}

/// The words.
pub(super) fn command() -> Command {
    Command::new("serve")
        .about("Run what is posted: the Workflow Manager of MPEG NBMP, over HTTP")
        .after_help(AFTER)
        .args(knob_flags(KNOBS))
}

/// Serves until told to end; then ends what runs.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let layers = super::layers(KNOBS, flags)?;
    if layers.print {
        super::say(&layers);
        return Ok(ExitCode::SUCCESS);
    }
    Common::new(&layers)?.start_log()?;
    let settings = Settings::new(&layers)?;
    let shutdown = Shutdown::on_signals().map_err(|error| error.to_string())?;
    let running = start(settings, shutdown).map_err(stop)?;
    running.announce();
    running.join().map_err(stop)?;
    Ok(ExitCode::SUCCESS)
}

fn stop(failed: Failed) -> Stop {
    match failed {
        Failed::Usage(wrong) => Stop::Usage(wrong),
        Failed::Cannot(..) => Stop::Failed(failed.to_string()),
    }
}
