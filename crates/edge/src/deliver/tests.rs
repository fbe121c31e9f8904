use std::time::Duration;

use super::*;
use crate::cache_outcome::MissReason;
use crate::freshness::{FreshnessLifetime, LifetimeSource};

/// Returns an object that arrived just now with an age of five seconds.
fn cached_object() -> CachedObject {
    let lifetime = FreshnessLifetime {
        fresh: Duration::from_secs(60),
        source: LifetimeSource::MaxAge,
        age: Duration::from_secs(5),
        no_cache: false,
        must_revalidate: false,
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
    };
    let none = HeaderMap::new();
    CachedObject::new(StatusCode::OK, &none, lifetime, Some(0), &none)
}

fn header_pairs(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let text = |value: &'_ HeaderValue| value.to_str().unwrap().to_owned().leak() as &str;
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect()
}

#[test]
fn hit_headers_are_prepared_for_one_second() {
    let object = cached_object();
    let expected = [
        ("age", "5"),
        ("via", "1.1 headwater"),
        ("cache-status", "headwater; hit; ttl=55; detail=fresh"),
    ];
    for second in [4, 6] {
        let old = HeaderMap::from_iter([(header::AGE, HeaderValue::from(second))]);
        object.hit_headers.store(Some(Arc::new((second, old))));
        assert_eq!(
            header_pairs(&response_headers(&object, CacheOutcome::Hit)),
            expected,
            "{second}"
        );
    }
    // The last hit stored its headers for later hits at the age of 5 s.
    assert_eq!(object.hit_headers.load().as_ref().unwrap().0, 5);
    let marked = HeaderMap::from_iter([(header::VIA, HeaderValue::from_static("x"))]);
    object.hit_headers.store(Some(Arc::new((5, marked))));
    assert_eq!(
        header_pairs(&response_headers(&object, CacheOutcome::Hit)),
        [("via", "x")]
    );
}

#[test]
fn other_outcomes_do_not_use_prepared_hit_headers() {
    let object = cached_object();
    let hit = response_headers(&object, CacheOutcome::Hit);
    for outcome in [
        CacheOutcome::DiskHit,
        CacheOutcome::Follow(MissReason::Absent),
    ] {
        assert_ne!(response_headers(&object, outcome), hit);
    }
    assert_eq!(response_headers(&object, CacheOutcome::Hit), hit);
}
