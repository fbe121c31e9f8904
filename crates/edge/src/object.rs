//! An answer of the origin that others may be given too.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode};
use net::conditional::Validators;
use store::cache::{Growing, Weigh};

use crate::fresh::Lifetime;
use crate::headers::{SURROGATE_KEY, end_to_end};
use crate::key::{Key, selecting};

/// Pieces of a kept body: long enough for few system calls, short enough to be had at once.
const PIECE_BYTES: usize = 1 << 20;
/// What an entry takes besides its text and body, about.
const ENTRY_BYTES: u64 = 1024;
/// Variants of one URL that are kept; the oldest makes room.
const VARIANTS_MAX: usize = 64;

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
    pub body: Arc<Growing>,
    /// The body's pieces, once it is whole: found without a lock.
    whole: OnceLock<Vec<Bytes>>,
    /// The headers that it varies by, with the values of the request that it answers.
    pub vary: Vec<(HeaderName, String)>,
    /// Names that it can be purged by.
    pub tags: Vec<Box<str>>,
    /// Purged softly: to be asked for before it is used again.
    pub purged: AtomicBool,
    /// How often it was used.
    pub uses: AtomicU64,
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
        Object {
            status,
            validators: Validators::of(&kept),
            vary: varying(&kept)
                .into_iter()
                .map(|name| {
                    let value = selecting(request, &name);
                    (name, value)
                })
                .collect(),
            headers: kept,
            lifetime,
            received: Instant::now(),
            len,
            body: Arc::default(),
            whole: OnceLock::new(),
            tags,
            purged: AtomicBool::new(false),
            uses: AtomicU64::new(0),
        }
    }

    /// The same body under the head of a 304 (RFC 9111 section 3.2): its fields replace ours,
    /// except for those that speak about a body that did not come.
    pub fn confirmed(&self, headers: &HeaderMap, lifetime: Lifetime) -> Object {
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
        Object {
            status: self.status,
            validators: Validators::of(&merged),
            headers: merged,
            lifetime,
            received: Instant::now(),
            len: self.len,
            body: Arc::clone(&self.body),
            whole: self.whole.clone(),
            vary: self.vary.clone(),
            tags: if tagged.is_empty() {
                self.tags.clone()
            } else {
                tagged
            },
            purged: AtomicBool::new(false),
            uses: AtomicU64::new(self.uses.load(Relaxed)),
        }
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
        let signed = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        signed(self.lifetime.fresh) - signed(self.lifetime.age.saturating_add(self.resident()))
    }

    /// The pieces of a whole body.
    pub fn whole(&self) -> Option<&[Bytes]> {
        self.whole.get().map(Vec::as_slice)
    }

    /// Length of the body, where it is known by now.
    pub fn len(&self) -> Option<u64> {
        let whole = |pieces: &[Bytes]| pieces.iter().map(|piece| piece.len() as u64).sum();
        self.len.or_else(|| self.whole().map(whole))
    }

    /// All of the body is here: it ends, in pieces that hold just its bytes. (What came from the
    /// socket holds on to buffers that are longer.)
    pub fn finish(&self) {
        self.body.end(Ok(()));
        let Some(came) = self.body.pieces() else {
            return;
        };
        let mut rest: usize = came.iter().map(Bytes::len).sum();
        let (mut pieces, mut piece) = (Vec::new(), BytesMut::with_capacity(rest.min(PIECE_BYTES)));
        for mut part in came {
            while !part.is_empty() {
                let room = piece.capacity() - piece.len();
                let now = part.split_to(part.len().min(room.max(1)));
                piece.extend_from_slice(&now);
                rest -= now.len();
                if piece.len() >= PIECE_BYTES {
                    pieces.push(std::mem::take(&mut piece).freeze());
                    piece = BytesMut::with_capacity(rest.min(PIECE_BYTES));
                }
            }
        }
        if !piece.is_empty() {
            pieces.push(piece.freeze());
        }
        self.body.repack(pieces.clone());
        // Only whoever fetches it comes here, once.
        let _ = self.whole.set(pieces);
    }

    /// Whether a request with these headers may be given it (RFC 9111 section 4.1).
    pub fn answers(&self, request: &HeaderMap) -> bool {
        self.vary
            .iter()
            .all(|(name, value)| selecting(request, name) == *value)
    }
}

/// The headers that an answer says it varies by, in one order, each once.
fn varying(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::VARY).iter();
    let mut names: Vec<HeaderName> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    names
}

fn tags(headers: &HeaderMap) -> Vec<Box<str>> {
    let values = headers.get_all(SURROGATE_KEY).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(str::split_ascii_whitespace)
        .map(Box::from)
        .collect()
}

/// What the memory tier holds for a key.
#[derive(Debug, Clone)]
pub enum Entry {
    /// This.
    Object(Arc<Object>),
    /// Look again, with the values of these headers.
    Varies(Arc<Varies>),
    /// What came last was not to be shared: until then, do not make others wait for each other.
    Apart(Instant),
}

/// Which headers a URL's answers vary by, and the variants that are kept.
#[derive(Debug)]
pub struct Varies {
    pub names: Vec<HeaderName>,
    kept: Mutex<VecDeque<Key>>,
}

impl Varies {
    pub fn new(names: Vec<HeaderName>) -> Varies {
        Varies {
            names,
            kept: Mutex::default(),
        }
    }

    /// Notes a variant; returns one that must go for it.
    pub fn keep(&self, variant: &Key) -> Option<Key> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other != variant);
        kept.push_back(variant.clone());
        if kept.len() > VARIANTS_MAX {
            kept.pop_front()
        } else {
            None
        }
    }
}

impl Weigh for Entry {
    fn bytes(&self) -> u64 {
        match self {
            Entry::Object(object) => {
                let text = |(name, value): (&HeaderName, &http::HeaderValue)| {
                    (name.as_str().len() + value.len()) as u64
                };
                let head: u64 = object.headers.iter().map(text).sum();
                ENTRY_BYTES + head + object.body.len()
            }
            Entry::Varies(_) => ENTRY_BYTES + (VARIANTS_MAX * 200) as u64,
            Entry::Apart(_) => ENTRY_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fresh::Source;

    const LIFETIME: Lifetime = Lifetime {
        fresh: Duration::from_secs(60),
        source: Source::MaxAge,
        age: Duration::from_secs(5),
        no_cache: false,
        must_revalidate: false,
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
    };

    fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    fn object(lines: &[(&'static str, &str)]) -> Object {
        Object::new(
            StatusCode::OK,
            &map(lines),
            LIFETIME,
            None,
            &map(&[("a", "1")]),
        )
    }

    #[test]
    fn a_finished_body_is_repacked_and_the_same() {
        for sizes in [
            &[][..],
            &[1],
            &[3, 5],
            &[PIECE_BYTES],
            &[700_000; 5],
            &[PIECE_BYTES + 1, 2],
        ] {
            let object = object(&[]);
            let mut all = Vec::new();
            for (n, size) in sizes.iter().enumerate() {
                let part: Vec<u8> = (0..*size).map(|i| (i * 7 + n) as u8).collect();
                all.extend_from_slice(&part);
                object.body.push(part.into());
            }
            assert_eq!(object.whole(), None);
            object.finish();
            let pieces = object.whole().unwrap();
            assert_eq!(pieces.concat(), all);
            assert_eq!(object.len(), Some(all.len() as u64));
            assert_eq!(pieces.len(), all.len().div_ceil(PIECE_BYTES));
        }
    }

    #[test]
    fn a_confirmation_replaces_fields_but_not_those_of_the_body() {
        let old = object(&[
            ("etag", "\"a\""),
            ("x", "1"),
            ("x", "2"),
            ("content-type", "video/mp4"),
            ("surrogate-key", "film a"),
        ]);
        assert!(!old.headers.contains_key("surrogate-key"));
        let new = old.confirmed(
            &map(&[
                ("x", "3"),
                ("content-type", "text/html"),
                ("content-length", "9"),
                ("age", "7"),
            ]),
            LIFETIME,
        );
        let lines: Vec<_> = new
            .headers
            .iter()
            .map(|(n, v)| (n.as_str(), v.to_str().unwrap()))
            .collect();
        assert!(lines.contains(&("x", "3")) && !lines.contains(&("x", "1")));
        assert!(lines.contains(&("content-type", "video/mp4")));
        assert!(!new.headers.contains_key("content-length") && !new.headers.contains_key("age"));
        assert_eq!(new.tags, old.tags);
    }

    #[test]
    fn variants_are_bounded_and_the_oldest_goes() {
        let varies = Varies::new(vec![header::ORIGIN]);
        let key = |n: usize| Key::from(format!("/a\norigin:{n}").as_str());
        for n in 0..VARIANTS_MAX {
            assert_eq!(varies.keep(&key(n)), None);
        }
        assert_eq!(varies.keep(&key(0)), None, "known already, and young again");
        assert_eq!(varies.keep(&key(999)), Some(key(1)));
    }

    #[test]
    fn it_answers_requests_with_the_same_values_only() {
        let one = object(&[("vary", "B, a"), ("vary", "a")]);
        assert_eq!(one.vary.len(), 2);
        assert!(one.answers(&map(&[("a", "1")])));
        assert!(!one.answers(&map(&[("a", "2")])));
        assert!(!one.answers(&map(&[("a", "1"), ("b", "x")])));
    }
}
