//! An answer of the origin that others may be given too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode};
use net::conditional::Validators;

use crate::content::Content;
use crate::fresh::Lifetime;
use crate::headers::{SURROGATE_KEY, end_to_end};
use crate::key::selecting;
use crate::parts::Parts;

/// Head, lifetime and body. The body may still be growing; a kept one is whole.
#[derive(Debug)]
pub struct Object {
    pub status: StatusCode,
    /// End-to-end headers, but for Age and Content-Length, which we say ourselves.
    pub headers: HeaderMap,
    pub validators: Validators,
    pub lifetime: Lifetime,
    /// When the head came, or was last confirmed.
    pub received: Instant,
    /// Length of the body, where it was said before it came.
    pub len: Option<u64>,
    /// The body; empty where it is kept in parts.
    pub content: Arc<Content>,
    /// How the body is kept, if not in one.
    pub parts: Option<Parts>,
    /// The headers that it varies by, with the values of the request that it answers.
    pub vary: Vec<(HeaderName, String)>,
    /// Names that it can be purged by.
    pub tags: Vec<Box<str>>,
    /// Purged softly: to be asked for before it is used again.
    pub purged: AtomicBool,
    /// How often it was used.
    pub uses: AtomicU64,
    /// A second use has shown that it is worth more than to be kept.
    pub proven: AtomicBool,
    /// The head of a hit, as it is in one second of its age.
    pub prepared: ArcSwapOption<(u64, HeaderMap)>,
}

impl Object {
    /// From an answer's head; the body is to come.
    pub fn new(
        status: StatusCode,
        headers: &HeaderMap,
        lifetime: Lifetime,
        len: Option<u64>,
        request: &HeaderMap,
    ) -> Object {
        let mut kept = end_to_end(headers);
        let tags = tags(&kept);
        for name in [header::AGE, header::CONTENT_LENGTH, SURROGATE_KEY] {
            kept.remove(name);
        }
        say_vary(&mut kept);
        Object {
            status,
            validators: Validators::of(&kept),
            vary: variant(&kept, request),
            headers: kept,
            lifetime,
            received: Instant::now(),
            len,
            content: Arc::default(),
            parts: None,
            tags,
            purged: AtomicBool::new(false),
            uses: AtomicU64::new(0),
            proven: AtomicBool::new(false),
            prepared: ArcSwapOption::empty(),
        }
    }

    /// The same body under the head of a 304 (RFC 9111 section 3.2): its fields replace ours,
    /// except for those that speak about a body that did not come. What it varies by may be among
    /// them, and is then known by the request that was answered so.
    pub fn confirmed(
        &self,
        headers: &HeaderMap,
        lifetime: Lifetime,
        request: &HeaderMap,
    ) -> Object {
        let mut merged = self.headers.clone();
        let new = end_to_end(headers);
        let tagged = tags(&new);
        const OF_BODY: [HeaderName; 6] = [
            header::AGE,
            header::CONTENT_LENGTH,
            header::CONTENT_ENCODING,
            header::CONTENT_TYPE,
            header::CONTENT_RANGE,
            SURROGATE_KEY,
        ];
        for name in new.keys().filter(|name| !OF_BODY.contains(name)) {
            merged.remove(name);
            for value in new.get_all(name) {
                merged.append(name.clone(), value.clone());
            }
        }
        say_vary(&mut merged);
        Object {
            status: self.status,
            validators: Validators::of(&merged),
            vary: variant(&merged, request),
            headers: merged,
            lifetime,
            received: Instant::now(),
            len: self.len,
            content: Arc::clone(&self.content),
            parts: self.parts.clone(),
            tags: if tagged.is_empty() {
                self.tags.clone()
            } else {
                tagged
            },
            purged: AtomicBool::new(false),
            uses: AtomicU64::new(self.uses.load(Relaxed)),
            proven: AtomicBool::new(false),
            prepared: ArcSwapOption::empty(),
        }
    }

    /// The same with its bytes in another place.
    pub fn with(&self, content: Content) -> Object {
        Object {
            status: self.status,
            headers: self.headers.clone(),
            validators: self.validators.clone(),
            lifetime: self.lifetime,
            received: self.received,
            len: self.len,
            content: Arc::new(content),
            parts: self.parts.clone(),
            vary: self.vary.clone(),
            tags: self.tags.clone(),
            purged: AtomicBool::new(self.purged.load(Relaxed)),
            uses: AtomicU64::new(self.uses.load(Relaxed)),
            proven: AtomicBool::new(true),
            prepared: ArcSwapOption::empty(),
        }
    }

    /// What its head, variant and tags take in memory.
    pub fn head_bytes(&self) -> u64 {
        let lines = self.headers.iter();
        let head: usize = lines
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        let vary: usize = self.vary.iter().map(|(_, value)| value.len()).sum();
        let tags: usize = self.tags.iter().map(|tag| tag.len()).sum();
        (head + vary + tags) as u64
    }

    /// How long it has been here.
    pub fn resident(&self) -> Duration {
        self.received.elapsed()
    }

    /// Whole seconds since the origin made it.
    pub fn age_s(&self) -> u64 {
        self.lifetime.age.saturating_add(self.resident()).as_secs()
    }

    /// Seconds of freshness left; negative: stale since.
    pub fn ttl_s(&self) -> i64 {
        self.ttl_at(self.age_s())
    }

    /// The same at an age.
    pub fn ttl_at(&self, age_s: u64) -> i64 {
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        signed(self.lifetime.fresh.as_secs()) - signed(age_s)
    }

    /// Length of the body, where it is known by now.
    pub fn len(&self) -> Option<u64> {
        let whole = self.content.is_whole();
        self.len.or_else(|| whole.then(|| self.content.len()))
    }

    /// Whether a request with these headers may be given it (RFC 9111 section 4.1).
    pub fn answers(&self, request: &HeaderMap) -> bool {
        self.vary
            .iter()
            .all(|(name, value)| selecting(request, name) == *value)
    }
}

/// The headers that an answer varies by, in one order, each once: those that it says, and those that
/// it shows.
pub fn varying(headers: &HeaderMap) -> Vec<HeaderName> {
    let mut names = said_to_vary(headers);
    names.extend(seen_to_vary(headers));
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    names
}

/// What an answer varies by, with the values of the request that it answers.
pub fn variant(headers: &HeaderMap, request: &HeaderMap) -> Vec<(HeaderName, String)> {
    let names = varying(headers).into_iter();
    let pairs = names.map(|name| {
        let value = selecting(request, &name);
        (name, value)
    });
    pairs.collect()
}

fn said_to_vary(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::VARY).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|text| text.split(','));
    names.filter_map(|name| name.trim().parse().ok()).collect()
}

/// An answer that lets only one page's origin read it, or that is coded, is not one for all who ask,
/// whether it says so by Vary or not.
fn seen_to_vary(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let says = |name: HeaderName, all: &[u8]| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| !value.as_bytes().eq_ignore_ascii_case(all))
    };
    let origin = says(header::ACCESS_CONTROL_ALLOW_ORIGIN, b"*").then_some(header::ORIGIN);
    let coding = says(header::CONTENT_ENCODING, b"identity").then_some(header::ACCEPT_ENCODING);
    origin.into_iter().chain(coding)
}

/// Tells caches behind us, too.
fn say_vary(headers: &mut HeaderMap) {
    let said = said_to_vary(headers);
    let seen: Vec<_> = seen_to_vary(headers).collect();
    for name in seen.into_iter().filter(|name| !said.contains(name)) {
        headers.append(header::VARY, name.into());
    }
}

fn tags(headers: &HeaderMap) -> Vec<Box<str>> {
    let values = headers.get_all(SURROGATE_KEY).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(str::split_ascii_whitespace)
        .map(Box::from)
        .collect()
}

#[cfg(test)]
mod tests;
