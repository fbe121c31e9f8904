//! Errors and the responses that report them. An error contains the failing side, the status,
//! whether a retry may help, and the cause.

use std::fmt;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use crate::Body;
use crate::headers::ERROR;

/// The side that caused the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorSide {
    /// The request was wrong.
    Client,
    /// The storage or server behind this server failed.
    Upstream,
    /// This server or its machine failed.
    Internal,
}

impl ErrorSide {
    /// Returns `client`, `upstream` or `internal`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorSide::Client => "client",
            ErrorSide::Upstream => "upstream",
            ErrorSide::Internal => "internal",
        }
    }
}

/// The reason why a request cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The side that caused the error.
    pub side: ErrorSide,
    /// The response's status.
    pub status: StatusCode,
    /// Whether the same request may succeed a little later.
    pub retry: bool,
    /// The cause and its place, such as an object, an MP4 box or a byte position. The client
    /// receives this text. The record also contains this text, unless there is a `detail`.
    pub context: String,
    /// Details for operators about the cause, such as the address of the failed server. Only the
    /// record contains this text.
    pub detail: Option<String>,
}

/// Limit on the part of `context` that is sent in `Headwater-Error`, in characters.
const HEADER_CHARS_MAX: usize = 400;

impl Error {
    /// Creates an error that the client caused, with a 4xx status.
    pub fn new_client_error(status: StatusCode, context: impl fmt::Display) -> Error {
        Error {
            side: ErrorSide::Client,
            status,
            retry: false,
            context: context.to_string(),
            detail: None,
        }
    }

    /// Creates an error of the storage or server behind this server, with status 502, 503 or 504. A
    /// retry may help.
    pub fn new_upstream_error(status: StatusCode, context: impl fmt::Display) -> Error {
        Error {
            side: ErrorSide::Upstream,
            status,
            retry: true,
            context: context.to_string(),
            detail: None,
        }
    }

    /// Creates an error of this server, with status 500.
    pub fn new_internal_error(context: impl fmt::Display) -> Error {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Error {
            side: ErrorSide::Internal,
            status,
            retry: false,
            context: context.to_string(),
            detail: None,
        }
    }

    /// Returns the error with a changed value of `retry`.
    #[must_use]
    pub fn with_retryable(mut self, retry: bool) -> Error {
        self.retry = retry;
        self
    }

    /// Returns the error with details for operators.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Error {
        self.detail = Some(detail.to_string());
        self
    }

    /// Returns the description of the cause for operators. This is `detail`, or `context` if there
    /// is no `detail`.
    pub fn operator_message(&self) -> &str {
        self.detail.as_deref().unwrap_or(&self.context)
    }

    /// Returns a response with a short text body and the reason in `Headwater-Error`.
    ///
    /// Caches may store an error that depends only on the target (404, 410 and 414) for one second,
    /// which absorbs a burst of wrong requests. They must not store any other error. It is a
    /// failure of the server, or depends on the client or on other fields of the request.
    pub fn to_response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from_bytes(format!("{self}\n")));
        *response.status_mut() = self.status;
        let caching = match self.status {
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::URI_TOO_LONG => "max-age=1",
            _ => "no-store",
        };
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
        headers.insert(ERROR, self.header_value());
        if self.retry {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// Returns `side; reason` in visible ASCII.
    fn header_value(&self) -> HeaderValue {
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
    fn the_header_is_visible_ascii_for_any_reason() {
        let context = format!(
            "no title \u{7f}\r\nSet-Cookie: a=b\u{e9}\0 {}",
            "x".repeat(10_000)
        );
        let response = Error::new_client_error(StatusCode::NOT_FOUND, context).to_response();
        let header = response.headers()[ERROR].to_str().unwrap();
        assert!(
            header.starts_with("client; no title ???Set-Cookie: a=b?? xxx"),
            "{header}"
        );
        assert_eq!(header.len(), "client; ".len() + HEADER_CHARS_MAX);
    }

    #[test]
    fn the_detail_is_for_the_record_only() {
        let error =
            Error::new_upstream_error(StatusCode::BAD_GATEWAY, "the origin is not reachable");
        assert_eq!(error.operator_message(), "the origin is not reachable");
        let detailed = error.clone().with_detail("127.0.0.1:9: refused");
        assert_eq!(detailed.operator_message(), "127.0.0.1:9: refused");
        assert_eq!(detailed.to_string(), error.to_string());
        assert_eq!(
            detailed.to_response().headers()[ERROR],
            "upstream; the origin is not reachable"
        );
    }

    #[test]
    fn only_an_error_that_depends_on_the_target_alone_is_cacheable() {
        for status in [404, 410, 414] {
            assert_eq!(caching_of(status), "max-age=1", "{status}");
        }
        for status in [
            400, 401, 403, 405, 408, 412, 413, 416, 429, 431, 500, 501, 503,
        ] {
            assert_eq!(caching_of(status), "no-store", "{status}");
        }
    }

    fn caching_of(status: u16) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        let response = Error::new_client_error(status, "test").to_response();
        let value = response.headers()[CACHE_CONTROL].to_str();
        value.unwrap().to_owned()
    }

    #[test]
    fn an_error_that_permits_a_retry_has_retry_after() {
        let cases = [
            (
                Error::new_client_error(StatusCode::GONE, "old version"),
                410,
                None,
            ),
            (
                Error::new_upstream_error(StatusCode::BAD_GATEWAY, "reset"),
                502,
                Some("1"),
            ),
            (Error::new_internal_error("disk full"), 500, None),
        ];
        for (error, status, retry_after) in cases {
            let response = error.to_response();
            assert_eq!(response.status(), status);
            let retry = response
                .headers()
                .get(RETRY_AFTER)
                .map(|value| value.to_str().unwrap());
            assert_eq!(retry, retry_after);
        }
    }
}
