//! The on-disk format of a cache entry, without the body.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use net::conditional::Validators;
use serde::{Deserialize, Serialize};
use store::planted_bugs::is_bug_planted;

use crate::block_layout::BlockLayout;
use crate::cache_entry::{CacheEntry, VariantIndex};
use crate::cache_key::CacheKey;
use crate::cached_object::CachedObject;
use crate::freshness::{FreshnessLifetime, LifetimeSource};
use crate::object_body::SharedObjectBody;

/// A cache entry without its body. The names of the enum's variants and of the fields of
/// [`PersistedHead`] are part of the file format.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PersistedEntry {
    Object(Box<PersistedHead>),
    Block,
    Varies(Vec<String>),
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PersistedHead {
    status: u16,
    /// Names and values of the headers. Each byte of a value is stored as one Latin-1 character.
    headers: Vec<(String, String)>,
    vary: Vec<(String, String)>,
    tags: Vec<Box<str>>,
    len: Option<u64>,
    parts: Option<(String, Box<str>, u64)>,
    fresh_s: u64,
    source: LifetimeSource,
    no_cache: bool,
    must_revalidate: bool,
    stale_while_revalidate_s: u64,
    stale_if_error_s: u64,
    /// Files of earlier versions lack this field.
    #[serde(default)]
    has_unlisted_variants: bool,
    /// Time of writing, as Unix time. `age_ms` is the object's age at this time.
    written_unix_ms: u64,
    age_ms: u64,
}

impl PersistedEntry {
    /// Converts a cache entry to the on-disk format. Returns `None` for entries that are never
    /// stored on disk.
    pub(super) fn from_entry(entry: &CacheEntry, now: SystemTime) -> Option<PersistedEntry> {
        Some(match entry {
            CacheEntry::Object(object) => {
                PersistedEntry::Object(Box::new(PersistedHead::from_object(object, now)))
            }
            CacheEntry::Block(_) => PersistedEntry::Block,
            CacheEntry::Variants(varies) => {
                let names = varies.header_names.iter().map(HeaderName::to_string);
                PersistedEntry::Varies(names.collect())
            }
            CacheEntry::Unshareable { .. } => return None,
        })
    }

    pub(super) fn to_json(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(self).ok()
    }

    pub(super) fn from_json(bytes: &[u8]) -> Option<PersistedEntry> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn into_entry(
        self,
        content: SharedObjectBody,
        now: SystemTime,
    ) -> Option<CacheEntry> {
        Some(match self {
            PersistedEntry::Object(head) => {
                CacheEntry::Object(Arc::new(head.into_object(content, now)?))
            }
            PersistedEntry::Block => CacheEntry::Block(Arc::new(content)),
            PersistedEntry::Varies(names) => {
                let names = names.iter().map(|name| name.parse().ok());
                CacheEntry::Variants(Arc::new(VariantIndex::new(names.collect::<Option<_>>()?)))
            }
        })
    }
}

impl PersistedHead {
    fn from_object(object: &CachedObject, now: SystemTime) -> PersistedHead {
        let FreshnessLifetime {
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
        let parts = object.blocks.as_ref();
        PersistedHead {
            status: object.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.to_string(), latin1_from_value(value)))
                .collect(),
            vary: vary
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect(),
            tags: object.surrogate_keys.clone(),
            len: object.len(),
            parts: parts.map(|p| {
                (
                    p.object_key.as_str().to_owned(),
                    p.etag.clone(),
                    p.block_bytes,
                )
            }),
            fresh_s: fresh.as_secs(),
            source,
            no_cache,
            must_revalidate,
            stale_while_revalidate_s: stale_while_revalidate.as_secs(),
            stale_if_error_s: stale_if_error.as_secs(),
            has_unlisted_variants: object.has_unlisted_variants.load(Relaxed),
            written_unix_ms: unix_ms_from_time(now),
            age_ms: whole_millis(age.saturating_add(object.resident_time())),
        }
    }

    fn into_object(self, content: SharedObjectBody, now: SystemTime) -> Option<CachedObject> {
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            headers.append(name.parse::<HeaderName>().ok()?, value_from_latin1(value)?);
        }
        // If the clock was set back after the object was written, the object's age does not include
        // the time on disk.
        let mut since = unix_ms_from_time(now).saturating_sub(self.written_unix_ms);
        if is_bug_planted("age-on-disk-forgotten") {
            since = 0;
        }
        let named = |(name, value): (String, String)| Some((name.parse().ok()?, value));
        Some(CachedObject {
            status: StatusCode::from_u16(self.status).ok()?,
            validators: Validators::from_headers(&headers),
            headers,
            lifetime: FreshnessLifetime {
                fresh: Duration::from_secs(self.fresh_s),
                source: self.source,
                age: Duration::from_millis(self.age_ms.saturating_add(since)),
                no_cache: self.no_cache,
                must_revalidate: self.must_revalidate,
                stale_while_revalidate: Duration::from_secs(self.stale_while_revalidate_s),
                stale_if_error: Duration::from_secs(self.stale_if_error_s),
            },
            received_at: Instant::now(),
            declared_len: self.len,
            body: Arc::new(content),
            blocks: self.parts.map(|(key, etag, block_bytes)| BlockLayout {
                object_key: CacheKey::from(key.as_str()),
                etag,
                block_bytes: block_bytes.max(1),
            }),
            vary: self.vary.into_iter().map(named).collect::<Option<_>>()?,
            surrogate_keys: self.tags,
            is_purged: AtomicBool::new(false),
            use_count: AtomicU64::new(0),
            is_reused: AtomicBool::new(true),
            has_unlisted_variants: AtomicBool::new(self.has_unlisted_variants),
            hit_headers: ArcSwapOption::empty(),
        })
    }
}

fn latin1_from_value(value: &HeaderValue) -> String {
    value
        .as_bytes()
        .iter()
        .map(|byte| char::from(*byte))
        .collect()
}

fn value_from_latin1(text: &str) -> Option<HeaderValue> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    HeaderValue::from_bytes(&bytes?).ok()
}

fn unix_ms_from_time(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, whole_millis)
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_ages_while_it_is_on_disk() {
        let mut headers = HeaderMap::new();
        headers.insert("etag", "\"a\"".parse().unwrap());
        headers.insert("x", HeaderValue::from_bytes(b"\xe9").unwrap());
        headers.insert("vary", "accept".parse().unwrap());
        headers.insert("surrogate-key", "film a".parse().unwrap());
        let lifetime = FreshnessLifetime {
            fresh: Duration::from_secs(60),
            source: LifetimeSource::MaxAge,
            age: Duration::from_secs(5),
            no_cache: false,
            must_revalidate: true,
            stale_while_revalidate: Duration::from_secs(3),
            stale_if_error: Duration::from_secs(4),
        };
        let request = HeaderMap::new();
        let object = CachedObject::new(StatusCode::OK, &headers, lifetime, Some(7), &request);
        object.has_unlisted_variants.store(true, Relaxed);
        let then = SystemTime::now();
        let stored =
            PersistedEntry::from_entry(&CacheEntry::Object(Arc::new(object)), then).unwrap();
        let written = stored.to_json().unwrap();
        for (later, age) in [(30, 35), (0, 5)] {
            let now = then + Duration::from_secs(later);
            let stored = PersistedEntry::from_json(&written).unwrap();
            let Some(CacheEntry::Object(back)) =
                stored.into_entry(SharedObjectBody::default(), now)
            else {
                panic!("it is an object");
            };
            assert_eq!(back.lifetime.age.as_secs(), age);
            assert_eq!(back.lifetime.fresh, lifetime.fresh);
            assert_eq!(back.headers.get("x").unwrap().as_bytes(), b"\xe9");
            assert_eq!(back.surrogate_keys.join(" "), "film a");
            assert!(back.has_unlisted_variants.load(Relaxed));
            assert_eq!((back.declared_len, back.vary.len()), (Some(7), 1));
            assert_eq!(back.validators.etag.as_ref().unwrap(), "\"a\"");
        }
        let earlier = then - Duration::from_secs(1000);
        let stored = PersistedEntry::from_json(&written).unwrap();
        let Some(CacheEntry::Object(back)) =
            stored.into_entry(SharedObjectBody::default(), earlier)
        else {
            panic!("it is an object");
        };
        assert_eq!(back.lifetime.age.as_secs(), 5, "the clock was set back");
        assert_eq!(PersistedEntry::from_json(b"{}"), None);
    }
}
