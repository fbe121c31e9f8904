use std::time::Duration;

use super::*;
use crate::fresh::{Lifetime, Source};
use crate::reason::Why;

/// Five seconds old when it came, just now.
fn kept() -> Object {
    let lifetime = Lifetime {
        fresh: Duration::from_secs(60),
        source: Source::MaxAge,
        age: Duration::from_secs(5),
        no_cache: false,
        must_revalidate: false,
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
    };
    let none = HeaderMap::new();
    Object::new(StatusCode::OK, &none, lifetime, Some(0), &none)
}

fn said(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let text = |value: &'_ HeaderValue| value.to_str().unwrap().to_owned().leak() as &str;
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect()
}

#[test]
fn a_hits_head_is_prepared_for_its_second_and_no_other() {
    let object = kept();
    let expected = [
        ("age", "5"),
        ("via", "1.1 headwater"),
        ("cache-status", "headwater; hit; ttl=55; detail=fresh"),
    ];
    for second in [4, 6] {
        let old = HeaderMap::from_iter([(header::AGE, HeaderValue::from(second))]);
        object.prepared.store(Some(Arc::new((second, old))));
        assert_eq!(said(&head(&object, Outcome::Hit)), expected, "{second}");
    }
    // It was prepared, and is what the next hit is given.
    assert_eq!(object.prepared.load().as_ref().unwrap().0, 5);
    let marked = HeaderMap::from_iter([(header::VIA, HeaderValue::from_static("x"))]);
    object.prepared.store(Some(Arc::new((5, marked))));
    assert_eq!(said(&head(&object, Outcome::Hit)), [("via", "x")]);
}

#[test]
fn what_is_no_plain_hit_is_not_given_a_hits_head() {
    let object = kept();
    let hit = head(&object, Outcome::Hit);
    for outcome in [Outcome::Disk, Outcome::Follow(Why::Absent)] {
        assert_ne!(head(&object, outcome), hit);
    }
    assert_eq!(head(&object, Outcome::Hit), hit);
}
