//! Every setting, declared once.

use clap::{Arg, ArgAction, Command};

/// One setting. Its flag is `--NAME`, its TOML key `NAME`, its variable `HEADWATER_NAME` in
/// capitals with underscores.
pub(super) struct Knob {
    pub(super) name: &'static str,
    /// What its value looks like.
    value: &'static str,
    /// In force when nobody says otherwise; empty: nothing.
    pub(super) default: &'static str,
    /// Whether it may be given several times (in TOML: an array; in the environment: commas).
    pub(super) list: bool,
    help: &'static str,
}

const fn knob(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Knob {
    Knob {
        name,
        value,
        default,
        list: false,
        help,
    }
}

/// The library's knob is the only one without dashes on the command line.
pub(super) const SOURCE: &str = "source";
pub(super) const CONFIG: &str = "config";
pub(super) const PRINT: &str = "print-config";

pub(super) const KNOBS: &[Knob] = &[
    knob(
        SOURCE,
        "SOURCE",
        "",
        "Folder of films, or one film; without it, the built-in film is served",
    ),
    Knob {
        list: true,
        ..knob(
            "listen",
            "HOST:PORT",
            "127.0.0.1:8080",
            "Where to listen; port 0 takes a free one",
        )
    },
    knob(
        "segment",
        "DURATION",
        "6s",
        "Wished segment length; cuts go to the nearest common key frames",
    ),
    knob(
        "hls-segment",
        "DURATION",
        "",
        "The same for HLS alone; two lengths mean two sets in caches",
    ),
    knob("dash-segment", "DURATION", "", "The same for DASH alone"),
    knob(
        "workers",
        "N",
        "0",
        "Threads that serve, each with its own listeners; 0: one per core",
    ),
    knob(
        "tls-cert",
        "FILE",
        "",
        "Certificate chain in PEM: all listeners then speak TLS",
    ),
    knob("tls-key", "FILE", "", "Private key in PEM"),
    knob(
        "index-memory",
        "BYTES",
        "512MiB",
        "Most memory for indexes and manifests; a two-hour film takes about 5 MiB",
    ),
    knob(
        "recheck",
        "DURATION",
        "1s",
        "How long a path is trusted to lead to the same files; 0s: look at each request",
    ),
    knob(
        "log-format",
        "text|json",
        "text",
        "How the log on standard error is written",
    ),
    knob(
        "log",
        "FILTER",
        "info",
        "What is logged: error, warn, info, debug, or tracing's directives",
    ),
    knob(
        "records",
        "FILE",
        "",
        "Write an access record per request to FILE, a JSON object a line",
    ),
    knob(
        "connections-max",
        "N",
        "",
        "Open connections in all; one more is answered 503",
    ),
    knob(
        "connections-per-address-max",
        "N",
        "",
        "Open connections of one address",
    ),
    knob(
        "header-timeout",
        "DURATION",
        "",
        "Time for a request's header to arrive",
    ),
    knob(
        "idle-timeout",
        "DURATION",
        "",
        "Time a connection may be kept without a request",
    ),
    knob(
        "stall-timeout",
        "DURATION",
        "",
        "Time a client may take no byte of its response",
    ),
    knob(
        "announce",
        "DURATION",
        "",
        "After SIGTERM, time to go on accepting while /readyz says no",
    ),
    knob(
        "drain-timeout",
        "DURATION",
        "",
        "Then, time for responses under way to end",
    ),
];

const AFTER: &str = "\
Each setting is also a line of the TOML file (`segment = \"4s\"`) and an environment variable
(`HEADWATER_SEGMENT=4s`). Flags go before variables, variables before the file.

Examples:
  headwater serve                                    the built-in film, on http://127.0.0.1:8080
  headwater serve ~/films --listen 0.0.0.0:8080      your own films, for the whole network
  headwater serve film.mp4 --segment 4s              one film, shorter segments
  headwater serve ~/films --tls-cert c.pem --tls-key k.pem --listen 0.0.0.0:443
  headwater serve --config headwater.toml --print-config";

/// The words of `headwater serve`.
pub fn command() -> Command {
    let flags = KNOBS.iter().map(|knob| {
        let action = if knob.list {
            ArgAction::Append
        } else {
            ArgAction::Set
        };
        let arg = Arg::new(knob.name)
            .value_name(knob.value)
            .help(help(knob))
            .action(action);
        if knob.name == SOURCE {
            arg
        } else {
            arg.long(knob.name)
        }
    });
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .help("Read settings from a TOML file");
    let print = Arg::new(PRINT)
        .long(PRINT)
        .action(ArgAction::SetTrue)
        .help("Print the settings in force and who set them, and end");
    Command::new("serve")
        .about("Serve films as HLS and DASH, packaged as they are asked for")
        .after_help(AFTER)
        .args(flags)
        .arg(config)
        .arg(print)
}

fn help(knob: &Knob) -> String {
    match (knob.default, knob.list) {
        ("", _) => knob.help.to_owned(),
        (default, false) => format!("{} [default: {default}]", knob.help),
        (default, true) => format!("{}; may be repeated [default: {default}]", knob.help),
    }
}
