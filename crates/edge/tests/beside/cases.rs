//! The test cases. Each case is a response of the origin, and two successive requests for that
//! response.

use std::time::{Duration, SystemTime};

/// Two requests for the same target, and the origin's response.
pub struct ExchangeCase {
    pub name: &'static str,
    pub status: u16,
    /// Header lines of the response. `{+N}` and `{-N}` stand for the date N seconds after or before
    /// now.
    pub response: &'static [&'static str],
    pub first: &'static [&'static str],
    /// Method of the second request.
    pub method: &'static str,
    pub second: &'static [&'static str],
}

const fn get_case(
    name: &'static str,
    status: u16,
    response: &'static [&'static str],
    first: &'static [&'static str],
    second: &'static [&'static str],
) -> ExchangeCase {
    ExchangeCase {
        name,
        status,
        response,
        first,
        method: "GET",
        second,
    }
}

const fn head_case(name: &'static str, response: &'static [&'static str]) -> ExchangeCase {
    ExchangeCase {
        method: "HEAD",
        ..get_case(name, 200, response, &[], &[])
    }
}

const KEEP: &[&str] = &["Cache-Control: max-age=60"];
const TAGGED: &[&str] = &["Cache-Control: max-age=60", "ETag: \"1\""];

pub const CASES: &[ExchangeCase] = &[
    get_case("max-age", 200, KEEP, &[], &[]),
    get_case(
        "s-maxage before max-age",
        200,
        &["Cache-Control: max-age=0, s-maxage=60"],
        &[],
        &[],
    ),
    get_case(
        "s-maxage=0",
        200,
        &["Cache-Control: max-age=60, s-maxage=0"],
        &[],
        &[],
    ),
    get_case("Expires", 200, &["Expires: {+60}"], &[], &[]),
    get_case("Expires in the past", 200, &["Expires: {-60}"], &[], &[]),
    get_case("invalid Expires", 200, &["Expires: 0"], &[], &[]),
    get_case("no cache headers", 200, &[], &[], &[]),
    get_case(
        "only Last-Modified",
        200,
        &["Last-Modified: {-864000}"],
        &[],
        &[],
    ),
    get_case(
        "no-store",
        200,
        &["Cache-Control: no-store, max-age=60"],
        &[],
        &[],
    ),
    get_case(
        "private",
        200,
        &["Cache-Control: private, max-age=60"],
        &[],
        &[],
    ),
    get_case(
        "no-cache with ETag",
        200,
        &["Cache-Control: no-cache", "ETag: \"1\""],
        &[],
        &[],
    ),
    get_case(
        "Pragma of a response",
        200,
        &["Pragma: no-cache", "Cache-Control: max-age=60"],
        &[],
        &[],
    ),
    get_case(
        "Set-Cookie",
        200,
        &["Cache-Control: max-age=60", "Set-Cookie: a=b"],
        &[],
        &[],
    ),
    get_case(
        "quoted max-age",
        200,
        &["Cache-Control: max-age=\"60\""],
        &[],
        &[],
    ),
    get_case(
        "max-age that is no number",
        200,
        &["Cache-Control: max-age=abc"],
        &[],
        &[],
    ),
    get_case(
        "capital letters",
        200,
        &["Cache-Control: MAX-AGE=60"],
        &[],
        &[],
    ),
    get_case(
        "CDN-Cache-Control",
        200,
        &["Cache-Control: no-store", "CDN-Cache-Control: max-age=60"],
        &[],
        &[],
    ),
    get_case(
        "stale on arrival",
        200,
        &["Cache-Control: max-age=60", "Age: 70"],
        &[],
        &[],
    ),
    get_case(
        "stale on arrival with ETag",
        200,
        &["Cache-Control: max-age=5", "Age: 9", "ETag: \"1\""],
        &[],
        &[],
    ),
    get_case(
        "stale-while-revalidate",
        200,
        &[
            "Cache-Control: max-age=5, stale-while-revalidate=60",
            "Age: 9",
        ],
        &[],
        &[],
    ),
    get_case(
        "must-revalidate, fresh",
        200,
        &["Cache-Control: max-age=60, must-revalidate"],
        &[],
        &[],
    ),
    get_case("404 with max-age", 404, KEEP, &[], &[]),
    get_case("404", 404, &[], &[], &[]),
    get_case("302", 302, &["Location: /x"], &[], &[]),
    get_case(
        "302 with max-age",
        302,
        &["Location: /x", "Cache-Control: max-age=60"],
        &[],
        &[],
    ),
    get_case("301", 301, &["Location: /x"], &[], &[]),
    get_case("500 with max-age", 500, KEEP, &[], &[]),
    get_case(
        "Vary, the same",
        200,
        &["Cache-Control: max-age=60", "Vary: Accept-Language"],
        &["Accept-Language: de"],
        &["Accept-Language: de"],
    ),
    get_case(
        "Vary, another",
        200,
        &["Cache-Control: max-age=60", "Vary: Accept-Language"],
        &["Accept-Language: de"],
        &["Accept-Language: fr"],
    ),
    get_case(
        "Vary, equivalent spelling",
        200,
        &["Cache-Control: max-age=60", "Vary: Accept-Language"],
        &["Accept-Language: de, fr"],
        &["Accept-Language: DE,FR"],
    ),
    get_case(
        "Vary: *",
        200,
        &["Cache-Control: max-age=60", "Vary: *"],
        &[],
        &[],
    ),
    get_case(
        "Authorization",
        200,
        KEEP,
        &["Authorization: Basic eA=="],
        &["Authorization: Basic eQ=="],
    ),
    get_case(
        "Authorization, public",
        200,
        &["Cache-Control: public, max-age=60"],
        &["Authorization: Basic eA=="],
        &["Authorization: Basic eQ=="],
    ),
    get_case("Cookie", 200, KEEP, &["Cookie: a=b"], &["Cookie: a=c"]),
    get_case(
        "request no-cache",
        200,
        TAGGED,
        &[],
        &["Cache-Control: no-cache"],
    ),
    get_case("request Pragma", 200, TAGGED, &[], &["Pragma: no-cache"]),
    get_case(
        "request max-age=0",
        200,
        TAGGED,
        &[],
        &["Cache-Control: max-age=0"],
    ),
    get_case(
        "request no-store",
        200,
        KEEP,
        &[],
        &["Cache-Control: no-store"],
    ),
    get_case(
        "only-if-cached",
        200,
        KEEP,
        &["Cache-Control: only-if-cached"],
        &[],
    ),
    get_case(
        "range of a cached response",
        200,
        TAGGED,
        &[],
        &["Range: bytes=0-3"],
    ),
    get_case(
        "range before the full response",
        200,
        TAGGED,
        &["Range: bytes=0-3"],
        &[],
    ),
    get_case(
        "If-Range with another ETag",
        200,
        TAGGED,
        &[],
        &["Range: bytes=0-3", "If-Range: \"2\""],
    ),
    get_case("If-None-Match", 200, TAGGED, &[], &["If-None-Match: \"1\""]),
    get_case(
        "range beyond the end",
        200,
        TAGGED,
        &[],
        &["Range: bytes=99-"],
    ),
    head_case("HEAD of a cached response", KEEP),
];

/// Replaces `{+N}` or `{-N}` in a header line by the date.
pub fn resolve_date(line: &str) -> String {
    let Some((before, rest)) = line.split_once('{') else {
        return line.to_owned();
    };
    let seconds: i64 = rest.trim_end_matches('}').parse().unwrap();
    let away = Duration::from_secs(seconds.unsigned_abs());
    let now = SystemTime::now();
    let then = if seconds < 0 { now - away } else { now + away };
    format!("{before}{}", httpdate::fmt_http_date(then))
}
