//! Failures of connections and exchanges. No message contains a credential.

use http1::ProtocolError;
use std::{fmt, io};

/// The reason why a connection could not be opened.
#[derive(Debug)]
pub enum ConnectError {
    /// The host name could not be resolved, or the TCP connection could not be opened.
    Tcp(io::Error),
    /// The TLS handshake failed, for example because the certificate is not trusted.
    Tls(io::Error),
    /// The connect timeout elapsed.
    TimedOut,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Tcp(error) | ConnectError::Tls(error) => error.fmt(f),
            ConnectError::TimedOut => f.write_str("connect timeout"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// The reason why an exchange on an open connection failed.
#[derive(Debug)]
pub enum ExchangeError {
    /// The socket or the TLS session failed.
    Io(io::Error),
    /// The server's response is invalid, or ends too early.
    Protocol(ProtocolError),
    /// The server closed the connection before it sent a whole head.
    Closed,
    /// The server closed the connection in the middle of a body of declared length.
    Truncated {
        /// Bytes of the declared length that were not received.
        missing: u64,
    },
    /// The server switched protocols, or sent too many interim responses.
    UnexpectedInterim,
    /// Reading the request's body failed, or the body did not have its declared length.
    Upload(String),
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExchangeError::Io(error) => error.fmt(f),
            ExchangeError::Protocol(error) => error.fmt(f),
            ExchangeError::Closed => f.write_str("connection closed before a response"),
            ExchangeError::Truncated { missing } => {
                write!(f, "connection closed {missing} bytes early")
            }
            ExchangeError::UnexpectedInterim => f.write_str("unexpected 1xx response"),
            ExchangeError::Upload(reason) => write!(f, "request body: {reason}"),
        }
    }
}

impl std::error::Error for ExchangeError {}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> ExchangeError {
        ExchangeError::Io(error)
    }
}

impl From<ProtocolError> for ExchangeError {
    fn from(error: ProtocolError) -> ExchangeError {
        ExchangeError::Protocol(error)
    }
}

/// The reason why [`UpstreamClient`](crate::UpstreamClient) received no response, or only a part of
/// the response body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamError {
    /// Whether a timeout elapsed.
    pub is_timeout: bool,
    /// Whether the request may have reached the server.
    pub may_have_arrived: bool,
    /// Whether the request's body caused the failure, for example because the body was incomplete.
    /// The server is then not at fault.
    pub is_upload: bool,
    /// Whether the limit on requests in flight caused the failure. Nothing was sent, and the server
    /// is not at fault.
    pub is_request_limit: bool,
    /// A description of the failure.
    pub reason: String,
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for UpstreamError {}
