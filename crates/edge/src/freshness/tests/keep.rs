//! Tests of the storage of responses (RFC 9111 section 3).

use super::*;

#[test]
fn section_3_what_may_be_kept() {
    for (request, status, lines, expected) in [
        ("", 200, &["Cache-Control: max-age=9"][..], Ok(9)),
        (
            "P",
            200,
            &["Cache-Control: max-age=9"],
            Err(UncacheableReason::Method),
        ),
        (
            "",
            206,
            &["Cache-Control: max-age=9"],
            Err(UncacheableReason::Status),
        ),
        (
            "",
            304,
            &["Cache-Control: max-age=9"],
            Err(UncacheableReason::Status),
        ),
        (
            "",
            416,
            &["Cache-Control: max-age=9"],
            Err(UncacheableReason::Status),
        ),
        (
            "",
            200,
            &["Cache-Control: no-store, max-age=9"],
            Err(UncacheableReason::NoStore),
        ),
        (
            "",
            200,
            &["Cache-Control: max-age=9", "Cache-Control: NO-STORE"],
            Err(UncacheableReason::NoStore),
        ),
        (
            "",
            200,
            &["Cache-Control: private, max-age=9"],
            Err(UncacheableReason::Private),
        ),
        (
            "",
            200,
            &["Cache-Control: private=\"x, y\", max-age=9"],
            Err(UncacheableReason::Private),
        ),
        // A directive's name within another directive's argument has no effect.
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
        // Section 3.5: responses to requests with Authorization.
        (
            "A",
            200,
            &["Cache-Control: max-age=9"],
            Err(UncacheableReason::Authorization),
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
            Err(UncacheableReason::Status),
        ),
        (
            "",
            599,
            &["Cache-Control: must-understand, max-age=9"],
            Err(UncacheableReason::Status),
        ),
        // Responses with these statuses are cacheable only if they declare a lifetime.
        ("", 302, &["Cache-Control: max-age=9"], Ok(9)),
        ("", 503, &["Cache-Control: max-age=9"], Ok(9)),
        (
            "",
            302,
            &["Last-Modified: {-1000}"],
            Err(UncacheableReason::Status),
        ),
        ("", 500, &[], Err(UncacheableReason::Status)),
        (
            "",
            200,
            &["Vary: *", "Cache-Control: max-age=9"],
            Err(UncacheableReason::VaryStar),
        ),
        (
            "",
            200,
            &["Vary: accept, *", "Cache-Control: max-age=9"],
            Err(UncacheableReason::VaryStar),
        ),
        // The edge's rules for cookies are stricter than the standard.
        (
            "",
            200,
            &["Set-Cookie: a=b", "Cache-Control: max-age=9"],
            Err(UncacheableReason::SetCookie),
        ),
        ("C", 200, &["Last-Modified: {-1000}"], Ok(0)),
        ("C", 200, &["Cache-Control: max-age=9"], Ok(9)),
        // Without a validator, these responses are stale on arrival and cannot be revalidated, so
        // they are not stored. With an ETag, they are stored.
        ("", 200, &[], Err(UncacheableReason::NoLifetime)),
        (
            "",
            200,
            &["Cache-Control: max-age=0"],
            Err(UncacheableReason::NoLifetime),
        ),
        (
            "",
            200,
            &["Cache-Control: no-cache"],
            Err(UncacheableReason::NoLifetime),
        ),
        ("", 200, &["Cache-Control: no-cache", "ETag: \"a\""], Ok(0)),
        ("", 200, &["Cache-Control: max-age=0", "ETag: \"a\""], Ok(0)),
    ] {
        let found = judge_with(request, status, lines);
        let found = found.map(|lifetime| lifetime.fresh.as_secs());
        assert_eq!(found, expected, "{request} {status} {lines:?}");
    }
}
