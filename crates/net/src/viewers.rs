//! The CMCD collector (CTA-5004-B): the sessions of viewers, from the reports of their players.
//!
//! A report arrives with a request (query or headers), or as a line of `POST /cmcd`. [`CmcdCollector`]
//! applies it to the session of its `sid` in a bounded table, counts it in metrics, and records it.
//! The admin port shows the sessions as a page and as JSON.
//!
//! Reports are untrusted: each value is bounded, and a session never contains more than its latest
//! values. It contains the client's network, not its address.

mod admin_paths;
mod client_network;
mod collector;
mod collector_metrics;
mod event_request;
mod network_sessions;
mod page;
mod session;
mod session_table;
mod session_view;
mod stall_count;
mod summary;
mod title_name;
mod viewer_class;

pub use admin_paths::admin_response;
pub use collector::{CMCD_PATH, CmcdCollector, DISCOVERY_PATH};
pub use event_request::discovery_response;
