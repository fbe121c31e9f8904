//! The exchanges: what the origin answers, and what two clients ask, one after the other.

use std::time::{Duration, SystemTime};

/// Two requests for one target.
pub struct Case {
    pub name: &'static str,
    pub status: u16,
    /// Header lines; `+N` and `-N` seconds in braces are dates from now.
    pub answer: &'static [&'static str],
    pub first: &'static [&'static str],
    /// Of the second request.
    pub method: &'static str,
    pub second: &'static [&'static str],
}

const fn case(
    name: &'static str,
    status: u16,
    answer: &'static [&'static str],
    first: &'static [&'static str],
    second: &'static [&'static str],
) -> Case {
    Case {
        name,
        status,
        answer,
        first,
        method: "GET",
        second,
    }
}

const fn head(name: &'static str, answer: &'static [&'static str]) -> Case {
    Case {
        method: "HEAD",
        ..case(name, 200, answer, &[], &[])
    }
}

const KEEP: &[&str] = &["Cache-Control: max-age=60"];
const TAGGED: &[&str] = &["Cache-Control: max-age=60", "ETag: \"1\""];

pub const CASES: &[Case] = &[
    case("max-age", 200, KEEP, &[], &[]),
    case(
        "s-maxage before max-age",
        200,
        &["Cache-Control: max-age=0, s-maxage=60"],
        &[],
        &[],
    ),
    case(
        "s-maxage=0",
        200,
        &["Cache-Control: max-age=60, s-maxage=0"],
        &[],
        &[],
    ),
    case("Expires", 200, &["Expires: {+60}"], &[], &[]),
    case("Expires in the past", 200, &["Expires: {-60}"], &[], &[]),
    case("Expires that is no date", 200, &["Expires: 0"], &[], &[]),
    case("nothing said", 200, &[], &[], &[]),
    case(
        "Last-Modified alone",
        200,
        &["Last-Modified: {-864000}"],
        &[],
        &[],
    ),
    case(
        "no-store",
        200,
        &["Cache-Control: no-store, max-age=60"],
        &[],
        &[],
    ),
    case(
        "private",
        200,
        &["Cache-Control: private, max-age=60"],
        &[],
        &[],
    ),
    case(
        "no-cache with a tag",
        200,
        &["Cache-Control: no-cache", "ETag: \"1\""],
        &[],
        &[],
    ),
    case(
        "Pragma of an answer",
        200,
        &["Pragma: no-cache", "Cache-Control: max-age=60"],
        &[],
        &[],
    ),
    case(
        "Set-Cookie",
        200,
        &["Cache-Control: max-age=60", "Set-Cookie: a=b"],
        &[],
        &[],
    ),
    case(
        "quoted max-age",
        200,
        &["Cache-Control: max-age=\"60\""],
        &[],
        &[],
    ),
    case(
        "max-age that is no number",
        200,
        &["Cache-Control: max-age=abc"],
        &[],
        &[],
    ),
    case(
        "capital letters",
        200,
        &["Cache-Control: MAX-AGE=60"],
        &[],
        &[],
    ),
    case(
        "CDN-Cache-Control",
        200,
        &["Cache-Control: no-store", "CDN-Cache-Control: max-age=60"],
        &[],
        &[],
    ),
    case(
        "too old already",
        200,
        &["Cache-Control: max-age=60", "Age: 70"],
        &[],
        &[],
    ),
    case(
        "stale with a tag",
        200,
        &["Cache-Control: max-age=5", "Age: 9", "ETag: \"1\""],
        &[],
        &[],
    ),
    case(
        "stale-while-revalidate",
        200,
        &[
            "Cache-Control: max-age=5, stale-while-revalidate=60",
            "Age: 9",
        ],
        &[],
        &[],
    ),
    case(
        "must-revalidate, fresh",
        200,
        &["Cache-Control: max-age=60, must-revalidate"],
        &[],
        &[],
    ),
    case("404 with max-age", 404, KEEP, &[], &[]),
    case("404", 404, &[], &[], &[]),
    case("302", 302, &["Location: /x"], &[], &[]),
    case(
        "302 with max-age",
        302,
        &["Location: /x", "Cache-Control: max-age=60"],
        &[],
        &[],
    ),
    case("301", 301, &["Location: /x"], &[], &[]),
    case("500 with max-age", 500, KEEP, &[], &[]),
    case(
        "Vary, the same",
        200,
        &["Cache-Control: max-age=60", "Vary: Accept-Language"],
        &["Accept-Language: de"],
        &["Accept-Language: de"],
    ),
    case(
        "Vary, another",
        200,
        &["Cache-Control: max-age=60", "Vary: Accept-Language"],
        &["Accept-Language: de"],
        &["Accept-Language: fr"],
    ),
    case(
        "Vary, written otherwise",
        200,
        &["Cache-Control: max-age=60", "Vary: Accept-Language"],
        &["Accept-Language: de, fr"],
        &["Accept-Language: DE,FR"],
    ),
    case(
        "Vary: *",
        200,
        &["Cache-Control: max-age=60", "Vary: *"],
        &[],
        &[],
    ),
    case(
        "Authorization",
        200,
        KEEP,
        &["Authorization: Basic eA=="],
        &["Authorization: Basic eQ=="],
    ),
    case(
        "Authorization, public",
        200,
        &["Cache-Control: public, max-age=60"],
        &["Authorization: Basic eA=="],
        &["Authorization: Basic eQ=="],
    ),
    case("Cookie", 200, KEEP, &["Cookie: a=b"], &["Cookie: a=c"]),
    case(
        "request no-cache",
        200,
        TAGGED,
        &[],
        &["Cache-Control: no-cache"],
    ),
    case("request Pragma", 200, TAGGED, &[], &["Pragma: no-cache"]),
    case(
        "request max-age=0",
        200,
        TAGGED,
        &[],
        &["Cache-Control: max-age=0"],
    ),
    case(
        "request no-store",
        200,
        KEEP,
        &[],
        &["Cache-Control: no-store"],
    ),
    case(
        "only-if-cached",
        200,
        KEEP,
        &["Cache-Control: only-if-cached"],
        &[],
    ),
    case(
        "a part of what is kept",
        200,
        TAGGED,
        &[],
        &["Range: bytes=0-3"],
    ),
    case("a part first", 200, TAGGED, &["Range: bytes=0-3"], &[]),
    case(
        "If-Range of another state",
        200,
        TAGGED,
        &[],
        &["Range: bytes=0-3", "If-Range: \"2\""],
    ),
    case("If-None-Match", 200, TAGGED, &[], &["If-None-Match: \"1\""]),
    case(
        "a part behind the end",
        200,
        TAGGED,
        &[],
        &["Range: bytes=99-"],
    ),
    head("HEAD of what is kept", KEEP),
];

/// A header line with its date.
pub fn dated(line: &str) -> String {
    let Some((before, rest)) = line.split_once('{') else {
        return line.to_owned();
    };
    let seconds: i64 = rest.trim_end_matches('}').parse().unwrap();
    let away = Duration::from_secs(seconds.unsigned_abs());
    let now = SystemTime::now();
    let then = if seconds < 0 { now - away } else { now + away };
    format!("{before}{}", httpdate::fmt_http_date(then))
}
