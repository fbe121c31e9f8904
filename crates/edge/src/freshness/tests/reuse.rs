//! Tests of the use of stored responses (RFC 9111 section 4).

use super::*;

#[test]
fn section_4_and_5_2_1_use_of_a_kept_answer() {
    use RevalidationReason::*;
    for (response, resident, request, expected) in [
        ("max-age=10", 9, "", ReuseDecision::Fresh),
        ("max-age=10", 10, "", ReuseDecision::Revalidate(Expired)),
        (
            "max-age=10, must-revalidate",
            10,
            "",
            ReuseDecision::Revalidate(MustRevalidate),
        ),
        (
            "max-age=10, proxy-revalidate",
            10,
            "max-stale",
            ReuseDecision::Revalidate(MustRevalidate),
        ),
        (
            "s-maxage=10",
            10,
            "max-stale=99",
            ReuseDecision::Revalidate(MustRevalidate),
        ),
        (
            "max-age=10, no-cache",
            1,
            "",
            ReuseDecision::Revalidate(NoCache),
        ),
        (
            "max-age=10, no-cache=\"x\"",
            1,
            "",
            ReuseDecision::Revalidate(NoCache),
        ),
        (
            "max-age=10",
            1,
            "no-cache",
            ReuseDecision::Revalidate(RequestNoCache),
        ),
        (
            "max-age=10",
            5,
            "max-age=4",
            ReuseDecision::Revalidate(RequestMaxAge),
        ),
        ("max-age=10", 4, "max-age=4", ReuseDecision::Fresh),
        (
            "max-age=10",
            5,
            "max-age=0",
            ReuseDecision::Revalidate(RequestMaxAge),
        ),
        (
            "max-age=10",
            5,
            "min-fresh=6",
            ReuseDecision::Revalidate(RequestMinFresh),
        ),
        ("max-age=10", 5, "min-fresh=5", ReuseDecision::Fresh),
        ("max-age=10", 12, "max-stale=2", ReuseDecision::Stale),
        (
            "max-age=10",
            13,
            "max-stale=2",
            ReuseDecision::Revalidate(Expired),
        ),
        ("max-age=10", 1000, "max-stale", ReuseDecision::Stale),
        (
            "max-age=10",
            12,
            "max-stale, min-fresh=1",
            ReuseDecision::Revalidate(RequestMinFresh),
        ),
        // RFC 5861 section 3: `stale-while-revalidate`.
        (
            "max-age=10, stale-while-revalidate=5",
            14,
            "",
            ReuseDecision::WhileRevalidate,
        ),
        (
            "max-age=10, stale-while-revalidate=5",
            15,
            "",
            ReuseDecision::Revalidate(Expired),
        ),
        (
            "max-age=10, stale-while-revalidate=5, must-revalidate",
            12,
            "",
            ReuseDecision::Revalidate(MustRevalidate),
        ),
        // Our choice: `s-maxage` forbids stale use, unless the response also contains
        // `stale-while-revalidate`.
        (
            "s-maxage=10, stale-while-revalidate=5",
            12,
            "",
            ReuseDecision::WhileRevalidate,
        ),
        (
            "max-age=10, stale-while-revalidate=5",
            12,
            "max-age=11",
            ReuseDecision::Revalidate(RequestMaxAge),
        ),
    ] {
        let lifetime =
            lifetime_from(200, &[&format!("Cache-Control: {response}"), "ETag: \"a\""]).unwrap();
        let found = judge_reuse(&lifetime, s(resident), &directives(request));
        assert_eq!(found, expected, "{response} | {resident} | {request}");
    }
}

#[test]
fn section_5_4_pragma_counts_only_without_cache_control() {
    let pragma = CacheDirectives::from_request(&headers(&["Pragma: x, No-Cache"]));
    assert!(pragma.no_cache);
    let both =
        CacheDirectives::from_request(&headers(&["Pragma: no-cache", "Cache-Control: max-age=1"]));
    assert!(!both.no_cache);
}

#[test]
fn rfc_5861_section_4_stale_if_error() {
    for (response, resident, request, expected) in [
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
        let lifetime =
            lifetime_from(200, &[&format!("Cache-Control: {response}"), "ETag: \"a\""]).unwrap();
        let found = allows_stale_on_error(&lifetime, s(resident), &directives(request));
        assert_eq!(found, expected, "{response} | {resident} | {request}");
    }
}
