use super::*;
use crate::freshness::LifetimeSource;

const LIFETIME: FreshnessLifetime = FreshnessLifetime {
    fresh: Duration::from_secs(60),
    source: LifetimeSource::MaxAge,
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

fn object(lines: &[(&'static str, &str)]) -> CachedObject {
    CachedObject::new(
        StatusCode::OK,
        &map(lines),
        LIFETIME,
        None,
        &map(&[("a", "1")]),
    )
}

#[test]
fn a_304_replaces_fields_but_not_those_of_the_body() {
    let old = object(&[
        ("etag", "\"a\""),
        ("x", "1"),
        ("x", "2"),
        ("content-type", "video/mp4"),
        ("surrogate-key", "film a"),
    ]);
    assert!(!old.headers.contains_key("surrogate-key"));
    let new = old.merge_304(
        &map(&[
            ("x", "3"),
            ("content-type", "text/html"),
            ("content-length", "9"),
            ("age", "7"),
        ]),
        LIFETIME,
        &map(&[]),
    );
    let lines: Vec<_> = new
        .headers
        .iter()
        .map(|(n, v)| (n.as_str(), v.to_str().unwrap()))
        .collect();
    assert!(lines.contains(&("x", "3")) && !lines.contains(&("x", "1")));
    assert!(lines.contains(&("content-type", "video/mp4")));
    assert!(!new.headers.contains_key("content-length") && !new.headers.contains_key("age"));
    assert_eq!(new.surrogate_keys, old.surrogate_keys);
}

#[test]
fn an_object_matches_only_requests_with_its_vary_values() {
    let one = object(&[("vary", "B, a"), ("vary", "a")]);
    assert_eq!(one.vary.len(), 2);
    assert!(one.matches_request(&map(&[("a", "1")])));
    assert!(!one.matches_request(&map(&[("a", "2")])));
    assert!(!one.matches_request(&map(&[("a", "1"), ("b", "x")])));
}
