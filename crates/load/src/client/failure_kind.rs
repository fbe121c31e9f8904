//! The kinds of request failures. The list is closed, so that failures can be counted by kind.

use super::ConnectionFreshness;
use http1::ProtocolError;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use std::{fmt, io};

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The URL cannot be requested.
    Url,
    /// The host name has no address.
    Dns,
    /// No server listens at the address.
    Refused,
    /// There is no route to the host.
    Unreachable,
    /// The connection was not established in time.
    ConnectTimeout,
    /// This machine has no free socket or port.
    NoSocket,
    /// The server's certificate is not trusted.
    Certificate,
    /// The TLS handshake or the TLS stream failed for another reason.
    Tls,
    /// The connection was reset.
    Reset,
    /// The connection was closed before the response head was complete.
    Closed,
    /// The response head is not valid HTTP, or there are too many interim responses.
    Head,
    /// The response head is longer than 64 KiB or has more than 128 fields.
    HeadTooLong,
    /// The response did not start in time.
    Timeout,
    /// The response started but did not finish in time.
    BodyTimeout,
    /// The connection was closed before the body was complete.
    Truncated,
    /// The body's chunks are malformed.
    Chunk,
    /// The body is longer than the limit.
    TooLong,
    /// The body's length differs from the expected length.
    WrongLength,
    /// The body's hash differs from the expected hash.
    WrongHash,
    /// There are more redirects than the limit.
    Redirects,
    /// The HTTP/2 connection or stream failed.
    Http2,
    /// The system reported another error.
    Io,
}

impl FailureKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [FailureKind; 22] = [
        FailureKind::Url,
        FailureKind::Dns,
        FailureKind::Refused,
        FailureKind::Unreachable,
        FailureKind::ConnectTimeout,
        FailureKind::NoSocket,
        FailureKind::Certificate,
        FailureKind::Tls,
        FailureKind::Reset,
        FailureKind::Closed,
        FailureKind::Head,
        FailureKind::HeadTooLong,
        FailureKind::Timeout,
        FailureKind::BodyTimeout,
        FailureKind::Truncated,
        FailureKind::Chunk,
        FailureKind::TooLong,
        FailureKind::WrongLength,
        FailureKind::WrongHash,
        FailureKind::Redirects,
        FailureKind::Http2,
        FailureKind::Io,
    ];

    /// Returns the name of the kind in records and metrics.
    pub fn name(self) -> String {
        let name = serde_json::to_value(self).unwrap_or_default();
        name.as_str().unwrap_or_default().to_owned()
    }

    /// Describes the kind in a few words.
    pub fn description(self) -> &'static str {
        match self {
            FailureKind::Url => "invalid URL",
            FailureKind::Dns => "host name not found",
            FailureKind::Refused => "connection refused",
            FailureKind::Unreachable => "host unreachable",
            FailureKind::ConnectTimeout => "connect timeout",
            FailureKind::NoSocket => "no free socket or port on this machine",
            FailureKind::Certificate => "certificate not trusted",
            FailureKind::Tls => "TLS failed",
            FailureKind::Reset => "connection reset",
            FailureKind::Closed => "connection closed before the response",
            FailureKind::Head => "invalid response head",
            FailureKind::HeadTooLong => "response head too long",
            FailureKind::Timeout => "response timeout",
            FailureKind::BodyTimeout => "body timeout",
            FailureKind::Truncated => "truncated body",
            FailureKind::Chunk => "invalid chunked encoding",
            FailureKind::TooLong => "body too long",
            FailureKind::WrongLength => "unexpected body length",
            FailureKind::WrongHash => "unexpected body hash",
            FailureKind::Redirects => "too many redirects",
            FailureKind::Http2 => "HTTP/2 failed",
            FailureKind::Io => "system error",
        }
    }

    /// Returns the failure kind of a system error.
    pub(crate) fn from_io_error(error: &io::Error) -> FailureKind {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused => FailureKind::Refused,
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
                FailureKind::Unreachable
            }
            Kind::TimedOut => FailureKind::ConnectTimeout,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => {
                FailureKind::Reset
            }
            Kind::AddrNotAvailable | Kind::AddrInUse => FailureKind::NoSocket,
            Kind::UnexpectedEof => FailureKind::Closed,
            _ => match error
                .raw_os_error()
                .map(rustix::io::Errno::from_raw_os_error)
            {
                Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => FailureKind::NoSocket,
                _ => FailureKind::Io,
            },
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

/// The kind and the details of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    /// Kind of the failure.
    pub fault: FailureKind,
    /// Message of the system or the library. Failures are counted by kind, not by message.
    pub detail: Option<Box<str>>,
    /// Whether the connection ended before any response byte arrived, or the server refused the
    /// request with a graceful GOAWAY.
    pub(crate) unanswered: bool,
}

impl RequestFailure {
    pub(crate) fn new(fault: FailureKind, detail: impl fmt::Display) -> RequestFailure {
        RequestFailure {
            fault,
            detail: Some(detail.to_string().into()),
            unanswered: false,
        }
    }

    /// Returns whether an HTTP/2 server is closing the connection and did not process the request.
    fn is_refused_by_goaway(&self) -> bool {
        self.unanswered && self.fault == FailureKind::Http2
    }

    /// Returns whether a request can be sent again on another connection. `sent` is the time at
    /// which the request was sent on this connection.
    ///
    /// A request that the server has not processed can always be repeated. If it is unknown whether
    /// the server has processed the request, only idempotent methods are repeated (RFC 9110, 9.2.2),
    /// and only if the connection was reused. A server may close a reused connection while a request
    /// is on its way. If a new connection fails, the server has failed.
    pub(crate) fn can_be_repeated(
        &self,
        method: &http::Method,
        sent: Option<Instant>,
        connection: ConnectionFreshness,
    ) -> bool {
        let is_unprocessed = sent.is_none() || self.is_refused_by_goaway();
        let is_reused = connection == ConnectionFreshness::Reused;
        self.unanswered && (is_unprocessed || (method.is_idempotent() && is_reused))
    }

    pub(crate) fn mark_unanswered(mut self) -> RequestFailure {
        self.unanswered = matches!(self.fault, FailureKind::Reset | FailureKind::Closed);
        self
    }
}

impl From<FailureKind> for RequestFailure {
    fn from(fault: FailureKind) -> RequestFailure {
        RequestFailure {
            fault,
            detail: None,
            unanswered: false,
        }
    }
}

impl From<ProtocolError> for RequestFailure {
    fn from(error: ProtocolError) -> RequestFailure {
        let fault = match error {
            ProtocolError::HeadTooLong => FailureKind::HeadTooLong,
            ProtocolError::Truncated => FailureKind::Truncated,
            ProtocolError::ChunkSize
            | ProtocolError::ChunkExtensionsTooLong
            | ProtocolError::ChunkEnd
            | ProtocolError::Trailer
            | ProtocolError::TrailersTooLong => FailureKind::Chunk,
            _ => FailureKind::Head,
        };
        RequestFailure::new(fault, error)
    }
}

impl From<io::Error> for RequestFailure {
    fn from(error: io::Error) -> RequestFailure {
        if let Some(tls) = error
            .get_ref()
            .and_then(|e| e.downcast_ref::<rustls::Error>())
        {
            let fault = match tls {
                rustls::Error::InvalidCertificate(_) => FailureKind::Certificate,
                _ => FailureKind::Tls,
            };
            return RequestFailure::new(fault, tls);
        }
        RequestFailure::new(FailureKind::from_io_error(&error), &error)
    }
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

impl std::error::Error for RequestFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_are_listed_in_order() {
        for (number, fault) in FailureKind::ALL.iter().enumerate() {
            assert_eq!(*fault as usize, number, "{fault}");
        }
    }
}
