//! Options of remote libraries.

use super::{RequestObserver, ThreadHoldFactory};
use crate::TransportOptions;
use regex::Regex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of a library. Local libraries use `follow_links` only.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether links in a local folder may lead out of the folder.
    pub follow_links: bool,
    /// Options of the connections.
    pub transport: TransportOptions,
    /// Routes through a server in front of the storage. For each object, the first matching route
    /// is used.
    pub via: Vec<KeyRoute>,
    /// Other endpoints with the same objects under the same names.
    pub endpoints: Vec<WeightedEndpoint>,
    /// Settings of the storage, with the names that `object_store` uses (`aws_region`). They
    /// override environment variables.
    pub settings: Vec<(String, String)>,
    /// Maximum size of the range cache in bytes. 0 disables the cache.
    pub memory_bytes: u64,
    /// While this flag is set, no range is cached, and ranges that are already cached are dropped.
    pub is_caching_suspended: Arc<AtomicBool>,
    /// Maximum number of bytes that are fetched but not read yet, in addition to the cache. When
    /// this limit is reached, ranges are fetched in small windows while the reader consumes them.
    pub unsent_bytes: u64,
    /// Maximum number of pipes for spliced responses. Responses are spliced only if the cache is
    /// disabled. Each pipe takes two file descriptors, and memory for its unsent bytes. Responses
    /// without a pipe are copied.
    pub pipes: usize,
    /// Longest gap, in bytes, that is read together with the two wanted ranges around it.
    pub waste_bytes: u64,
    /// Maximum number of retries of one request.
    pub retries: u32,
    /// Maximum number of retries as a share of all requests.
    pub retry_share: f64,
    /// Maximum number of hedged requests as a share of all requests. 0 disables hedging.
    pub hedge_share: f64,
    /// A request is hedged when it takes longer than this percentile of the recent times to first
    /// byte. The percentile is a fraction, for example 0.95.
    pub hedge_percentile: f64,
    /// Number of threads that open objects, list folders, drive shared connections, and fetch
    /// ranges for callers without a Tokio runtime.
    pub threads: usize,
    /// Observes completed requests.
    pub watch: Option<RequestObserver>,
    /// Keeps the caller's thread alive while a shared fetch runs on this thread.
    pub holder: Option<ThreadHoldFactory>,
}

/// A route for objects whose keys match a pattern.
#[derive(Debug, Clone)]
pub struct KeyRoute {
    /// The pattern that must match the object key or a part of the key.
    pub matches: Regex,
    /// URL of the server that gets the requests. Only its scheme, host and port are used.
    pub url: String,
}

/// An endpoint with its share of the objects.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedEndpoint {
    /// A remote URL as for [`Store::new`](crate::Store::new).
    pub url: String,
    /// The share of the objects, relative to the other weights.
    pub weight: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            follow_links: false,
            transport: TransportOptions::default(),
            via: Vec::new(),
            endpoints: Vec::new(),
            settings: Vec::new(),
            memory_bytes: 256 << 20,
            is_caching_suspended: Arc::default(),
            unsent_bytes: 256 << 20,
            // By default, Linux allows an unprivileged user this many pipes of 1 MiB each
            // (`/proc/sys/fs/pipe-user-pages-soft`).
            pipes: 64,
            waste_bytes: 1 << 20,
            retries: 2,
            retry_share: 0.2,
            hedge_share: 0.05,
            hedge_percentile: 0.95,
            threads: 2,
            watch: None,
            holder: None,
        }
    }
}
