//! Options of remote libraries.

use super::{FetchHolds, RequestObserver};
use crate::TransportOptions;
use regex::Regex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of a library. Local libraries use `follow_links` only.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether links in a local folder may lead out of it.
    pub follow_links: bool,
    /// Options of the connections.
    pub transport: TransportOptions,
    /// Routes through a server in front of the storage; the first match counts.
    pub via: Vec<EndpointRoute>,
    /// Other endpoints with the same objects under the same names.
    pub endpoints: Vec<WeightedEndpoint>,
    /// Settings of the storage by `object_store`'s names (`aws_region`). They override the environment.
    pub settings: Vec<(String, String)>,
    /// Bytes of cached ranges; 0 disables the cache.
    pub memory_bytes: u64,
    /// While set, no range is cached, and cached ones are dropped.
    pub is_caching_suspended: Arc<AtomicBool>,
    /// Bytes that are fetched and not yet read, in addition to the cache. When this limit is
    /// reached, ranges are fetched in small windows while the reader consumes them.
    pub unsent_bytes: u64,
    /// Pipes for responses that are spliced because nothing is cached. Each pipe takes two
    /// descriptors, and memory for its unsent bytes. Responses without a pipe are copied.
    pub pipes: usize,
    /// Longest gap between two wanted ranges that is read together with them.
    pub waste_bytes: u64,
    /// Maximum number of retries of one request.
    pub retries: u32,
    /// Maximum number of retries as a share of all requests.
    pub retry_share: f64,
    /// Maximum number of hedged requests as a share of all requests; 0 disables hedging.
    pub hedge_share: f64,
    /// A request is hedged when it is slower than this share of the last ones, such as 0.95.
    pub hedge_percentile: f64,
    /// Threads for callers without a runtime, and for shared connections.
    pub threads: usize,
    /// Observes completed requests.
    pub watch: Option<RequestObserver>,
    /// Keeps the caller's thread alive while a shared fetch runs on it.
    pub holder: Option<FetchHolds>,
}

/// A route for some requests.
#[derive(Debug, Clone)]
pub struct EndpointRoute {
    /// Matches a part of the object key.
    pub matches: Regex,
    /// The server that gets the requests; only scheme, host and port count.
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
            // An unprivileged user may have this many pipes of 1 MiB each
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
