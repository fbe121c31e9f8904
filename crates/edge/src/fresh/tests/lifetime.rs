//! For how long, and how old it is (section 4.2).

use super::*;

#[test]
fn section_4_2_1_lifetimes_in_their_order() {
    for (lines, seconds, source) in [
        (
            &["Cache-Control: max-age=9, s-maxage=5"][..],
            5,
            Source::SharedMaxAge,
        ),
        (
            &["Cache-Control: max-age=9", "Expires: {100}"],
            9,
            Source::MaxAge,
        ),
        (&["Expires: {100}", "Date: {-10}"], 110, Source::Expires),
        (&["Expires: {100}"], 100, Source::Expires),
        (&["Expires: 0", "ETag: \"a\""], 0, Source::Expires),
        (&["Expires: {-5}", "ETag: \"a\""], 0, Source::Expires),
        // Said twice: the shorter. Nonsense: stale. Too long: as long as can be.
        (&["Cache-Control: max-age=9, max-age=3"], 3, Source::MaxAge),
        (
            &["Cache-Control: max-age=soon", "ETag: \"a\""],
            0,
            Source::MaxAge,
        ),
        (
            &["Cache-Control: max-age=-9", "ETag: \"a\""],
            0,
            Source::MaxAge,
        ),
        (
            &["Cache-Control: max-age=1.5", "ETag: \"a\""],
            0,
            Source::MaxAge,
        ),
        (
            &["Cache-Control: max-age", "ETag: \"a\""],
            0,
            Source::MaxAge,
        ),
        (
            &["Cache-Control: max-age=99999999999999999999"],
            1 << 31,
            Source::MaxAge,
        ),
        (&["Cache-Control: Max-Age=\"9\""], 9, Source::MaxAge),
        (&["Cache-Control: ,, max-age=9 ,"], 9, Source::MaxAge),
        // Section 4.2.2.
        (&["Last-Modified: {-1000}"], 100, Source::Heuristic),
        (&["Last-Modified: {-1000000}"], 3600, Source::Heuristic),
        (
            &["Last-Modified: {1000}", "ETag: \"a\""],
            0,
            Source::Nothing,
        ),
        (&["ETag: \"a\""], 0, Source::Nothing),
    ] {
        let found = kept(200, lines).unwrap();
        assert_eq!(
            (found.fresh.as_secs(), found.source),
            (seconds, source),
            "{lines:?}"
        );
    }
}

#[test]
fn section_4_2_3_age() {
    for (lines, delay, expected) in [
        (&["Age: 7"][..], 0, 7),
        (&["Age: 7"], 2, 9),
        (&["Date: {-30}", "Age: 7"], 0, 30),
        (&["Date: {-3}", "Age: 7"], 0, 7),
        (&["Date: {50}", "Age: 7"], 0, 7),
        (&["Age: 7, 90"], 0, 7),
        (&["Age: -7"], 0, 0),
        (&["Age: x"], 0, 0),
        (&[], 4, 4),
    ] {
        let mut lines = lines.to_vec();
        lines.push("Cache-Control: max-age=100");
        let asked = Asked {
            method: &Method::GET,
            authorized: false,
            cookies: false,
            delay: s(delay),
        };
        let map = headers(&lines);
        let found = keep(&asked, StatusCode::OK, &map, now(), &Policy::default()).unwrap();
        assert_eq!(found.age, s(expected), "{lines:?}");
    }
    // Older than its lifetime when it comes, and nothing to ask with.
    let old = kept(200, &["Cache-Control: max-age=9", "Age: 9"]);
    assert_eq!(old, Err(NotKept::NoLifetime));
}

#[test]
fn negative_answers_live_for_a_moment_unless_they_say() {
    assert_eq!(kept(404, &[]).unwrap().source, Source::Negative);
    assert_eq!(kept(410, &[]).unwrap().fresh, s(1));
    assert_eq!(
        kept(404, &["Cache-Control: max-age=60"]).unwrap().fresh,
        s(60)
    );
    assert_eq!(
        kept(404, &["Cache-Control: no-store"]),
        Err(NotKept::NoStore)
    );
    assert_eq!(kept_for("C", 404, &[]), Err(NotKept::NoLifetime));
}

#[test]
fn a_rules_ttl_goes_before_all_but_prohibitions() {
    let policy = Policy {
        ttl: Some(s(50)),
        ..Policy::default()
    };
    let asked = Asked {
        method: &Method::GET,
        authorized: false,
        cookies: false,
        delay: s(0),
    };
    let judge = |lines: &[&str]| keep(&asked, StatusCode::OK, &headers(lines), now(), &policy);
    let found = judge(&["Cache-Control: max-age=1, no-cache"]).unwrap();
    assert_eq!(
        (found.fresh, found.source, found.no_cache),
        (s(50), Source::Rule, false)
    );
    assert_eq!(judge(&["Cache-Control: no-store"]), Err(NotKept::NoStore));
    assert_eq!(judge(&["Cache-Control: private"]), Err(NotKept::Private));
}

#[test]
fn rfc_9213_the_targeted_field_replaces_the_others() {
    for (lines, expected) in [
        (
            &["CDN-Cache-Control: max-age=60", "Cache-Control: no-store"][..],
            Ok((60, Source::Targeted)),
        ),
        (
            &["CDN-Cache-Control: no-store", "Cache-Control: max-age=60"],
            Err(NotKept::NoStore),
        ),
        (
            &["CDN-Cache-Control: max-age=60", "Expires: {-5}"],
            Ok((60, Source::Targeted)),
        ),
        (
            &["CDN-Cache-Control: public, s-maxage=5"],
            Ok((5, Source::Targeted)),
        ),
        (
            &["CDN-Cache-Control: max-age=60;a=b, no-store=?0"],
            Ok((60, Source::Targeted)),
        ),
        // Not a dictionary, or empty: as if it were not there.
        (
            &["CDN-Cache-Control: MAX-AGE=60", "Cache-Control: max-age=7"],
            Ok((7, Source::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: max-age=", "Cache-Control: max-age=7"],
            Ok((7, Source::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: a b", "Cache-Control: max-age=7"],
            Ok((7, Source::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: ", "Cache-Control: max-age=7"],
            Ok((7, Source::MaxAge)),
        ),
        // Expires does not count beside it, even if it names no lifetime.
        (
            &["CDN-Cache-Control: public", "Expires: {100}", "ETag: \"a\""],
            Ok((0, Source::Nothing)),
        ),
    ] {
        let found = kept(200, lines).map(|found| (found.fresh.as_secs(), found.source));
        assert_eq!(found, expected, "{lines:?}");
    }
}
