//! How a request can fail: a closed list of kinds, so that failures can be counted.

use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The URL is none that can be asked for.
    Url,
    /// The name has no address.
    Dns,
    /// Nobody listens there.
    Refused,
    /// No way to the host.
    Unreachable,
    /// The connection was not made in time.
    ConnectTimeout,
    /// This machine has no socket or port left.
    NoSocket,
    /// The server's certificate is not trusted.
    Certificate,
    /// The TLS handshake or stream failed otherwise.
    Tls,
    /// The connection was reset.
    Reset,
    /// The connection was closed before an answer began.
    Closed,
    /// The answer is no HTTP.
    Head,
    /// The answer's head is longer than 64 KiB or has over 128 fields.
    HeadTooLong,
    /// The answer did not begin in time.
    Timeout,
    /// The answer began, and did not end in time.
    BodyTimeout,
    /// The body ended before its length.
    Truncated,
    /// The body's chunks are malformed.
    Chunk,
    /// The body is longer than allowed.
    TooLong,
    /// The body has another length than expected.
    WrongLength,
    /// The body has another hash than expected.
    WrongHash,
    /// More redirects than allowed, or one that leads nowhere.
    Redirects,
    /// The HTTP/2 connection or stream failed.
    Http2,
    /// Any other error of the system.
    Io,
}

impl Fault {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Fault; 22] = [
        Fault::Url,
        Fault::Dns,
        Fault::Refused,
        Fault::Unreachable,
        Fault::ConnectTimeout,
        Fault::NoSocket,
        Fault::Certificate,
        Fault::Tls,
        Fault::Reset,
        Fault::Closed,
        Fault::Head,
        Fault::HeadTooLong,
        Fault::Timeout,
        Fault::BodyTimeout,
        Fault::Truncated,
        Fault::Chunk,
        Fault::TooLong,
        Fault::WrongLength,
        Fault::WrongHash,
        Fault::Redirects,
        Fault::Http2,
        Fault::Io,
    ];

    /// What happened, in words.
    pub fn words(self) -> &'static str {
        match self {
            Fault::Url => "no URL that can be asked for",
            Fault::Dns => "name has no address",
            Fault::Refused => "connection refused",
            Fault::Unreachable => "host unreachable",
            Fault::ConnectTimeout => "no connection in time",
            Fault::NoSocket => "this machine has no socket or port left",
            Fault::Certificate => "certificate not trusted",
            Fault::Tls => "TLS failed",
            Fault::Reset => "connection reset",
            Fault::Closed => "closed before an answer",
            Fault::Head => "the answer is no HTTP",
            Fault::HeadTooLong => "head too long",
            Fault::Timeout => "no answer in time",
            Fault::BodyTimeout => "body not ended in time",
            Fault::Truncated => "body cut short",
            Fault::Chunk => "malformed chunks",
            Fault::TooLong => "body longer than allowed",
            Fault::WrongLength => "wrong length",
            Fault::WrongHash => "wrong hash",
            Fault::Redirects => "too many redirects",
            Fault::Http2 => "HTTP/2 failed",
            Fault::Io => "system error",
        }
    }

    /// The kind that an error of the system stands for.
    pub(crate) fn of(error: &io::Error) -> Fault {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused => Fault::Refused,
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
                Fault::Unreachable
            }
            Kind::TimedOut => Fault::ConnectTimeout,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => Fault::Reset,
            Kind::AddrNotAvailable | Kind::AddrInUse => Fault::NoSocket,
            Kind::UnexpectedEof => Fault::Closed,
            _ => match error
                .raw_os_error()
                .map(rustix::io::Errno::from_raw_os_error)
            {
                Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => Fault::NoSocket,
                _ => Fault::Io,
            },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A failure: its kind, and what else is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub fault: Fault,
    /// What the system or library said; not for counting.
    pub detail: Option<Box<str>>,
    /// Nothing of an answer had come: on a reused connection the server had let go of it.
    pub(crate) unanswered: bool,
}

impl Failure {
    pub(crate) fn new(fault: Fault, detail: impl fmt::Display) -> Failure {
        Failure {
            fault,
            detail: Some(detail.to_string().into()),
            unanswered: false,
        }
    }

    pub(crate) fn unanswered(mut self) -> Failure {
        self.unanswered = matches!(self.fault, Fault::Reset | Fault::Closed);
        self
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure {
            fault,
            detail: None,
            unanswered: false,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if let Some(tls) = error
            .get_ref()
            .and_then(|e| e.downcast_ref::<rustls::Error>())
        {
            let fault = match tls {
                rustls::Error::InvalidCertificate(_) => Fault::Certificate,
                _ => Fault::Tls,
            };
            return Failure::new(fault, tls);
        }
        Failure::new(Fault::of(&error), &error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_in_the_order_of_their_numbers() {
        for (number, fault) in Fault::ALL.iter().enumerate() {
            assert_eq!(*fault as usize, number, "{fault}");
        }
    }
}
