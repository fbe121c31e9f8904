//! Errors, and the responses that say them: whose side, which status, whether a retry helps, and
//! what happened where.

use std::fmt;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use crate::Body;
use crate::headers::ERROR;

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The request was wrong.
    Client,
    /// The storage or server behind us failed.
    Upstream,
    /// We, or our machine, failed.
    Internal,
}

impl Side {
    /// `client`, `upstream` or `internal`.
    pub fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Upstream => "upstream",
            Side::Internal => "internal",
        }
    }
}

/// A request that cannot be answered as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub side: Side,
    /// The status to answer with.
    pub status: StatusCode,
    /// The same request may succeed a little later.
    pub retry: bool,
    /// What happened, and where (object, box, byte). Shown to the client and written to the record.
    pub context: String,
}

/// The most characters of context that a response carries in its header.
const HEADER_CHARS_MAX: usize = 400;

impl Error {
    /// The request is wrong: a 4xx.
    pub fn client(status: StatusCode, context: impl fmt::Display) -> Error {
        Error {
            side: Side::Client,
            status,
            retry: false,
            context: context.to_string(),
        }
    }

    /// What is behind us failed: 502, 503 or 504. A retry may help.
    pub fn upstream(status: StatusCode, context: impl fmt::Display) -> Error {
        Error {
            side: Side::Upstream,
            status,
            retry: true,
            context: context.to_string(),
        }
    }

    /// We failed: 500.
    pub fn internal(context: impl fmt::Display) -> Error {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Error {
            side: Side::Internal,
            status,
            retry: false,
            context: context.to_string(),
        }
    }

    /// The same error, with its retry advice changed.
    #[must_use]
    pub fn with_retry(mut self, retry: bool) -> Error {
        self.retry = retry;
        self
    }

    /// A short text body, the reason in `Headwater-Error`, and a caching rule that lets a cache
    /// absorb a storm of wrong requests for a second, but never keeps a server's failure.
    pub fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::full(format!("{self}\n")));
        *response.status_mut() = self.status;
        let caching = if self.status.is_server_error() {
            "no-store"
        } else {
            "max-age=1"
        };
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
        headers.insert(ERROR, self.header());
        if self.retry {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// `side; reason` in visible ASCII.
    fn header(&self) -> HeaderValue {
        let reason = self.context.chars().take(HEADER_CHARS_MAX);
        let reason = reason.map(|c| {
            if c.is_ascii_graphic() || c == ' ' {
                c
            } else {
                '?'
            }
        });
        let text: String = format!("{}; ", self.side.name())
            .chars()
            .chain(reason)
            .collect();
        HeaderValue::from_str(text.trim_end())
            .unwrap_or_else(|_| HeaderValue::from_static("internal"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.context)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_visible_ascii_whatever_the_reason_says() {
        let context = format!(
            "no title \u{7f}\r\nSet-Cookie: a=b\u{e9}\0 {}",
            "x".repeat(10_000)
        );
        let response = Error::client(StatusCode::NOT_FOUND, context).response();
        let header = response.headers()[ERROR].to_str().unwrap();
        assert!(
            header.starts_with("client; no title ???Set-Cookie: a=b?? xxx"),
            "{header}"
        );
        assert_eq!(header.len(), "client; ".len() + HEADER_CHARS_MAX);
    }

    #[test]
    fn a_clients_error_is_kept_for_a_second_and_a_servers_is_not() {
        let cases = [
            (
                Error::client(StatusCode::GONE, "old version"),
                410,
                "max-age=1",
                None,
            ),
            (
                Error::upstream(StatusCode::BAD_GATEWAY, "reset"),
                502,
                "no-store",
                Some("1"),
            ),
            (Error::internal("disk full"), 500, "no-store", None),
        ];
        for (error, status, caching, retry_after) in cases {
            let response = error.response();
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()[CACHE_CONTROL], caching);
            let retry = response
                .headers()
                .get(RETRY_AFTER)
                .map(|value| value.to_str().unwrap());
            assert_eq!(retry, retry_after);
        }
    }
}
