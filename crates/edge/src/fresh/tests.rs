//! The standards' text, section by section.

#![allow(clippy::too_many_lines)] // Tables.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode};

use super::*;
use crate::reason::{Asking, NotKept};

const NOW_S: u64 = 1_700_000_000;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + s(NOW_S)
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(offset: i64) -> String {
    let seconds = NOW_S.checked_add_signed(offset).unwrap();
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + s(seconds))
}

/// Lines of `Name: value`; `{-100}` becomes the date 100 s before now.
fn headers(lines: &[&str]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let value = match value.strip_prefix('{').and_then(|v| v.strip_suffix('}')) {
            Some(offset) => at(offset.parse().unwrap()),
            None => value.to_owned(),
        };
        let name: http::HeaderName = name.parse().unwrap();
        map.append(name, value.parse().unwrap());
    }
    map
}

fn kept(status: u16, lines: &[&str]) -> Result<Lifetime, NotKept> {
    kept_for("", status, lines)
}

/// `request` holds letters: `A`uthorization, `C`ookie, `P`OST.
fn kept_for(request: &str, status: u16, lines: &[&str]) -> Result<Lifetime, NotKept> {
    let method = if request.contains('P') {
        Method::POST
    } else {
        Method::GET
    };
    let asked = Asked {
        method: &method,
        authorized: request.contains('A'),
        cookies: request.contains('C'),
        delay: s(0),
    };
    let status = StatusCode::from_u16(status).unwrap();
    keep(&asked, status, &headers(lines), now(), &Policy::default())
}

#[test]
fn section_3_what_may_be_kept() {
    for (request, status, lines, expected) in [
        ("", 200, &["Cache-Control: max-age=9"][..], Ok(9)),
        (
            "P",
            200,
            &["Cache-Control: max-age=9"],
            Err(NotKept::Method),
        ),
        ("", 206, &["Cache-Control: max-age=9"], Err(NotKept::Status)),
        ("", 304, &["Cache-Control: max-age=9"], Err(NotKept::Status)),
        ("", 416, &["Cache-Control: max-age=9"], Err(NotKept::Status)),
        (
            "",
            200,
            &["Cache-Control: no-store, max-age=9"],
            Err(NotKept::NoStore),
        ),
        (
            "",
            200,
            &["Cache-Control: max-age=9", "Cache-Control: NO-STORE"],
            Err(NotKept::NoStore),
        ),
        (
            "",
            200,
            &["Cache-Control: private, max-age=9"],
            Err(NotKept::Private),
        ),
        (
            "",
            200,
            &["Cache-Control: private=\"x, y\", max-age=9"],
            Err(NotKept::Private),
        ),
        // A directive's name inside another's argument is none.
        (
            "",
            200,
            &["Cache-Control: x=\"no-store\", max-age=9"],
            Ok(9),
        ),
        (
            "",
            200,
            &["Cache-Control: x=\"a, no-store, \\\"b\", max-age=9"],
            Ok(9),
        ),
        // Section 3.5.
        (
            "A",
            200,
            &["Cache-Control: max-age=9"],
            Err(NotKept::Authorization),
        ),
        ("A", 200, &["Cache-Control: max-age=9, public"], Ok(9)),
        (
            "A",
            200,
            &["Cache-Control: max-age=9, must-revalidate"],
            Ok(9),
        ),
        ("A", 200, &["Cache-Control: s-maxage=9"], Ok(9)),
        // Section 5.2.2.3: must-understand.
        (
            "",
            200,
            &["Cache-Control: must-understand, no-store, max-age=9"],
            Ok(9),
        ),
        (
            "",
            599,
            &["Cache-Control: must-understand, no-store, max-age=9"],
            Err(NotKept::Status),
        ),
        (
            "",
            599,
            &["Cache-Control: must-understand, max-age=9"],
            Err(NotKept::Status),
        ),
        // Not heuristically cacheable, but explicit.
        ("", 302, &["Cache-Control: max-age=9"], Ok(9)),
        ("", 503, &["Cache-Control: max-age=9"], Ok(9)),
        ("", 302, &["Last-Modified: {-1000}"], Err(NotKept::Status)),
        ("", 500, &[], Err(NotKept::Status)),
        (
            "",
            200,
            &["Vary: *", "Cache-Control: max-age=9"],
            Err(NotKept::VaryStar),
        ),
        (
            "",
            200,
            &["Vary: accept, *", "Cache-Control: max-age=9"],
            Err(NotKept::VaryStar),
        ),
        // Ours: cookies.
        (
            "",
            200,
            &["Set-Cookie: a=b", "Cache-Control: max-age=9"],
            Err(NotKept::SetCookie),
        ),
        ("C", 200, &["Last-Modified: {-1000}"], Ok(0)),
        ("C", 200, &["Cache-Control: max-age=9"], Ok(9)),
        // Nothing to use it by.
        ("", 200, &[], Err(NotKept::NoLifetime)),
        (
            "",
            200,
            &["Cache-Control: max-age=0"],
            Err(NotKept::NoLifetime),
        ),
        (
            "",
            200,
            &["Cache-Control: no-cache"],
            Err(NotKept::NoLifetime),
        ),
        ("", 200, &["Cache-Control: no-cache", "ETag: \"a\""], Ok(0)),
        ("", 200, &["Cache-Control: max-age=0", "ETag: \"a\""], Ok(0)),
    ] {
        let found = kept_for(request, status, lines);
        let found = found.map(|lifetime| lifetime.fresh.as_secs());
        assert_eq!(found, expected, "{request} {status} {lines:?}");
    }
}

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

fn directives(text: &str) -> Directives {
    let lines = [format!("Cache-Control: {text}")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Directives::of_request(&headers(if text.is_empty() { &[] } else { &lines }))
}

#[test]
fn section_4_and_5_2_1_use_of_a_kept_answer() {
    use Asking::*;
    for (answer, resident, request, expected) in [
        ("max-age=10", 9, "", Use::Fresh),
        ("max-age=10", 10, "", Use::Ask(Expired)),
        (
            "max-age=10, must-revalidate",
            10,
            "",
            Use::Ask(MustRevalidate),
        ),
        (
            "max-age=10, proxy-revalidate",
            10,
            "max-stale",
            Use::Ask(MustRevalidate),
        ),
        ("s-maxage=10", 10, "max-stale=99", Use::Ask(MustRevalidate)),
        ("max-age=10, no-cache", 1, "", Use::Ask(NoCache)),
        ("max-age=10, no-cache=\"x\"", 1, "", Use::Ask(NoCache)),
        ("max-age=10", 1, "no-cache", Use::Ask(RequestNoCache)),
        ("max-age=10", 5, "max-age=4", Use::Ask(RequestMaxAge)),
        ("max-age=10", 4, "max-age=4", Use::Fresh),
        ("max-age=10", 5, "max-age=0", Use::Ask(RequestMaxAge)),
        ("max-age=10", 5, "min-fresh=6", Use::Ask(RequestMinFresh)),
        ("max-age=10", 5, "min-fresh=5", Use::Fresh),
        ("max-age=10", 12, "max-stale=2", Use::Stale),
        ("max-age=10", 13, "max-stale=2", Use::Ask(Expired)),
        ("max-age=10", 1000, "max-stale", Use::Stale),
        (
            "max-age=10",
            12,
            "max-stale, min-fresh=1",
            Use::Ask(RequestMinFresh),
        ),
        // RFC 5861 section 3.
        (
            "max-age=10, stale-while-revalidate=5",
            14,
            "",
            Use::WhileRevalidate,
        ),
        (
            "max-age=10, stale-while-revalidate=5",
            15,
            "",
            Use::Ask(Expired),
        ),
        (
            "max-age=10, stale-while-revalidate=5, must-revalidate",
            12,
            "",
            Use::Ask(MustRevalidate),
        ),
        // Ours: beside s-maxage it is meant.
        (
            "s-maxage=10, stale-while-revalidate=5",
            12,
            "",
            Use::WhileRevalidate,
        ),
        (
            "max-age=10, stale-while-revalidate=5",
            12,
            "max-age=11",
            Use::Ask(RequestMaxAge),
        ),
    ] {
        let lifetime = kept(200, &[&format!("Cache-Control: {answer}"), "ETag: \"a\""]).unwrap();
        let found = judge(&lifetime, s(resident), &directives(request));
        assert_eq!(found, expected, "{answer} | {resident} | {request}");
    }
}

#[test]
fn section_5_4_pragma_counts_only_without_cache_control() {
    let pragma = Directives::of_request(&headers(&["Pragma: x, No-Cache"]));
    assert!(pragma.no_cache);
    let both = Directives::of_request(&headers(&["Pragma: no-cache", "Cache-Control: max-age=1"]));
    assert!(!both.no_cache);
}

#[test]
fn rfc_5861_section_4_stale_if_error() {
    for (answer, resident, request, expected) in [
        ("max-age=10, stale-if-error=5", 14, "", true),
        ("max-age=10, stale-if-error=5", 15, "", false),
        ("max-age=10", 14, "stale-if-error=5", true),
        ("max-age=10", 14, "", false),
        (
            "max-age=10, stale-if-error=5, must-revalidate",
            14,
            "",
            false,
        ),
        ("max-age=10, stale-if-error=5, no-cache", 14, "", false),
        ("max-age=10, stale-if-error=5", 14, "no-cache", false),
        ("max-age=10, stale-while-revalidate=5", 14, "", true),
        ("s-maxage=10, stale-if-error=5", 14, "", true),
    ] {
        let lifetime = kept(200, &[&format!("Cache-Control: {answer}"), "ETag: \"a\""]).unwrap();
        let found = serves_error(&lifetime, s(resident), &directives(request));
        assert_eq!(found, expected, "{answer} | {resident} | {request}");
    }
}
