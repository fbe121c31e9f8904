//! Reads HTTP Archives (HAR 1.2), as the network panels of browsers export them.
//!
//! The parser does not store responses, so that an archive with response bodies needs little
//! memory.

use super::super::{RequestKind, RequestTarget};
use super::civil_time::parse_rfc3339;
use super::{HarEntryError, REQUESTS_MAX, RecordedRequests, RecordingError, move_to_base};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use std::io::BufRead;
use url::Url;

/// Maximum length of an archive, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 4 << 30;

/// Recorded header fields that the replay does not send. These fields belong to one connection
/// (RFC 9110 section 7.6.1), or the client computes their values.
const OWN_FIELDS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

#[derive(Deserialize)]
struct HarFile {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: Vec<HarEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarEntry {
    started_date_time: String,
    request: HarRequest,
    /// Chromium sets this field if the response was in the browser's cache and no request was sent.
    #[serde(default, rename = "_fromCache")]
    from_cache: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<HarHeader>,
    #[serde(default)]
    post_data: Option<HarPostData>,
}

#[derive(Deserialize)]
struct HarHeader {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct HarPostData {
    #[serde(default)]
    text: String,
}

/// Reads an archive. Skips requests with a scheme other than http or https, and requests that were
/// served from the browser's cache.
pub(super) fn read_har(
    input: impl BufRead,
    base: Option<&Url>,
) -> Result<RecordedRequests, RecordingError> {
    let archive: HarFile = serde_json::from_reader(input.take(ARCHIVE_BYTES_MAX))?;
    if archive.log.entries.len() > REQUESTS_MAX {
        return Err(RecordingError::TooManyRequests);
    }
    let mut recording = RecordedRequests::default();
    for (number, entry) in archive.log.entries.into_iter().enumerate() {
        let invalid = |cause| RecordingError::Entry(number, cause);
        match entry.into_target(base).map_err(invalid)? {
            Some(target) => recording.add_target(target)?,
            None => recording.skipped += 1,
        }
    }
    Ok(recording)
}

impl HarEntry {
    /// Returns the target for the recorded request, or none if the request was not sent over HTTP.
    fn into_target(self, base: Option<&Url>) -> Result<Option<RequestTarget>, HarEntryError> {
        let started = parse_rfc3339(&self.started_date_time);
        let started = started.ok_or(HarEntryError::StartTime(self.started_date_time))?;
        let HarRequest {
            method,
            url,
            headers,
            post_data,
        } = self.request;
        let url = Url::parse(&url).map_err(|error| HarEntryError::Url(error, url))?;
        if !matches!(url.scheme(), "http" | "https") || self.from_cache.is_some() {
            return Ok(None);
        }
        let url = base.map_or_else(|| url.clone(), |base| move_to_base(&url, base));
        let method: Method = method.parse().map_err(|_| HarEntryError::Method(method))?;
        let headers = replayable_headers(&headers);
        let kind = match headers.contains_key(http::header::RANGE) {
            true => RequestKind::Range,
            false => RequestKind::kind_from_path(url.path()),
        };
        Ok(Some(RequestTarget {
            method,
            headers,
            kind,
            body: post_data
                .unwrap_or(HarPostData {
                    text: String::new(),
                })
                .text
                .into(),
            recorded_at_s: Some(started),
            ..RequestTarget::from_url(url)
        }))
    }
}

/// Returns the header fields that are sent when the request is repeated. Leaves out HTTP/2
/// pseudo-header fields and the fields in `OWN_FIELDS`.
fn replayable_headers(fields: &[HarHeader]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for field in fields {
        let parsed = (
            field.name.parse::<HeaderName>(),
            field.value.parse::<HeaderValue>(),
        );
        if let (Ok(name), Ok(value)) = parsed
            && !OWN_FIELDS.contains(&name.as_str())
        {
            headers.append(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(at: &str, url: &str) -> serde_json::Value {
        json!({
            "startedDateTime": at, "time": 5,
            "request": {
                "method": "GET", "url": url, "httpVersion": "h2",
                "headers": [
                    {"name": ":authority", "value": "a"}, {"name": "Host", "value": "a"},
                    {"name": "Range", "value": "bytes=0-9"},
                ],
            },
            "response": {"status": 200, "content": {"text": "x".repeat(1000)}},
        })
    }

    fn parse(entries: &[serde_json::Value]) -> Result<RecordedRequests, RecordingError> {
        let text = json!({"log": {"version": "1.2", "entries": entries}}).to_string();
        read_har(text.as_bytes(), None)
    }

    #[test]
    fn requests_are_repeated_with_their_own_fields() {
        let mut posted = entry("2026-11-21T10:00:00.500Z", "https://a/b");
        posted["request"]["method"] = "POST".into();
        posted["request"]["postData"] = json!({"mimeType": "text/plain", "text": "hello"});
        let recording = parse(&[entry("2026-11-21T11:00:01+01:00", "http://a/x.m4s"), posted]);
        let targets = recording.unwrap().targets;
        assert_eq!(targets[0].headers.len(), 1);
        assert_eq!(targets[0].headers["range"], "bytes=0-9");
        assert_eq!(targets[0].kind, RequestKind::Range);
        let [first, second] = [0, 1].map(|n: usize| targets[n].recorded_at_s.unwrap());
        assert_eq!(first - second, 0.5);
        assert_eq!(
            (&targets[1].method, &targets[1].body[..]),
            (&Method::POST, &b"hello"[..])
        );
    }

    #[test]
    fn requests_that_no_server_received_are_skipped() {
        let mut cached = entry("2026-11-21T10:00:00Z", "https://a/cached");
        cached["_fromCache"] = "disk".into();
        let data = entry("2026-11-21T10:00:00Z", "data:text/plain,x");
        let socket = entry("2026-11-21T10:00:00Z", "wss://a/socket");
        let recording = parse(&[cached, data, socket]).unwrap();
        assert_eq!((recording.skipped, recording.targets.len()), (3, 0));
    }

    #[test]
    fn invalid_entries_are_named() {
        let wrong = [
            entry("yesterday", "http://a/"),
            entry("2026-11-21T10:00:00Z", "nowhere"),
        ];
        for wrong in wrong {
            let error = parse(&[entry("2026-11-21T10:00:00Z", "http://a/"), wrong]).unwrap_err();
            assert!(
                error.to_string().starts_with("$.log.entries[1]: invalid "),
                "{error}"
            );
        }
        assert!(read_har(&b"{}"[..], None).is_err());
    }
}
