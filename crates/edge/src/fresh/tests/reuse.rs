//! Whether a kept answer may be used (section 4).

use super::*;

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
