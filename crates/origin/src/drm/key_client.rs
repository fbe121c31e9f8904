//! Requests to a key server. Such requests are rare, so each request blocks its thread, and has its
//! own runtime and its own connection. Runtime and connection are dropped when the request ends.

use super::key_error::KeyError;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use std::time::Duration;
use std::{fmt, io};
use trace::SpanKind;
use upstream::{RequestUpload, TrustedAuthorities, UpstreamClient, UpstreamLimits};
use zeroize::Zeroizing;

/// Timeout of a whole exchange, from connecting to the end of the response.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for each of these steps: connecting, waiting for the response's head, and waiting for
/// more of the body.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Error message for viewers if the body of a response ends too early.
const INCOMPLETE: &str = "the response of the key server is incomplete";
/// Maximum number of characters of a key server's error text that are logged.
const ERROR_CHARS_MAX: usize = 200;

/// Sends requests to a key server, with the headers that contain the credentials.
pub(crate) struct KeyClient {
    headers: HeaderMap,
}

/// One request.
pub(crate) struct KeyRequest {
    pub(crate) url: Uri,
    /// Body of a POST. Without a body, the request is a GET.
    pub(crate) body: Option<String>,
    /// Headers in addition to those that the client sends with every request.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    /// Maximum number of bytes of the response's body.
    pub(crate) response_bytes_max: usize,
}

/// A response with status 200.
pub(crate) struct KeyResponse {
    pub(crate) headers: HeaderMap,
    /// The body contains keys, so its memory is wiped when it is dropped.
    pub(crate) body: Zeroizing<Vec<u8>>,
}

impl KeyClient {
    /// Creates a client that sends the headers in `header_lines`, which has one `Name: value` per
    /// line.
    ///
    /// # Errors
    /// An error with the number of the first invalid line.
    pub(crate) fn new(header_lines: &str) -> io::Result<KeyClient> {
        let mut headers = HeaderMap::new();
        for (n, line) in header_lines.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let parsed = parse_header(line);
            let invalid = || io::Error::other(format!("line {}: expected NAME: VALUE", n + 1));
            let (name, mut value) = parsed.ok_or_else(invalid)?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(KeyClient { headers })
    }

    /// Sends a request and reads the whole response. Blocks.
    ///
    /// # Errors
    /// If the server is unavailable or too slow, if the status is not 200, or if the response has
    /// too many bytes. The message contains no credentials.
    pub(crate) fn send_key_request(&self, request: KeyRequest) -> Result<KeyResponse, KeyError> {
        let mut span = trace::start_span("keys", SpanKind::Client);
        let result = self.send_on_runtime(request);
        if let (Some(span), Err(_)) = (&mut span, &result) {
            span.set_error();
        }
        result
    }

    fn send_on_runtime(&self, request: KeyRequest) -> Result<KeyResponse, KeyError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| {
            key_server_unavailable(format_args!("cannot start a runtime: {error}"))
        })?;
        runtime.block_on(async {
            let exchange = tokio::time::timeout(EXCHANGE_TIMEOUT, self.exchange(request));
            let late = || format!("no complete response within {EXCHANGE_TIMEOUT:?}");
            exchange.await.unwrap_or_else(|_| Err(late().into()))
        })
    }

    async fn exchange(&self, request: KeyRequest) -> Result<KeyResponse, KeyError> {
        let limits = UpstreamLimits {
            connect_timeout: STEP_TIMEOUT,
            first_byte_timeout: STEP_TIMEOUT,
            body_gap_timeout: STEP_TIMEOUT,
            ..UpstreamLimits::default()
        };
        let bytes_max = request.response_bytes_max;
        let server = server_url(&request.url).map_err(key_server_unavailable)?;
        let client = UpstreamClient::new(&server, 1, limits, &TrustedAuthorities::Public);
        let client = client.map_err(key_server_unavailable)?;
        let request = self
            .build_request(&client, request)
            .map_err(key_server_unavailable)?;
        let sent = client.send_once(0, request).await;
        let mut response = sent.map_err(|(error, _)| key_server_unavailable(error))?;
        let mut body = Zeroizing::new(Vec::new());
        while let Some(data) = response
            .next_data()
            .await
            .map_err(|error| KeyError::with_cause(INCOMPLETE, error))?
        {
            if body.len() + data.len() > bytes_max {
                return Err(format!("the response has more than {bytes_max} bytes").into());
            }
            body.extend_from_slice(&data);
        }
        if response.status != StatusCode::OK {
            let status = format!("the key server responded with status {}", response.status);
            let cause = format!("{status}{}", quote_error_text(&body));
            return Err(KeyError::with_cause(status, cause));
        }
        Ok(KeyResponse {
            headers: std::mem::take(&mut response.headers),
            body,
        })
    }

    fn build_request(
        &self,
        client: &UpstreamClient,
        request: KeyRequest,
    ) -> Result<Request<Option<RequestUpload>>, String> {
        let method = if request.body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let len = request.body.as_ref().map(String::len);
        let body = request
            .body
            .and_then(|body| RequestUpload::new(Full::new(Bytes::from(body))));
        let mut built = Request::new(body);
        *built.method_mut() = method;
        *built.uri_mut() = request.url;
        let headers = built.headers_mut();
        let host = HeaderValue::from_str(client.authority());
        headers.insert(header::HOST, host.map_err(|error| error.to_string())?);
        for (name, value) in request.headers {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(len) = len {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(len));
        }
        headers.extend(self.headers.clone());
        Ok(built)
    }
}

/// Returns an error whose cause only operators see.
fn key_server_unavailable(cause: impl fmt::Display) -> KeyError {
    KeyError::with_cause("the key server is unavailable", cause)
}

fn parse_header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim().parse().ok()?, value.trim().parse().ok()?))
}

/// Returns the URL of the server, which consists of the scheme and the authority of `url`.
fn server_url(url: &Uri) -> Result<Uri, String> {
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

/// Quotes the start of the error text in a response, such as that of a SPEKE server.
fn quote_error_text(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let start: String = text
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(ERROR_CHARS_MAX)
        .collect();
    match start.is_empty() {
        true => String::new(),
        false => format!(": {start:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_line_by_line() {
        let client = KeyClient::new("Authorization: Basic eA==\n\nX-A: b\n").unwrap();
        assert_eq!(client.headers["authorization"], "Basic eA==");
        assert!(client.headers["authorization"].is_sensitive());
        let wrong = KeyClient::new("A: b\nno header\n")
            .err()
            .unwrap()
            .to_string();
        assert_eq!(wrong, "line 2: expected NAME: VALUE");
    }
}
