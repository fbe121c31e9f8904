//! What can be chosen about a remote library.

use super::{Holder, Watch};
use crate::Transport;
use regex::Regex;

/// What can be chosen about a remote library. Local ones need none of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// How connections are made and kept.
    pub transport: Transport,
    /// Objects whose requests go through a server before the storage; the first match counts.
    pub via: Vec<Via>,
    /// Other places that hold the same objects under the same names.
    pub endpoints: Vec<Weighted>,
    /// The storage's own settings, by `object_store`'s names (`aws_region`); they go before the
    /// environment's.
    pub settings: Vec<(String, String)>,
    /// Most bytes of ranges kept in memory; 0: none.
    pub memory_bytes: u64,
    /// Most bytes beside them that are fetched and not yet taken; what is over it is fetched in
    /// small parts, each when the one before was taken.
    pub unsent_bytes: u64,
    /// Most pipes through which bytes pass uncopied where none are kept in memory, each of two
    /// descriptors and of what came and was not sent; who gets none copies.
    pub pipes: usize,
    /// Bytes between two wanted parts that are rather read along than asked for apart.
    pub waste_bytes: u64,
    /// How often a request is sent again, at most.
    pub retries: u32,
    /// Requests sent again, as a share of all.
    pub retry_share: f64,
    /// Requests sent a second time because the first is slow, as a share of all; 0: never.
    pub hedge_share: f64,
    /// How slow: slower than this share of the last ones, such as 0.95.
    pub hedge_percentile: f64,
    /// Threads for what is asked where there is no runtime, and for connections that are shared.
    pub threads: usize,
    /// Told of every request when it is over.
    pub watch: Option<Watch>,
    /// Asked when a fetch begins that others may wait for.
    pub holder: Option<Holder>,
}

/// A route for some requests.
#[derive(Debug, Clone)]
pub struct Via {
    /// Which: found in the object's key.
    pub matches: Regex,
    /// The server they are sent to, unchanged; only scheme, host and port count.
    pub url: String,
}

/// A place that holds the library.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// As [`Store::new`](crate::Store::new) takes it; only remote ones.
    pub url: String,
    /// Share of the objects that are read there, against the others' weights.
    pub weight: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            transport: Transport::default(),
            via: Vec::new(),
            endpoints: Vec::new(),
            settings: Vec::new(),
            memory_bytes: 256 << 20,
            unsent_bytes: 256 << 20,
            // As many as a user may have who has no privilege, at 1 MiB each
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
