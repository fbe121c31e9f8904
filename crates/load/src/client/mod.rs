//! The HTTP client. It counts and discards response bodies, records the time of every step, and
//! assigns a kind to every failure. Its use of resources is bounded.
//!
//! A [`HttpClient`] takes an idle connection, or its [`Dialer`] opens a new connection (`dialer`,
//! `connection_stream`). The client sends one request on this connection (`http1_exchange` with
//! `response_head` and the `http1` codec, or `http2_exchange`). The client passes the body to a
//! [`ResponseSink`], unless the kernel discards the body. The client follows redirects, and returns
//! a [`RequestOutcome`]. The engine of `headwater load rate` uses the same connections without the
//! pool.

mod client_request;
mod client_settings;
mod connection_freshness;
mod connection_stream;
mod dialer;
mod expected_body;
mod failure_kind;
pub(crate) mod http1_exchange;
pub(crate) mod http2_exchange;
mod http_client;
mod response_head;
mod response_sink;
mod tls_setup;
mod transfer_progress;
mod url_credentials;

pub(crate) use client_request::range_value;
pub use client_request::{ClientRequest, RequestOutcome};
pub use client_settings::{ClientSettings, HttpVersion};
pub use connection_freshness::ConnectionFreshness;
pub use dialer::{ConnectionCounts, Dialer};
pub use expected_body::{BodyDigest, ExpectedBody};
pub use failure_kind::{FailureKind, RequestFailure};
pub use http_client::HttpClient;
pub(crate) use http_client::{ATTEMPTS_MAX, redirect_target};
pub use response_sink::{DiscardSink, MemorySink, ResponseSink};
pub use tls_setup::TlsSetupError;
pub use transfer_progress::TransferProgress;
pub use url::Url;

pub(crate) use dialer::ClientConnection;

#[cfg(test)]
mod tests;
