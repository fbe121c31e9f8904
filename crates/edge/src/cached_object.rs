//! Cached responses of the origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode};
use net::conditional::{LastModified, Validators};

use crate::block_layout::BlockLayout;
use crate::cache_key::selecting_value;
use crate::freshness::FreshnessLifetime;
use crate::headers::{SURROGATE_KEY, end_to_end_headers};
use crate::object_body::SharedObjectBody;

/// A response with its freshness lifetime. During the fetch, the body is still growing. In the
/// memory tier, the body is complete, or it is stored in blocks.
#[derive(Debug)]
pub struct CachedObject {
    pub status: StatusCode,
    /// End-to-end headers without Age, Content-Length and Surrogate-Key. The edge writes Age and
    /// Content-Length itself.
    pub headers: HeaderMap,
    pub validators: Validators,
    pub lifetime: FreshnessLifetime,
    /// Time at which the response head or a confirming 304 arrived, or at which the object was
    /// loaded from disk.
    pub received_at: Instant,
    /// Length of the body, if the origin declared it.
    pub declared_len: Option<u64>,
    /// The body, which is empty if the object is stored in blocks.
    pub body: Arc<SharedObjectBody>,
    /// Layout of the blocks, if the body is stored in blocks.
    pub blocks: Option<BlockLayout>,
    /// The request headers that select the variant, with their values in the request that fetched
    /// this object.
    pub vary: Vec<(HeaderName, String)>,
    /// Tags for purging.
    pub surrogate_keys: Vec<Box<str>>,
    /// Set by a soft purge. The object then needs revalidation before its next use.
    pub is_purged: AtomicBool,
    /// Number of responses that were built from this object.
    pub use_count: AtomicU64,
    /// Whether the object was used a second time. The second use writes the object to disk, and
    /// moves a large body to the arena. Also set for an object that was loaded from disk.
    pub is_reused: AtomicBool,
    /// Whether the object may have replaced a variant index, so that unlisted variants may be
    /// cached.
    pub has_unlisted_variants: AtomicBool,
    /// The age in seconds, and the prepared headers of a hit at this age.
    pub hit_headers: ArcSwapOption<(u64, HeaderMap)>,
}

impl CachedObject {
    /// Builds an object from a response head. The body is empty at first.
    pub fn new(
        status: StatusCode,
        headers: &HeaderMap,
        lifetime: FreshnessLifetime,
        len: Option<u64>,
        request: &HeaderMap,
    ) -> CachedObject {
        let mut stored_headers = end_to_end_headers(headers);
        let tags = parse_surrogate_keys(&stored_headers);
        for name in [header::AGE, header::CONTENT_LENGTH, SURROGATE_KEY] {
            stored_headers.remove(name);
        }
        declare_implied_vary(&mut stored_headers);
        CachedObject {
            status,
            validators: validators_with_date(&stored_headers),
            vary: vary_values(&stored_headers, request),
            headers: stored_headers,
            lifetime,
            received_at: Instant::now(),
            declared_len: len,
            body: Arc::default(),
            blocks: None,
            surrogate_keys: tags,
            is_purged: AtomicBool::new(false),
            use_count: AtomicU64::new(0),
            is_reused: AtomicBool::new(false),
            has_unlisted_variants: AtomicBool::new(false),
            hit_headers: ArcSwapOption::empty(),
        }
    }

    /// Returns a copy of this object that is updated with the headers of a 304 (RFC 9111 section
    /// 3.2). Headers of the 304 replace the stored headers of the same name, unless they describe a
    /// body. `request` contains the values of the headers in Vary.
    pub fn merge_304(
        &self,
        headers: &HeaderMap,
        lifetime: FreshnessLifetime,
        request: &HeaderMap,
    ) -> CachedObject {
        let mut merged = self.headers.clone();
        let new = end_to_end_headers(headers);
        let tagged = parse_surrogate_keys(&new);
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
        declare_implied_vary(&mut merged);
        CachedObject {
            status: self.status,
            validators: validators_with_date(&merged),
            vary: vary_values(&merged, request),
            headers: merged,
            lifetime,
            received_at: Instant::now(),
            declared_len: self.declared_len,
            body: Arc::clone(&self.body),
            blocks: self.blocks.clone(),
            surrogate_keys: if tagged.is_empty() {
                self.surrogate_keys.clone()
            } else {
                tagged
            },
            is_purged: AtomicBool::new(false),
            use_count: AtomicU64::new(self.use_count.load(Relaxed)),
            is_reused: AtomicBool::new(false),
            has_unlisted_variants: AtomicBool::new(self.has_unlisted_variants.load(Relaxed)),
            hit_headers: ArcSwapOption::empty(),
        }
    }

    /// Returns a copy of the object with `content` as its body.
    pub fn with_body(&self, content: SharedObjectBody) -> CachedObject {
        CachedObject {
            status: self.status,
            headers: self.headers.clone(),
            validators: self.validators.clone(),
            lifetime: self.lifetime,
            received_at: self.received_at,
            declared_len: self.declared_len,
            body: Arc::new(content),
            blocks: self.blocks.clone(),
            vary: self.vary.clone(),
            surrogate_keys: self.surrogate_keys.clone(),
            is_purged: AtomicBool::new(self.is_purged.load(Relaxed)),
            use_count: AtomicU64::new(self.use_count.load(Relaxed)),
            is_reused: AtomicBool::new(true),
            has_unlisted_variants: AtomicBool::new(self.has_unlisted_variants.load(Relaxed)),
            hit_headers: ArcSwapOption::empty(),
        }
    }

    /// Returns the size of the headers, the variant's header values and the tags, in bytes.
    pub fn header_bytes(&self) -> u64 {
        let lines = self.headers.iter();
        let head: usize = lines
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        let vary: usize = self.vary.iter().map(|(_, value)| value.len()).sum();
        let tags: usize = self.surrogate_keys.iter().map(|tag| tag.len()).sum();
        (head + vary + tags) as u64
    }

    /// Returns the time since `received_at`.
    pub fn resident_time(&self) -> Duration {
        self.received_at.elapsed()
    }

    /// Returns the age in whole seconds, including the time in caches between the origin and the
    /// edge.
    pub fn age_s(&self) -> u64 {
        self.lifetime
            .age
            .saturating_add(self.resident_time())
            .as_secs()
    }

    /// Returns the remaining freshness in seconds; negative if the object is stale.
    pub fn ttl_s(&self) -> i64 {
        self.ttl_at_age(self.age_s())
    }

    /// Returns the remaining freshness in seconds at the age `age_s`; negative if the object is
    /// then stale.
    pub fn ttl_at_age(&self, age_s: u64) -> i64 {
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        signed(self.lifetime.fresh.as_secs()) - signed(age_s)
    }

    /// Returns the length of the body, if it is known.
    pub fn len(&self) -> Option<u64> {
        let whole = self.body.is_complete();
        self.declared_len.or_else(|| whole.then(|| self.body.len()))
    }

    /// Returns whether the object is the variant that this request selects (RFC 9111 section 4.1).
    pub fn matches_request(&self, request: &HeaderMap) -> bool {
        self.vary
            .iter()
            .all(|(name, value)| selecting_value(request, name) == *value)
    }
}

/// Returns the names of the request headers that a response varies by, sorted and without
/// duplicates. These are the names in Vary, and the names that other response headers imply.
pub fn vary_names(headers: &HeaderMap) -> Vec<HeaderName> {
    let mut names = declared_vary_names(headers);
    names.extend(implied_vary_names(headers));
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    names
}

/// Returns the request headers that a response varies by, with their values in `request`.
pub fn vary_values(headers: &HeaderMap, request: &HeaderMap) -> Vec<(HeaderName, String)> {
    let names = vary_names(headers).into_iter();
    let pairs = names.map(|name| {
        let value = selecting_value(request, &name);
        (name, value)
    });
    pairs.collect()
}

fn declared_vary_names(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::VARY).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|text| text.split(','));
    names.filter_map(|name| name.trim().parse().ok()).collect()
}

/// Returns the request headers that a response varies by even if Vary does not list them. A CORS
/// header for a single origin implies `Origin`, and a content encoding implies `Accept-Encoding`. A
/// response with such a header does not suit all clients.
fn implied_vary_names(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let differs_from = |name: HeaderName, all: &[u8]| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| !value.as_bytes().eq_ignore_ascii_case(all))
    };
    let origin = differs_from(header::ACCESS_CONTROL_ALLOW_ORIGIN, b"*").then_some(header::ORIGIN);
    let coding =
        differs_from(header::CONTENT_ENCODING, b"identity").then_some(header::ACCEPT_ENCODING);
    origin.into_iter().chain(coding)
}

/// Adds the implied names to Vary, so that caches between the edge and the client also distinguish
/// the variants.
fn declare_implied_vary(headers: &mut HeaderMap) {
    let declared = declared_vary_names(headers);
    let implied: Vec<_> = implied_vary_names(headers).collect();
    for name in implied.into_iter().filter(|name| !declared.contains(name)) {
        headers.append(header::VARY, name.into());
    }
}

/// Returns the validators of a response that has just arrived. If Last-Modified and Date are
/// absent, the time of arrival is used as Date (RFC 9111 section 4.3.2).
fn validators_with_date(headers: &HeaderMap) -> Validators {
    let mut validators = Validators::from_headers(headers);
    if validators.modified.is_none() && validators.date.is_none() {
        validators.date = LastModified::from_time(SystemTime::now());
    }
    validators
}

fn parse_surrogate_keys(headers: &HeaderMap) -> Vec<Box<str>> {
    let values = headers.get_all(SURROGATE_KEY).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(str::split_ascii_whitespace)
        .map(Box::from)
        .collect()
}

#[cfg(test)]
mod tests;
