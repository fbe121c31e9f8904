//! The topics of `headwater edge --help`, and the options of `headwater edge -h`.

use net::config::HelpGroup;

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
            "origin-ca",
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
        options: &["listen", "tls-cert", "tls-key", "admin", "admin-token-file"],
    },
    HelpGroup {
        heading: "Settings and log",
        options: &[
            "config",
            "print-config",
            "log",
            "log-format",
            "records",
            "tcp-interval",
        ],
    },
    HelpGroup {
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
    },
    HelpGroup {
        heading: "Proxies and restarts",
        options: &[
            "trust-proxy",
            "trust-forwarded",
            "announce",
            "drain-timeout",
            "handover-socket",
        ],
    },
];
