//! Declaration of the settings, and the help of `headwater edge`.

use super::help_groups::{FIRST_OPTIONS, GROUPS};
use super::nats_settings::NATS;
use clap::Command;
use net::config::{
    COLLECTOR, COMMON, Setting, TRACING, build_command_args, group_flags, hide_unlisted_options,
};

/// All tables of settings of `headwater edge`.
pub const SETTINGS: &[&[Setting]] = &[OWN, NATS, COLLECTOR, TRACING, COMMON];

const OWN: &[Setting] = &[
    Setting::new(
        "origin",
        "URL",
        "",
        "Origin: URL such as http://127.0.0.1:8080, or dns+ URL; several share the requests",
    )
    .as_list(),
    Setting::new(
        "edge-secret-file",
        "FILE",
        "",
        "File with the secret that the edge sends to its origins (same as their edge-secret-file)",
    ),
    Setting::new(
        "origin-dns-interval",
        "DURATION",
        "5s",
        "Interval at which dns+http://, dns+https:// and dns+srv+… origins are resolved",
    ),
    Setting::new(
        "dns-server",
        "IP:PORT",
        "",
        "DNS server for dns+ origins, such as Consul's; repeatable [default: the system's]",
    )
    .as_list(),
    Setting::new(
        "origin-ca",
        "FILE",
        "",
        "PEM file of authorities for origins over TLS, instead of the public ones",
    ),
    Setting::new(
        "origin-cert",
        "FILE",
        "",
        "Certificate chain in PEM that the edge presents to origins with client-ca",
    ),
    Setting::new(
        "origin-key",
        "FILE",
        "",
        "Private key of origin-cert in PEM",
    ),
    Setting::new(
        "origin-balance",
        "path|folder|first",
        "path",
        "Choice of the origin: hash of the path, hash of the title's folder, or first available",
    ),
    Setting::new(
        "origin-health",
        "PATH",
        "",
        "Path of health probes; an origin that fails them gets no requests",
    ),
    Setting::new(
        "origin-health-interval",
        "DURATION",
        "2s",
        "Interval of health probes",
    ),
    Setting::new(
        "origin-failures",
        "N",
        "3",
        "Consecutive failures after which an origin gets no requests for origin-retry-after",
    ),
    Setting::new(
        "origin-retry-after",
        "DURATION",
        "5s",
        "Time for which a failed origin gets no requests; each further failure doubles it",
    ),
    Setting::new(
        "origin-slow-start",
        "DURATION",
        "10s",
        "Time in which a recovered origin returns to its full share",
    ),
    Setting::new(
        "origin-retries",
        "PERCENT",
        "20",
        "Share of requests that may be retried at a second origin",
    ),
    Setting::new(
        "body-max",
        "BYTES",
        "1MiB",
        "Limit on the body of a request",
    ),
    Setting::new(
        "listen",
        "HOST:PORT",
        "127.0.0.1:8081",
        "Address to listen on, or a port of 127.0.0.1; port 0 selects a free port",
    )
    .as_list(),
    Setting::new(
        "memory",
        "MEMORY",
        "50% up to 1GiB",
        "Memory limit of the cache; objects over 1/32 of it are cached in blocks",
    ),
    Setting::new(
        "disk-dir",
        "FOLDER",
        "",
        "Folder of the disk cache, which survives restarts; used by one process only",
    ),
    Setting::new(
        "disk",
        "BYTES",
        "10GiB",
        "Size limit of the disk cache in disk-dir",
    ),
    Setting::new(
        "forward-host",
        "origin|client",
        "origin",
        "Host sent to the origin: that of its URL, or the client's, which is part of the cache key",
    ),
    Setting::new(
        "forward",
        "HEADER",
        "",
        "Request header to forward to the origin in addition to the usual ones",
    )
    .as_list(),
    Setting::new(
        "cookies",
        "cache|pass",
        "cache",
        "Requests with Cookie: use the cache if the response permits it, or bypass it",
    ),
    Setting::new(
        "negative-ttl",
        "DURATION",
        "1s",
        "Lifetime of 404 and 410 responses without cache headers",
    ),
    Setting::new(
        "heuristic-max",
        "DURATION",
        "1h",
        "Limit on the lifetime derived from Last-Modified",
    ),
    Setting::new(
        "stale-if-error",
        "DURATION",
        "0s",
        "Time for which responses without stale-if-error are served stale while the origin fails",
    ),
    Setting::new(
        "origin-at-once",
        "N",
        "1024",
        "Limit on concurrent requests to an origin; others wait, up to origin-connect-timeout",
    ),
    Setting::new(
        "origin-connect-timeout",
        "DURATION",
        "3s",
        "Timeout of a connection attempt to the origin",
    ),
    Setting::new(
        "origin-first-byte-timeout",
        "DURATION",
        "15s",
        "Timeout of the origin's response head",
    ),
    Setting::new(
        "origin-between-timeout",
        "DURATION",
        "15s",
        "Timeout between two reads of the origin's response body",
    ),
    Setting::new(
        "admin",
        "HOST:PORT",
        "",
        "Address of the admin port: status, purges, warming and reloads",
    ),
    Setting::new(
        "admin-token-file",
        "FILE",
        "",
        "File with the token of the admin port",
    ),
    Setting::new(
        "tcp-interval",
        "DURATION",
        "250ms",
        "Interval of TCP samples in the records; 0s: at start and end only",
    ),
];

const AFTER: &str = "\
Each setting is also a line of the TOML file (`memory = \"4GiB\"`) and an environment variable
(`HEADWATER_MEMORY=4GiB`). Flags override variables, and variables override the file.

The file may contain rules. The first matching rule applies; see docs/edge.md:

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

/// Builds the command line of `headwater edge`.
pub fn define_edge_command() -> Command {
    let command = Command::new("edge")
        .about("Cache in front of any origin, with congestion control and pacing per request")
        .after_help(AFTER)
        .args(group_flags(build_command_args(SETTINGS), GROUPS))
        .subcommand(crate::explain_rules::define_explain_command());
    #[cfg(feature = "nats")]
    let command = command.subcommands(crate::fleet::define_fleet_commands());
    command
}

/// Reduces the help of `headwater edge` to the options that most users need, for `-h`.
pub fn shorten_edge_help(command: Command) -> Command {
    hide_unlisted_options(command, FIRST_OPTIONS)
}
