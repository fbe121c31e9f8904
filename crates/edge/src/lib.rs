//! The edge: an HTTP cache in front of any origin, with congestion control and pacing per request.
//!
//! The module `request` takes a request through these states, in this order:
//!
//! 1. `handle_request`: `request_facts` reads method, target, cache key and directives, and rejects
//!    forwarding loops. `apply_rules` evaluates the rules for requests.
//! 2. `lookup_memory` searches the memory tier for the key, or for the key of the variant.
//! 3. `lookup_disk` loads the entry from the disk tier into memory, if the entry is only on disk.
//! 4. `plan` decides between hit, stale, fetch, pass and refuse, and gives the reason.
//! 5. `fetch_or_join`: the first request for a key leads a fetch (`fetch_as_leader`), and all other
//!    requests for this key follow the fetch. `fetch` runs in its own task, and `freshness` decides
//!    whether the response may be stored. `fetch_uncoalesced` and `pass` never wait for the fetch
//!    of another request.
//! 6. `respond_with_fetch_outcome`: `deliver` evaluates conditions and ranges, and adds `Age`, `Via` and
//!    `Cache-Status`. Readers follow a body that is still growing. `blocks` reads large objects.
//! 7. `apply_rules` applies the rule for the response. Congestion control and pace are set before
//!    the first byte is sent. `tcp_sampling` samples TCP statistics.
//! 8. `telemetry` writes the access record and the counters when the body has been sent.
//!
//! The crate contains no media code, because the edge serves every HTTP origin in the same way.

// Start, settings and reloads.
pub mod config;
mod reload;
mod serve;

// The request.
mod edge;
mod request;
mod request_facts;

// Rules.
mod apply_rules;
mod rules;

// The cache.
mod block_layout;
mod cache_decision;
mod cache_entry;
mod cache_key;
mod cache_outcome;
mod cached_object;
mod disk;
mod disk_body;
mod freshness;
mod object_body;

// The origin.
mod blocks;
mod fetch;
mod headers;
mod origins;

// The response.
mod content_kind;
mod deliver;
mod tcp_sampling;
mod telemetry;

// Operation.
mod admin;
mod explain_rules;
#[cfg(feature = "nats")]
mod fleet;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod purge;
mod warm;

pub use net::admin_port::ADMIN;
pub use serve::{run_edge_command, start_edge};

use crate::edge::Edge;
