//! The topics of `headwater edge --help`, and the options of `headwater edge -h`.

use net::config::{CLIENT_OPTIONS, COLLECTOR_OPTIONS, HelpGroup, PROXY_OPTIONS, TRACE_OPTIONS};

/// The options that `-h` shows.
pub(super) const FIRST_OPTIONS: &[&str] = &[
    "origin",
    "origin-health",
    "listen",
    "memory",
    "disk-dir",
    "disk",
    "admin",
    "admin-token-file",
    "tls-cert",
    "tls-key",
    "log",
    "records",
    "config",
    "print-config",
];

/// The options of `--help` by topic.
pub(super) const GROUPS: &[HelpGroup] = &[
    HelpGroup {
        heading: "Origins",
        options: &[
            "origin",
            "edge-secret-file",
            "origin-dns-interval",
            "dns-server",
            "origin-ca",
            "origin-cert",
            "origin-key",
            "origin-balance",
            "origin-health",
            "origin-health-interval",
            "origin-failures",
            "origin-retry-after",
            "origin-slow-start",
            "origin-retries",
            "origin-at-once",
            "origin-connect-timeout",
            "origin-first-byte-timeout",
            "origin-between-timeout",
        ],
    },
    HelpGroup {
        heading: "Cache",
        options: &[
            "memory",
            "disk-dir",
            "disk",
            "negative-ttl",
            "heuristic-max",
            "stale-if-error",
            "forward-host",
            "forward",
            "cookies",
            "body-max",
        ],
    },
    HelpGroup {
        heading: "Listening and administration",
        options: &[
            "listen",
            "tls-cert",
            "tls-key",
            "client-ca",
            "admin",
            "admin-token-file",
        ],
    },
    HelpGroup {
        heading: "Fleet",
        options: &[
            "nats",
            "nats-creds",
            "nats-token-file",
            "nats-ca",
            "node-name",
        ],
    },
    HelpGroup {
        heading: "Settings and log",
        options: &[
            "config",
            "print-config",
            "log",
            "log-format",
            "records",
            "records-format",
            "tcp-interval",
        ],
    },
    COLLECTOR_OPTIONS,
    CLIENT_OPTIONS,
    PROXY_OPTIONS,
    TRACE_OPTIONS,
];
