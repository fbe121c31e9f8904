//! Records: one JSON object a line, written by a thread of its own so that no request waits for a
//! disk. Reports are made from these lines, never from memory.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use http::header::{HeaderName, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use serde::Serialize;

use crate::{Conn, TcpInfo};

pub use self::recorder::Recorder;

mod recorder;
mod time;

/// The most characters kept of a path, an error or a user agent.
pub const CHARS_MAX: usize = 512;

/// One request answered by a server. The fields and their units are the contract of the file.
#[derive(Debug, Clone, Serialize)]
pub struct Access {
    /// When the request's header had been read, RFC 3339 in UTC.
    #[serde(serialize_with = "time::rfc3339")]
    pub time: SystemTime,
    /// `access`, so that files of several records can be mixed.
    pub record: &'static str,
    /// The request's name, passed on to every hop.
    pub request_id: Bounded,
    /// The connection's number in its process.
    pub connection: u64,
    /// The request's number on its connection, from 1.
    pub request: u64,
    /// The other end.
    pub peer: SocketAddr,
    /// Whose request it is: the other end's, or whom a trusted relay forwards it of.
    pub client: IpAddr,
    /// `GET`, …
    pub method: Bounded,
    /// Path and query as asked.
    pub path: Bounded,
    /// `HTTP/1.1`, …
    pub version: &'static str,
    /// The answer's status.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// What was asked for, in the server's own words (`segment`, `playlist`, …).
    pub kind: &'static str,
    /// From `time` to the first byte of the body; null if none was sent.
    pub first_byte_us: Option<u64>,
    /// From `time` to the last byte.
    pub total_us: u64,
    /// The whole body was sent.
    pub complete: bool,
    /// What went wrong.
    pub error: Option<Bounded>,
    /// The client's name for itself.
    pub user_agent: Option<Bounded>,
    /// What a cache did, where there is one.
    #[serde(flatten)]
    pub cached: Option<Cached>,
}

/// What a cache in front of a server did about a request.
#[derive(Debug, Clone, Serialize)]
pub struct Cached {
    /// `hit`, `stale`, `revalidated`, `follow`, `miss` or `pass`.
    pub cache: &'static str,
    /// Why, in one word.
    pub reason: &'static str,
    /// From asking the server behind to its answer's head, if it was asked for this request.
    pub upstream_us: Option<u64>,
    /// The rule that chose how to send, if one did.
    pub rule: Option<Bounded>,
    /// What the player said of itself (CTA-5004), by its keys.
    pub cmcd: Option<BTreeMap<String, serde_json::Value>>,
}

/// What TCP saw of a response.
#[derive(Debug, Clone, Serialize)]
pub struct Tcp {
    /// When it was seen.
    #[serde(serialize_with = "time::rfc3339")]
    pub time: SystemTime,
    /// `tcp`.
    pub record: &'static str,
    /// As in the access record.
    pub request_id: Bounded,
    /// As in the access record.
    pub connection: u64,
    /// As in the access record.
    pub request: u64,
    /// `start`, `sending`, `sent` or `acked`.
    pub phase: &'static str,
    /// Since the request's header had been read.
    pub since_us: u64,
    /// The kernel's words.
    #[serde(flatten)]
    pub info: TcpInfo,
}

/// The header that names a request on all its hops.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

impl Access {
    /// A request that has just come; the answer's side is still blank.
    pub fn of(parts: &Parts, conn: &Conn) -> Access {
        let text = |name: &HeaderName| parts.headers.get(name).and_then(|v| v.to_str().ok());
        let request_id = match text(&REQUEST_ID) {
            Some(id) => id.into(),
            None => format!("{:x}-{}-{}", std::process::id(), conn.id(), conn.request).into(),
        };
        let target = parts.uri.path_and_query().map_or("", PathAndQuery::as_str);
        Access {
            time: SystemTime::now(),
            record: "access",
            request_id,
            connection: conn.id(),
            request: conn.request,
            peer: conn.peer(),
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
            cached: None,
        }
    }
}

/// One request that a server made of its storage. The fields and their units are the contract of
/// the file.
#[derive(Debug, Clone, Serialize)]
pub struct Storage {
    /// When the request was made, RFC 3339 in UTC.
    #[serde(serialize_with = "time::rfc3339")]
    pub time: SystemTime,
    /// `storage`.
    pub record: &'static str,
    /// Why it was made.
    pub reason: &'static str,
    /// What the bytes are for.
    pub of: &'static str,
    /// `GET`, `HEAD` or `LIST`.
    pub method: &'static str,
    /// The object's name in the library.
    pub key: Bounded,
    /// Where it was asked for.
    pub endpoint: Bounded,
    /// First byte asked for.
    pub offset: Option<u64>,
    /// Bytes asked for.
    pub asked: Option<u64>,
    /// The answer's status.
    pub status: Option<u16>,
    /// Bytes of the object that came.
    pub bytes: u64,
    /// The connection's number in its process.
    pub connection: Option<u64>,
    /// The connection had carried a request before.
    pub reused: Option<bool>,
    /// From `time` to the end of the answer's head; null if none came.
    pub first_byte_us: Option<u64>,
    /// From `time` to the last byte.
    pub total_us: u64,
    /// All came that was asked for.
    pub complete: bool,
    /// What went wrong.
    pub error: Option<Bounded>,
}

/// Whole microseconds, as records count them.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The version as written in a record.
pub fn version_name(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_10 => "HTTP/1.0",
        http::Version::HTTP_11 => "HTTP/1.1",
        http::Version::HTTP_2 => "HTTP/2",
        _ => "other",
    }
}

/// Text from outside: cut to 512 characters, control characters replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Bounded(String);

impl Bounded {
    /// The text, as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Bounded {
    fn from(text: T) -> Bounded {
        let kept = text.as_ref().chars().take(CHARS_MAX);
        Bounded(
            kept.map(|c| if c.is_control() { '\u{fffd}' } else { c })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each field, for tests.
    pub(super) fn sample() -> Access {
        Access {
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
            cached: Some(Cached {
                cache: "miss",
                reason: "absent",
                upstream_us: Some(90),
                rule: Some("mobile".into()),
                cmcd: Some([("bl".to_owned(), 2100.into())].into()),
            }),
        }
    }

    #[test]
    fn the_line_is_the_contract() {
        let line = serde_json::to_string(&sample()).unwrap();
        let golden = concat!(
            r#"{"time":"2024-02-29T23:59:59.000042Z","record":"access","request_id":"a1","#,
            r#""connection":7,"request":2,"peer":"127.0.0.1:4000","client":"192.0.2.7","method":"GET","#,
            "\"path\":\"/film.mp4/a\\\"b\u{fffd}.m3u8?x=1\",\"version\":\"HTTP/1.1\",",
            r#""status":200,"bytes":512,"kind":"playlist","first_byte_us":80,"total_us":120,"#,
            r#""complete":true,"error":null,"user_agent":"player/1","#,
            r#""cache":"miss","reason":"absent","upstream_us":90,"rule":"mobile","#,
            r#""cmcd":{"bl":2100}}"#,
        );
        assert_eq!(line, golden);
    }

    fn storage() -> Storage {
        Storage {
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

    #[test]
    fn every_field_is_explained() {
        let page = include_str!("../../../docs/records.md");
        let records = [
            serde_json::to_value(sample()).unwrap(),
            serde_json::to_value(storage()).unwrap(),
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
            Bounded::from("é".repeat(1000)).as_str(),
            "é".repeat(CHARS_MAX)
        );
    }
}
