//! Whether a connection is new.

/// Whether a connection has served an earlier request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFreshness {
    /// The connection was opened for this request.
    New,
    /// The connection was in the pool. An HTTP/2 connection in the pool can have other requests in
    /// flight.
    Reused,
}
