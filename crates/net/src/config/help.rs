//! Groups and shortens the help of a command.

use clap::{Arg, Command};

/// Options that the help lists under one heading.
#[derive(Debug, Clone, Copy)]
pub struct HelpGroup {
    /// The heading above the options.
    pub heading: &'static str,
    /// The names of the options, in the order of the help.
    pub options: &'static [&'static str],
}

/// The options for clients and their limits. Every server has these options.
pub const CLIENT_OPTIONS: HelpGroup = HelpGroup {
    heading: "Clients and their limits",
    options: &[
        "workers",
        "memory-limit",
        "connections-max",
        "connections-per-address-max",
        "requests-per-address-max",
        "requests-per-network-max",
        "request-burst",
        "header-timeout",
        "idle-timeout",
        "stall-timeout",
        "min-rate",
        "send-memory",
        "connection-send-buffer",
        "header-bytes-max",
        "http2-streams-max",
        "http2-stream-window",
        "http2-connection-window",
        "near-rtt",
    ],
};

/// The options for proxies and restarts, which every server has.
pub const PROXY_OPTIONS: HelpGroup = HelpGroup {
    heading: "Proxies and restarts",
    options: &[
        "trust-proxy",
        "trust-forwarded",
        "announce",
        "drain-timeout",
        "handover-socket",
    ],
};

/// The options of the CMCD collector, which every server has.
pub const COLLECTOR_OPTIONS: HelpGroup = HelpGroup {
    heading: "Viewers (CMCD)",
    options: &[
        "cmcd-collector",
        "cmcd-sessions-max",
        "cmcd-network",
        "cmcd-title-class",
        "cmcd-session-idle",
        "cmcd-records",
        "cmcd-sample",
    ],
};

/// The options of traces, which every server has.
pub const TRACE_OPTIONS: HelpGroup = HelpGroup {
    heading: "Traces",
    options: &[
        "otlp-endpoint",
        "otlp-headers-file",
        "otlp-sample-percent",
        "server-timing-token-file",
    ],
};

/// The heading of options that are in no group.
const OTHERS: &str = "Other options";

/// Sorts options by group. The help shows each group below its heading.
pub fn group_flags(mut options: Vec<Arg>, groups: &[HelpGroup]) -> Vec<Arg> {
    let mut sorted = Vec::with_capacity(options.len());
    for group in groups {
        for name in group.options {
            let place = options.iter().position(|option| option.get_id() == name);
            let found = place.map(|place| options.remove(place));
            sorted.extend(found.map(|option| option.help_heading(group.heading)));
        }
    }
    let others = options.into_iter();
    sorted.extend(others.map(|option| option.help_heading(OTHERS)));
    sorted
}

/// Reduces the help of a command to the options in `shown`. The hidden options remain valid.
///
/// clap can also hide options from `-h` and still show them in `--help`. In that case, however,
/// `--help` prints two lines per option.
pub fn hide_unlisted_options(command: Command, shown: &[&str]) -> Command {
    let name = command.get_name().to_owned();
    let more = format!("`headwater {name} --help` describes all options, with examples.");
    let command = command.after_help(more);
    command.mut_args(|option| match shown.contains(&option.get_id().as_str()) {
        true => option,
        false => option.hide(true),
    })
}
