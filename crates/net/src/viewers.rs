//! The CMCD collector (CTA-5004-B), which builds sessions of viewers from the reports of their
//! players.
//!
//! A report arrives in the query or the headers of a request, or as a line of `POST /cmcd`.
//! [`CmcdCollector`] applies the report to a session in a bounded table. The session is selected by
//! the session id in the report (`sid`). The collector also counts the report in metrics, and
//! records it. The admin port shows the sessions as a page and as JSON.
//!
//! Reports are untrusted, so each value is bounded, and a session contains only the latest values.
//! A session contains the client's network, but not the client's address.

mod admin_pages;
mod client_network;
mod collector;
mod collector_metrics;
mod event_request;
mod page;
mod session;
mod session_ages_by_network;
mod session_table;
mod session_view;
mod stall_count;
mod summary;
mod title_name;
mod viewer_class;

pub use admin_pages::viewers_response;
pub use collector::{CMCD_PATH, CmcdCollector, DISCOVERY_PATH};
pub use event_request::collector_discovery_response;
