//! Reading a file over HTTP, a range at a time, over connections that are kept.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;

use crate::Body;

/// Longest wait for an answer's headers, and between two pieces of its body.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// A client for files on other servers, HTTP or HTTPS (public certificate authorities).
pub struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, Body>,
}

/// A part of a file, and what the server says of the whole.
#[derive(Debug, Clone)]
pub struct Part {
    /// The bytes asked for; fewer where the file ends before.
    pub bytes: Bytes,
    /// Length of the whole file.
    pub len: u64,
    /// The file's entity tag, to ask for more of the same with.
    pub etag: Option<String>,
}

/// Why a part could not be had: what happened, and where it helps, what to do.
#[derive(Debug)]
pub struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

fn failed(what: impl fmt::Display) -> Failed {
    Failed(what.to_string())
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

impl Client {
    /// A client without connections yet.
    pub fn new() -> Client {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(provider)
            .unwrap_or_else(|_| unreachable!("aws-lc has all default suites"))
            .https_or_http()
            .enable_http1()
            .build();
        Client {
            pool: Pool::builder(TokioExecutor::new()).build(https),
        }
    }

    /// Reads `range` of the file at `uri`; with `etag`, only if it is still the same file.
    ///
    /// # Errors
    /// When the server cannot be reached, is silent for 15 s, answers without ranges, answers
    /// other bytes than asked for, or says that the file has changed.
    pub async fn part(
        &self,
        uri: &Uri,
        range: Range<u64>,
        etag: Option<&str>,
    ) -> Result<Part, Failed> {
        let last = range.end.saturating_sub(1);
        let mut request = Request::get(uri.clone())
            .header(header::RANGE, format!("bytes={}-{last}", range.start))
            .header(header::ACCEPT_ENCODING, "identity");
        if let Some(etag) = etag {
            request = request.header(header::IF_MATCH, etag);
        }
        let request = request.body(Body::empty()).map_err(failed)?;
        let response = timed(self.pool.request(request)).await?.map_err(failed)?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => {
                return Err(failed("the server does not answer ranges (200, not 206)"));
            }
            StatusCode::PRECONDITION_FAILED => return Err(failed("the file changed meanwhile")),
            status => return Err(failed(format_args!("the server answers {status}"))),
        }
        let (first, len) = content_range(response.headers())
            .filter(|(first, _)| *first == range.start)
            .ok_or_else(|| failed("the server answers another range than asked for"))?;
        let etag = response.headers().get(header::ETAG);
        let etag = etag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let wanted = range.end.min(len).saturating_sub(first);
        let bytes = collect(response.into_body(), wanted).await?;
        Ok(Part { bytes, len, etag })
    }
}

/// Exactly `wanted` bytes of a body.
async fn collect(mut body: Incoming, wanted: u64) -> Result<Bytes, Failed> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = timed(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))).await? {
        if let Ok(data) = frame.map_err(failed)?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() as u64 > wanted {
            return Err(failed("the server sends more than it was asked for"));
        }
    }
    if (bytes.len() as u64) < wanted {
        return Err(failed("the server's answer was cut short"));
    }
    Ok(bytes.freeze())
}

async fn timed<F: Future>(work: F) -> Result<F::Output, Failed> {
    let what = || failed(format_args!("nothing came for {} s", WAIT_MAX.as_secs()));
    tokio::time::timeout(WAIT_MAX, work)
        .await
        .map_err(|_| what())
}

/// First byte and length of the whole, of `Content-Range: bytes 0-99/1234`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let value = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, len) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, len.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_says_first_byte_and_length() {
        let mut headers = HeaderMap::new();
        for (value, expected) in [
            ("bytes 0-99/1234", Some((0, 1234))),
            ("bytes 5-5/6", Some((5, 6))),
            ("bytes */1234", None),
            ("bytes 0-99/*", None),
            ("items 0-99/1234", None),
        ] {
            headers.insert(header::CONTENT_RANGE, value.parse().unwrap());
            assert_eq!(content_range(&headers), expected, "{value}");
        }
    }
}
