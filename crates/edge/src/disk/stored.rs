//! The head of a kept answer as it lies on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use net::conditional::Validators;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::entry::{Entry, Varies};
use crate::fresh::{Lifetime, Source};
use crate::key::Key;
use crate::object::Object;
use crate::parts::Parts;

/// What an entry is, but for its body.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stored {
    Object(Box<Head>),
    Block,
    Varies(Vec<String>),
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    status: u16,
    /// Bytes of values as the characters of the same number.
    headers: Vec<(String, String)>,
    vary: Vec<(String, String)>,
    tags: Vec<Box<str>>,
    len: Option<u64>,
    parts: Option<(String, Box<str>, u64)>,
    fresh_s: u64,
    source: Source,
    no_cache: bool,
    must_revalidate: bool,
    stale_while_revalidate_s: u64,
    stale_if_error_s: u64,
    /// When it was written, and how old it was then.
    written_unix_ms: u64,
    age_ms: u64,
}

impl Stored {
    /// `None` for what is not kept on disk.
    pub(super) fn of(entry: &Entry, now: SystemTime) -> Option<Stored> {
        Some(match entry {
            Entry::Object(object) => Stored::Object(Box::new(Head::of(object, now))),
            Entry::Block(_) => Stored::Block,
            Entry::Varies(varies) => {
                let names = varies.names.iter().map(HeaderName::to_string);
                Stored::Varies(names.collect())
            }
            Entry::Apart { .. } => return None,
        })
    }

    pub(super) fn write(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(self).ok()
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Stored> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn entry(self, content: Content, now: SystemTime) -> Option<Entry> {
        Some(match self {
            Stored::Object(head) => Entry::Object(Arc::new(head.object(content, now)?)),
            Stored::Block => Entry::Block(Arc::new(content)),
            Stored::Varies(names) => {
                let names = names.iter().map(|name| name.parse().ok());
                Entry::Varies(Arc::new(Varies::new(names.collect::<Option<_>>()?)))
            }
        })
    }
}

impl Head {
    fn of(object: &Object, now: SystemTime) -> Head {
        let Lifetime {
            fresh,
            source,
            age,
            no_cache,
            must_revalidate,
            stale_while_revalidate,
            stale_if_error,
        } = object.lifetime;
        let headers = object.headers.iter();
        let vary = object.vary.iter();
        let parts = object.parts.as_ref();
        Head {
            status: object.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.to_string(), characters(value)))
                .collect(),
            vary: vary
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect(),
            tags: object.tags.clone(),
            len: object.len(),
            parts: parts.map(|p| (p.key.as_str().to_owned(), p.etag.clone(), p.block)),
            fresh_s: fresh.as_secs(),
            source,
            no_cache,
            must_revalidate,
            stale_while_revalidate_s: stale_while_revalidate.as_secs(),
            stale_if_error_s: stale_if_error.as_secs(),
            written_unix_ms: unix_ms(now),
            age_ms: millis(age.saturating_add(object.resident())),
        }
    }

    fn object(self, content: Content, now: SystemTime) -> Option<Object> {
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            headers.append(name.parse::<HeaderName>().ok()?, bytes(value)?);
        }
        // A clock that was put back since makes it as old as it was, not younger.
        let since = unix_ms(now).saturating_sub(self.written_unix_ms);
        let named = |(name, value): (String, String)| Some((name.parse().ok()?, value));
        Some(Object {
            status: StatusCode::from_u16(self.status).ok()?,
            validators: Validators::of(&headers),
            headers,
            lifetime: Lifetime {
                fresh: Duration::from_secs(self.fresh_s),
                source: self.source,
                age: Duration::from_millis(self.age_ms.saturating_add(since)),
                no_cache: self.no_cache,
                must_revalidate: self.must_revalidate,
                stale_while_revalidate: Duration::from_secs(self.stale_while_revalidate_s),
                stale_if_error: Duration::from_secs(self.stale_if_error_s),
            },
            received: Instant::now(),
            len: self.len,
            content: Arc::new(content),
            parts: self.parts.map(|(key, etag, block)| Parts {
                key: Key::from(key.as_str()),
                etag,
                block: block.max(1),
            }),
            vary: self.vary.into_iter().map(named).collect::<Option<_>>()?,
            tags: self.tags,
            purged: AtomicBool::new(false),
            uses: AtomicU64::new(0),
            proven: AtomicBool::new(true),
            prepared: ArcSwapOption::empty(),
        })
    }
}

fn characters(value: &HeaderValue) -> String {
    value
        .as_bytes()
        .iter()
        .map(|byte| char::from(*byte))
        .collect()
}

fn bytes(text: &str) -> Option<HeaderValue> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    HeaderValue::from_bytes(&bytes?).ok()
}

fn unix_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, millis)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_older_by_the_time_on_disk() {
        let mut headers = HeaderMap::new();
        headers.insert("etag", "\"a\"".parse().unwrap());
        headers.insert("x", HeaderValue::from_bytes(b"\xe9").unwrap());
        headers.insert("vary", "accept".parse().unwrap());
        headers.insert("surrogate-key", "film a".parse().unwrap());
        let lifetime = Lifetime {
            fresh: Duration::from_secs(60),
            source: Source::MaxAge,
            age: Duration::from_secs(5),
            no_cache: false,
            must_revalidate: true,
            stale_while_revalidate: Duration::from_secs(3),
            stale_if_error: Duration::from_secs(4),
        };
        let request = HeaderMap::new();
        let object = Object::new(StatusCode::OK, &headers, lifetime, Some(7), &request);
        let then = SystemTime::now();
        let stored = Stored::of(&Entry::Object(Arc::new(object)), then).unwrap();
        let written = stored.write().unwrap();
        for (later, age) in [(30, 35), (0, 5)] {
            let now = then + Duration::from_secs(later);
            let stored = Stored::read(&written).unwrap();
            let Some(Entry::Object(back)) = stored.entry(Content::default(), now) else {
                panic!("it is an object");
            };
            assert_eq!(back.lifetime.age.as_secs(), age);
            assert_eq!(back.lifetime.fresh, lifetime.fresh);
            assert_eq!(back.headers.get("x").unwrap().as_bytes(), b"\xe9");
            assert_eq!(back.tags.join(" "), "film a");
            assert_eq!((back.len, back.vary.len()), (Some(7), 1));
            assert_eq!(back.validators.etag.as_ref().unwrap(), "\"a\"");
        }
        let earlier = then - Duration::from_secs(1000);
        let stored = Stored::read(&written).unwrap();
        let Some(Entry::Object(back)) = stored.entry(Content::default(), earlier) else {
            panic!("it is an object");
        };
        assert_eq!(back.lifetime.age.as_secs(), 5, "the clock was put back");
        assert_eq!(Stored::read(b"{}"), None);
    }
}
