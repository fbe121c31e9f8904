//! A record describes one event, such as a request. It is one line of a file, either a JSON object
//! or a line of an access log. A separate thread writes the records, so that no request waits for
//! the disk. Reports about past requests are computed from these lines, never from the state of the
//! process.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use http::header::{HeaderName, REFERER, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use serde::Serialize;

use crate::{Conn, TcpInfo};

pub use self::format::RecordFormat;
pub use self::recorder::Recorder;

mod format;
mod lines_file;
mod recorder;
mod time;

/// Limit on the characters of a path, an error or a user agent. Longer text is cut.
pub const CHARS_MAX: usize = 512;

/// One request served by a server. The fields and their units are a public format.
#[derive(Debug, Clone, Serialize)]
pub struct AccessRecord {
    /// Time when the request's header had been read, RFC 3339 in UTC.
    #[serde(serialize_with = "time::serialize_rfc3339")]
    pub time: SystemTime,
    /// Always `access`. It distinguishes the kinds of records when they are in one file.
    pub record: &'static str,
    /// The request's identifier, passed on to every hop.
    pub request_id: BoundedText,
    /// The connection's number in its process.
    pub connection: u64,
    /// The request's number on its connection, from 1.
    pub request: u64,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The client's address: the peer's, or the one that a trusted proxy reports.
    pub client: IpAddr,
    /// `GET`, …
    pub method: BoundedText,
    /// Path and query as received.
    pub path: BoundedText,
    /// `HTTP/1.1`, …
    pub version: &'static str,
    /// The response's status.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// The kind of the requested object (`segment`, `playlist`, …).
    pub kind: &'static str,
    /// From `time` to the first byte of the body; null if none was sent.
    pub first_byte_us: Option<u64>,
    /// From `time` to the last byte.
    pub total_us: u64,
    /// The whole body was sent.
    pub complete: bool,
    /// The error, if the request failed.
    pub error: Option<BoundedText>,
    /// The User-Agent header.
    pub user_agent: Option<BoundedText>,
    /// The Referer header.
    pub referer: Option<BoundedText>,
    /// The CMCD that the player sent (CTA-5004), by key.
    pub cmcd: Option<BTreeMap<String, serde_json::Value>>,
    /// The cache's decision, on a server with a cache.
    #[serde(flatten)]
    pub cached: Option<CacheFacts>,
}

/// The decision of a cache about a request.
#[derive(Debug, Clone, Serialize)]
pub struct CacheFacts {
    /// `hit`, `stale`, `revalidated`, `follow`, `miss` or `pass`.
    pub cache: &'static str,
    /// The reason, in one word.
    pub reason: &'static str,
    /// Time from the origin request to its response's head, if this request caused one.
    pub upstream_us: Option<u64>,
    /// The rule that chose the transport options, if one matched.
    pub rule: Option<BoundedText>,
}

/// TCP's statistics during a response.
#[derive(Debug, Clone, Serialize)]
pub struct TcpRecord {
    /// Time of the sample.
    #[serde(serialize_with = "time::serialize_rfc3339")]
    pub time: SystemTime,
    /// `tcp`.
    pub record: &'static str,
    /// See the access record.
    pub request_id: BoundedText,
    /// See the access record.
    pub connection: u64,
    /// See the access record.
    pub request: u64,
    /// `start`, `sending`, `sent` or `acked`.
    pub phase: &'static str,
    /// Microseconds since the request's header had been read.
    pub since_us: u64,
    /// The kernel's statistics.
    #[serde(flatten)]
    pub info: TcpInfo,
}

/// One report of a player that the collector received. The fields and their units are a public
/// format.
#[derive(Debug, Clone, Serialize)]
pub struct CmcdRecord {
    /// Time of arrival, RFC 3339 in UTC.
    #[serde(serialize_with = "time::serialize_rfc3339")]
    pub time: SystemTime,
    /// `cmcd`.
    pub record: &'static str,
    /// `request` or `event`.
    pub mode: &'static str,
    /// The connection's number in its process, as in access records.
    pub connection: u64,
    /// The client's network, without its address.
    pub network: String,
    /// Name of this network in the metrics: the name from `cmcd-network`, or else `ipv4` or `ipv6`.
    pub network_name: String,
    /// Title class in the metrics, as named by `cmcd-title-class`, or `other`.
    pub title_class: String,
    /// Path of the requested object; null for events.
    pub path: Option<BoundedText>,
    /// Keys and values. In a list, an item with parameters is an object; other items are plain
    /// values.
    pub cmcd: BTreeMap<String, serde_json::Value>,
}

/// The header that identifies a request on all its hops.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

impl AccessRecord {
    /// Creates the record of a request that has just arrived. The fields of the response are still
    /// empty.
    pub fn from_request(parts: &Parts, conn: &Conn) -> AccessRecord {
        let text = |name: &HeaderName| parts.headers.get(name).and_then(|v| v.to_str().ok());
        let request_id = match text(&REQUEST_ID) {
            Some(id) => id.into(),
            None => format!("{:x}-{}-{}", std::process::id(), conn.id(), conn.request).into(),
        };
        let target = parts.uri.path_and_query().map_or("", PathAndQuery::as_str);
        AccessRecord {
            time: SystemTime::now(),
            record: "access",
            request_id,
            connection: conn.id(),
            request: conn.request,
            peer: conn.effective_peer(),
            client: conn.client(),
            method: parts.method.as_str().into(),
            path: target.into(),
            version: version_name(parts.version),
            status: 0,
            bytes: 0,
            kind: "other",
            first_byte_us: None,
            total_us: 0,
            complete: false,
            error: None,
            user_agent: text(&USER_AGENT).map(Into::into),
            referer: text(&REFERER).map(Into::into),
            cmcd: None,
            cached: None,
        }
    }
}

/// One request of a server to its storage. The fields and their units are a public format.
#[derive(Debug, Clone, Serialize)]
pub struct StorageRequestRecord {
    /// Time when the request was sent, RFC 3339 in UTC.
    #[serde(serialize_with = "time::serialize_rfc3339")]
    pub time: SystemTime,
    /// `storage`.
    pub record: &'static str,
    /// The reason for the request.
    pub reason: &'static str,
    /// The reason of the first request for these bytes: for a retry, it differs from `reason`.
    pub of: &'static str,
    /// `GET`, `HEAD` or `LIST`.
    pub method: &'static str,
    /// The object's name in the library.
    pub key: BoundedText,
    /// The storage that received the request.
    pub endpoint: BoundedText,
    /// First requested byte.
    pub offset: Option<u64>,
    /// Number of requested bytes.
    pub asked: Option<u64>,
    /// The response's status.
    pub status: Option<u16>,
    /// Bytes of the object that were received.
    pub bytes: u64,
    /// The connection's number in its process.
    pub connection: Option<u64>,
    /// The connection had carried a request before.
    pub reused: Option<bool>,
    /// From `time` to the end of the response's head; null if none was received.
    pub first_byte_us: Option<u64>,
    /// From `time` to the last byte.
    pub total_us: u64,
    /// All requested bytes were received.
    pub complete: bool,
    /// The error, if the request failed.
    pub error: Option<BoundedText>,
}

/// Converts a duration to whole microseconds, the unit of durations in records.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the name of an HTTP version in records.
pub fn version_name(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_10 => "HTTP/1.0",
        http::Version::HTTP_11 => "HTTP/1.1",
        http::Version::HTTP_2 => "HTTP/2",
        _ => "other",
    }
}

/// Text from outside, cut to 512 characters, with control characters replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BoundedText(String);

impl BoundedText {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for BoundedText {
    fn from(text: T) -> BoundedText {
        let chars = text.as_ref().chars().take(CHARS_MAX);
        BoundedText(
            chars
                .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record with all fields set.
    pub(super) fn sample_access() -> AccessRecord {
        AccessRecord {
            time: SystemTime::UNIX_EPOCH + Duration::from_micros(1_709_251_199_000_042),
            record: "access",
            request_id: "a1".into(),
            connection: 7,
            request: 2,
            peer: ([127, 0, 0, 1], 4000).into(),
            client: [192, 0, 2, 7].into(),
            method: "GET".into(),
            path: "/film.mp4/a\"b\n.m3u8?x=1".into(),
            version: "HTTP/1.1",
            status: 200,
            bytes: 512,
            kind: "playlist",
            first_byte_us: Some(80),
            total_us: 120,
            complete: true,
            error: None,
            user_agent: Some("player/1".into()),
            referer: None,
            cmcd: Some([("bl".to_owned(), 2100.into())].into()),
            cached: Some(CacheFacts {
                cache: "miss",
                reason: "absent",
                upstream_us: Some(90),
                rule: Some("mobile".into()),
            }),
        }
    }

    #[test]
    fn the_line_has_the_public_format() {
        let line = serde_json::to_string(&sample_access()).unwrap();
        let golden = concat!(
            r#"{"time":"2024-02-29T23:59:59.000042Z","record":"access","request_id":"a1","#,
            r#""connection":7,"request":2,"peer":"127.0.0.1:4000","client":"192.0.2.7","method":"GET","#,
            "\"path\":\"/film.mp4/a\\\"b\u{fffd}.m3u8?x=1\",\"version\":\"HTTP/1.1\",",
            r#""status":200,"bytes":512,"kind":"playlist","first_byte_us":80,"total_us":120,"#,
            r#""complete":true,"error":null,"user_agent":"player/1","#,
            r#""referer":null,"cmcd":{"bl":2100},"#,
            r#""cache":"miss","reason":"absent","upstream_us":90,"rule":"mobile"}"#,
        );
        assert_eq!(line, golden);
    }

    fn sample_storage() -> StorageRequestRecord {
        StorageRequestRecord {
            time: SystemTime::UNIX_EPOCH,
            record: "storage",
            reason: "retry",
            of: "segment",
            method: "GET",
            key: "film.mp4".into(),
            endpoint: "s3://films".into(),
            offset: Some(10),
            asked: Some(20),
            status: Some(206),
            bytes: 20,
            connection: Some(1),
            reused: Some(true),
            first_byte_us: Some(5),
            total_us: 9,
            complete: true,
            error: None,
        }
    }

    fn sample_cmcd() -> CmcdRecord {
        CmcdRecord {
            time: SystemTime::UNIX_EPOCH,
            record: "cmcd",
            mode: "event",
            connection: 7,
            network: "192.0.2.0/24".into(),
            network_name: "ipv4".into(),
            title_class: "other".into(),
            path: None,
            cmcd: [("e".to_owned(), "ps".into())].into(),
        }
    }

    #[test]
    fn every_field_is_explained() {
        let page = include_str!("../../../docs/records.md");
        let records = [
            serde_json::to_value(sample_access()).unwrap(),
            serde_json::to_value(sample_storage()).unwrap(),
            serde_json::to_value(sample_cmcd()).unwrap(),
        ];
        for record in records {
            let name = record["record"].as_str().unwrap();
            let (_, section) = page.split_once(&format!("## {name}:")).unwrap();
            let section = section.split("## ").next().unwrap();
            let rows = section.lines().filter_map(|row| row.strip_prefix("| `"));
            let explained: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
            let fields: Vec<&String> = record.as_object().unwrap().keys().collect();
            assert_eq!(explained.len(), fields.len(), "{name}");
            for field in fields {
                assert!(explained.contains(&field.as_str()), "{name}: {field}");
            }
        }
    }

    #[test]
    fn text_from_outside_is_bounded() {
        assert_eq!(
            BoundedText::from("é".repeat(1000)).as_str(),
            "é".repeat(CHARS_MAX)
        );
    }
}
