//! Tests of lifetime and age (RFC 9111 section 4.2).

use super::*;

#[test]
fn section_4_2_1_lifetimes_in_their_order() {
    for (lines, seconds, source) in [
        (
            &["Cache-Control: max-age=9, s-maxage=5"][..],
            5,
            LifetimeSource::SharedMaxAge,
        ),
        (
            &["Cache-Control: max-age=9", "Expires: {100}"],
            9,
            LifetimeSource::MaxAge,
        ),
        (
            &["Expires: {100}", "Date: {-10}"],
            110,
            LifetimeSource::Expires,
        ),
        (&["Expires: {100}"], 100, LifetimeSource::Expires),
        (&["Expires: 0", "ETag: \"a\""], 0, LifetimeSource::Expires),
        (
            &["Expires: {-5}", "ETag: \"a\""],
            0,
            LifetimeSource::Expires,
        ),
        // If a directive occurs twice, the shorter value is used. A response with an invalid value
        // is stale. A value that is too large is reduced to the maximum.
        (
            &["Cache-Control: max-age=9, max-age=3"],
            3,
            LifetimeSource::MaxAge,
        ),
        (
            &["Cache-Control: max-age=soon", "ETag: \"a\""],
            0,
            LifetimeSource::MaxAge,
        ),
        (
            &["Cache-Control: max-age=-9", "ETag: \"a\""],
            0,
            LifetimeSource::MaxAge,
        ),
        (
            &["Cache-Control: max-age=1.5", "ETag: \"a\""],
            0,
            LifetimeSource::MaxAge,
        ),
        (
            &["Cache-Control: max-age", "ETag: \"a\""],
            0,
            LifetimeSource::MaxAge,
        ),
        (
            &["Cache-Control: max-age=99999999999999999999"],
            1 << 31,
            LifetimeSource::MaxAge,
        ),
        (&["Cache-Control: Max-Age=\"9\""], 9, LifetimeSource::MaxAge),
        (
            &["Cache-Control: ,, max-age=9 ,"],
            9,
            LifetimeSource::MaxAge,
        ),
        // Section 4.2.2: heuristic lifetimes.
        (&["Last-Modified: {-1000}"], 100, LifetimeSource::Heuristic),
        (
            &["Last-Modified: {-1000000}"],
            3600,
            LifetimeSource::Heuristic,
        ),
        (
            &["Last-Modified: {1000}", "ETag: \"a\""],
            0,
            LifetimeSource::Nothing,
        ),
        (&["ETag: \"a\""], 0, LifetimeSource::Nothing),
    ] {
        let found = lifetime_from(200, lines).unwrap();
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
        (&["Age: "], 0, 0),
        (&["Age: , 90"], 0, 0),
        (&[], 4, 4),
    ] {
        let mut lines = lines.to_vec();
        lines.push("Cache-Control: max-age=100");
        let exchange = StorageFacts {
            method: &Method::GET,
            has_authorization: false,
            has_cookies: false,
            delay: s(delay),
        };
        let map = headers(&lines);
        let found = judge_storage(
            &exchange,
            StatusCode::OK,
            &map,
            now(),
            &FreshnessPolicy::default(),
        )
        .unwrap();
        assert_eq!(found.age, s(expected), "{lines:?}");
    }
    // A response that is stale on arrival and has no validator is not stored.
    let old = lifetime_from(200, &["Cache-Control: max-age=9", "Age: 9"]);
    assert_eq!(old, Err(UncacheableReason::NoLifetime));
}

#[test]
fn negative_responses_have_a_short_default_lifetime() {
    assert_eq!(
        lifetime_from(404, &[]).unwrap().source,
        LifetimeSource::Negative
    );
    assert_eq!(lifetime_from(410, &[]).unwrap().fresh, s(1));
    assert_eq!(
        lifetime_from(404, &["Cache-Control: max-age=60"])
            .unwrap()
            .fresh,
        s(60)
    );
    assert_eq!(
        lifetime_from(404, &["Cache-Control: no-store"]),
        Err(UncacheableReason::NoStore)
    );
    assert_eq!(
        judge_with("C", 404, &[]),
        Err(UncacheableReason::NoLifetime)
    );
}

const PLAIN_GET: StorageFacts<'_> = StorageFacts {
    method: &Method::GET,
    has_authorization: false,
    has_cookies: false,
    delay: Duration::ZERO,
};

fn rule_with_ttl(ttl: Duration) -> FreshnessPolicy {
    FreshnessPolicy {
        ttl: Some(ttl),
        ..FreshnessPolicy::default()
    }
}

#[test]
fn a_rule_ttl_overrides_all_but_prohibitions() {
    let (policy, exchange) = (rule_with_ttl(s(50)), PLAIN_GET);
    let judge =
        |lines: &[&str]| judge_storage(&exchange, StatusCode::OK, &headers(lines), now(), &policy);
    let found = judge(&["Cache-Control: max-age=1, no-cache"]).unwrap();
    assert_eq!(
        (found.fresh, found.source, found.no_cache),
        (s(50), LifetimeSource::Rule, false)
    );
    assert_eq!(
        judge(&["Cache-Control: no-store"]),
        Err(UncacheableReason::NoStore)
    );
    assert_eq!(
        judge(&["Cache-Control: private"]),
        Err(UncacheableReason::Private)
    );
}

/// An error that would not be stored without the rule may be temporary or specific to one client.
#[test]
fn a_rule_ttl_applies_only_to_errors_that_are_storable_without_the_rule() {
    let (policy, exchange) = (rule_with_ttl(s(50)), PLAIN_GET);
    let none = Err(UncacheableReason::Status);
    for (status, lines, expected) in [
        (400, &[][..], none),
        (401, &[], none),
        (403, &[], none),
        (429, &[], none),
        (500, &[], none),
        (503, &[], none),
        (501, &[], Err(UncacheableReason::NoLifetime)),
        (404, &[], Ok(s(50))),
        (500, &["Cache-Control: max-age=1"], Ok(s(50))),
        // Responses that are no errors get the lifetime of the rule in any case.
        (302, &[], Ok(s(50))),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let found = judge_storage(&exchange, status, &headers(lines), now(), &policy);
        assert_eq!(
            found.map(|found| found.fresh),
            expected,
            "{status} {lines:?}"
        );
    }
}

#[test]
fn rfc_9213_the_targeted_field_replaces_the_others() {
    for (lines, expected) in [
        (
            &["CDN-Cache-Control: max-age=60", "Cache-Control: no-store"][..],
            Ok((60, LifetimeSource::Targeted)),
        ),
        (
            &["CDN-Cache-Control: no-store", "Cache-Control: max-age=60"],
            Err(UncacheableReason::NoStore),
        ),
        (
            &["CDN-Cache-Control: max-age=60", "Expires: {-5}"],
            Ok((60, LifetimeSource::Targeted)),
        ),
        (
            &["CDN-Cache-Control: public, s-maxage=5"],
            Ok((5, LifetimeSource::Targeted)),
        ),
        (
            &["CDN-Cache-Control: max-age=60;a=b, no-store=?0"],
            Ok((60, LifetimeSource::Targeted)),
        ),
        // An invalid or empty dictionary is ignored.
        (
            &["CDN-Cache-Control: MAX-AGE=60", "Cache-Control: max-age=7"],
            Ok((7, LifetimeSource::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: max-age=", "Cache-Control: max-age=7"],
            Ok((7, LifetimeSource::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: a b", "Cache-Control: max-age=7"],
            Ok((7, LifetimeSource::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: ", "Cache-Control: max-age=7"],
            Ok((7, LifetimeSource::MaxAge)),
        ),
        // Regression: `max-age` with a string value was accepted in CDN-Cache-Control, so that this
        // field overrode `no-store`.
        (
            &[
                "CDN-Cache-Control: max-age=\"10000\"",
                "Cache-Control: no-store",
            ],
            Err(UncacheableReason::NoStore),
        ),
        (
            &["CDN-Cache-Control: max-age=-1", "Cache-Control: max-age=7"],
            Ok((7, LifetimeSource::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: max-age=60,", "Cache-Control: max-age=7"],
            Ok((7, LifetimeSource::MaxAge)),
        ),
        (
            &["CDN-Cache-Control: no-store=5", "Cache-Control: max-age=7"],
            Ok((7, LifetimeSource::MaxAge)),
        ),
        (
            &[
                "CDN-Cache-Control: max-age=5, max-age=60",
                "CDN-Cache-Control: x=(1 2)",
            ],
            Ok((60, LifetimeSource::Targeted)),
        ),
        (
            &[
                "CDN-Cache-Control: private=\"a\"",
                "Cache-Control: max-age=7",
            ],
            Err(UncacheableReason::Private),
        ),
        // If CDN-Cache-Control is present, Expires is ignored, even if CDN-Cache-Control contains
        // no lifetime.
        (
            &["CDN-Cache-Control: public", "Expires: {100}", "ETag: \"a\""],
            Ok((0, LifetimeSource::Nothing)),
        ),
    ] {
        let found = lifetime_from(200, lines).map(|found| (found.fresh.as_secs(), found.source));
        assert_eq!(found, expected, "{lines:?}");
    }
}

/// Like other caches, the edge accepts dates with a wrong weekday or with unusual upper and lower
/// case.
#[test]
fn dates_with_a_wrong_weekday_or_other_letter_case_count() {
    for expires in [
        "Tue, 14 Nov 2023 22:14:20 GMT",
        "tue, 14 nov 2023 22:14:20 gmt",
        "Fri, 14 Nov 2023 22:14:20 GMT",
    ] {
        let lines = [
            "Date: TUE, 14 NOV 2023 22:13:20 GMT",
            &format!("Expires: {expires}"),
        ];
        let found = lifetime_from(200, &lines).map(|found| (found.fresh.as_secs(), found.source));
        assert_eq!(found, Ok((60, LifetimeSource::Expires)), "{expires}");
    }
}
