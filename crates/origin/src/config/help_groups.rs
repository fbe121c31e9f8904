//! The topics of `headwater serve --help`, and the options of `headwater serve -h`.

use net::config::{CLIENT_OPTIONS, COLLECTOR_OPTIONS, HelpGroup, PROXY_OPTIONS, TRACE_OPTIONS};

/// The options that `-h` shows.
pub(super) const FIRST_OPTIONS: &[&str] = &[
    "source",
    "listen",
    "segment",
    "follow-links",
    "storage-option",
    "segment-memory",
    "aes-secret",
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
        heading: "Library and packaging",
        options: &[
            "listen",
            "segment",
            "hls-segment",
            "dash-segment",
            "closed-captions",
            "default-audio",
            "hls-text",
            "dash-text",
            "follow-links",
            "media-from",
            "recheck",
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
        ],
    },
    HelpGroup {
        heading: "Administration",
        options: &["admin", "admin-token-file", "edge-secret-file"],
    },
    HelpGroup {
        heading: "Encryption",
        options: &[
            "tls-cert",
            "tls-key",
            "client-ca",
            "aes-secret",
            "aes-key-url",
        ],
    },
    HelpGroup {
        heading: "Protection (DRM)",
        options: &[
            "drm-keys",
            "drm-source-keys",
            "drm-scheme",
            "drm-key-per",
            "drm-headers-file",
            "drm-private-key",
            "drm-certificate",
            "drm-speke-version",
            "drm-cache",
            "drm-stale-if-error",
            "drm-systems",
            "drm-license-url-widevine",
            "drm-license-url-playready",
            "drm-license-url-clearkey",
            "drm-fairplay-uri",
            "drm-pssh",
            "drm-clear-tracks",
            "drm-rule",
        ],
    },
    HelpGroup {
        heading: "Caches",
        options: &[
            "segment-memory",
            "index-memory",
            "index-cache",
            "index-cache-dir",
            "index-disk",
        ],
    },
    HelpGroup {
        heading: "Remote storage",
        options: &[
            "storage-option",
            "storage-ca",
            "storage-endpoint",
            "storage-via",
            "storage-memory",
            "storage-unsent",
            "storage-waste",
            "storage-read-ahead",
            "storage-connections",
            "storage-connections-max",
            "storage-http",
            "storage-idle-timeout",
            "storage-connect-timeout",
            "storage-first-byte-timeout",
            "storage-stall-timeout",
            "storage-retries",
            "storage-hedge-percent",
        ],
    },
    COLLECTOR_OPTIONS,
    CLIENT_OPTIONS,
    PROXY_OPTIONS,
    TRACE_OPTIONS,
];
