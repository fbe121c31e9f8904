//! HTTP/1.1 connections to upstream servers, which are object stores for `store` and origins for
//! `edge`.
//!
//! A [`Connector`] opens TCP and TLS connections and counts them. A [`Connection`] performs one
//! exchange at a time with the codec of `http1`. Between exchanges, the connection is stored in
//! [`IdleConnections`]. [`UpstreamClient`] combines these types for one server, with timeouts and
//! repeated requests. `store` uses the same connections, but limits its requests itself and has its
//! own HTTP/2 client (decision 21).
//!
//! This crate accepts no connections, caches nothing, and does not retry a request on another
//! server.

mod address;
mod client;
mod client_certificate;
mod connection;
mod connector;
mod counts;
mod detachable_socket;
mod error;
mod idle;
mod interim;
mod outgoing;
mod read_buffers;
mod response;
mod tls;
mod upload;

pub use address::ServerAddress;
pub use client::{UnsentRequest, UpstreamClient, UpstreamLimits};
pub use client_certificate::ClientCertificate;
pub use connection::{BodyData, Connection};
pub use connector::{Connector, OpenedStream};
pub use counts::{ConnectionCounts, ConnectionGuard};
pub use detachable_socket::{ClientStream, DetachableSocket};
pub use error::{ConnectError, ExchangeError, UpstreamError};
pub use idle::IdleConnections;
pub use interim::InterimHandler;
pub use outgoing::ExchangeRequest;
pub use read_buffers::ReadBuffers;
pub use response::{UpstreamResponse, UpstreamTiming};
pub use tls::{ALPN_HTTP1, ALPN_HTTP2, TrustedAuthorities, client_config};
pub use upload::RequestUpload;

#[cfg(test)]
mod tests;
