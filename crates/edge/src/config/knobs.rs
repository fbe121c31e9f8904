//! The settings of `headwater edge`, and its help.

use clap::Command;
use net::config::{COMMON, Knob, flags};

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
        "origin-ca",
        "FILE",
        "",
        "Authorities (PEM) whose certificates origins over TLS have, instead of the public ones",
    ),
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
