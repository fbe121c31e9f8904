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
    assert_eq!(new.tags, old.tags);
}

#[test]
fn it_answers_requests_with_the_same_values_only() {
    let one = object(&[("vary", "B, a"), ("vary", "a")]);
    assert_eq!(one.vary.len(), 2);
    assert!(one.answers(&map(&[("a", "1")])));
    assert!(!one.answers(&map(&[("a", "2")])));
    assert!(!one.answers(&map(&[("a", "1"), ("b", "x")])));
}
