use proptest::prelude::*;

use super::*;

const EARLY: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const EXACT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATE: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// Returns the strong tag "v1" and a time of last change that is 0.9 s after `EXACT`.
fn sample_validators() -> Validators {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_900);
    Validators::from_etag("\"v1\"").with_modification_time(time)
}

fn headers_from(rows: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in rows {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn every_condition_and_their_precedence() {
    use ConditionOutcome::{Failed, NotModified, Proceed};
    let cases: &[(&[(&str, &str)], ConditionOutcome)] = &[
        (&[], Proceed),
        (&[("if-none-match", "\"v1\"")], NotModified),
        (&[("if-none-match", "W/\"v1\"")], NotModified),
        (&[("if-none-match", "*")], NotModified),
        (&[("if-none-match", "\"a,b\" , \"v1\"")], NotModified),
        (
            &[("if-none-match", "\"x\""), ("if-none-match", "\"v1\"")],
            NotModified,
        ),
        (&[("if-none-match", "\"v2\"")], Proceed),
        (&[("if-none-match", "v1")], Proceed),
        (&[("if-none-match", "\"v1")], Proceed),
        // If-None-Match takes precedence over If-Modified-Since.
        (
            &[("if-none-match", "\"v2\""), ("if-modified-since", LATE)],
            Proceed,
        ),
        (&[("if-modified-since", EARLY)], Proceed),
        (&[("if-modified-since", EXACT)], NotModified),
        (&[("if-modified-since", LATE)], NotModified),
        (&[("if-modified-since", "yesterday")], Proceed),
        (&[("if-match", "\"v1\"")], Proceed),
        (&[("if-match", "*")], Proceed),
        (&[("if-match", "W/\"v1\"")], Failed),
        (&[("if-match", "\"v2\"")], Failed),
        (
            &[("if-match", "\"v1\""), ("if-unmodified-since", EARLY)],
            Proceed,
        ),
        (
            &[("if-match", "\"v1\""), ("if-none-match", "\"v1\"")],
            NotModified,
        ),
        (&[("if-unmodified-since", EARLY)], Failed),
        (&[("if-unmodified-since", EXACT)], Proceed),
    ];
    for (rows, expected) in cases {
        assert_eq!(
            evaluate_conditions(&Method::GET, &headers_from(rows), &sample_validators()),
            *expected,
            "{rows:?}"
        );
    }
    let put = evaluate_conditions(
        &Method::PUT,
        &headers_from(&[("if-none-match", "*")]),
        &sample_validators(),
    );
    assert_eq!(put, Failed);
}

/// `Date` is a validator only for If-Modified-Since (RFC 9111 section 4.3.2).
#[test]
fn a_date_replaces_last_modified_for_if_modified_since() {
    use ConditionOutcome::{NotModified, Proceed};
    let cached = Validators::from_headers(&headers_from(&[("date", EXACT)]));
    let newer = headers_from(&[("date", LATE), ("last-modified", EARLY)]);
    for (ours, theirs, expected) in [
        (&cached, EARLY, Proceed),
        (&cached, EXACT, NotModified),
        (&cached, LATE, NotModified),
        (&cached, "fri, 06 nov 1994 08:49:37 gmt", NotModified),
        (&Validators::from_headers(&newer), EARLY, NotModified),
    ] {
        let headers = headers_from(&[("if-modified-since", theirs)]);
        let outcome = evaluate_conditions(&Method::GET, &headers, ours);
        assert_eq!(outcome, expected, "{theirs}");
    }
    let other = headers_from(&[("if-unmodified-since", EARLY)]);
    assert_eq!(evaluate_conditions(&Method::GET, &other, &cached), Proceed);
    assert!(!matches_if_range(
        &headers_from(&[("if-range", EXACT)]),
        &cached
    ));
}

#[test]
fn if_range_needs_a_strong_tag_or_the_exact_date() {
    let cases = [
        ("\"v1\"", true),
        ("W/\"v1\"", false),
        ("\"v2\"", false),
        ("\"v1\", \"v2\"", false),
        (EXACT, true),
        (EARLY, false),
        (LATE, false),
        ("", false),
        ("v1", false),
    ];
    for (value, expected) in cases {
        assert_eq!(
            matches_if_range(&headers_from(&[("if-range", value)]), &sample_validators()),
            expected,
            "{value}"
        );
    }
    assert!(matches_if_range(&HeaderMap::new(), &sample_validators()));
    assert!(!matches_if_range(
        &headers_from(&[("if-range", "rubbish")]),
        &Validators::default()
    ));
}

#[test]
fn validators_print_as_headers() {
    let mut headers = HeaderMap::new();
    sample_validators().insert_validator_headers(&mut headers);
    assert_eq!(headers["etag"], "\"v1\"");
    assert_eq!(headers["last-modified"], EXACT);
}

#[test]
fn times_without_an_http_date_have_none() {
    let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    let beyond = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    assert_eq!(format_date(before), None);
    assert_eq!(format_date(beyond), None);
}

proptest! {
    #[test]
    fn any_text_is_evaluated_without_a_panic(text in "[\\x20-\\x7e]{0,60}") {
        for name in ["if-match", "if-none-match", "if-range", "if-modified-since"] {
            let headers = headers_from(&[(name, &text)]);
            evaluate_conditions(&Method::GET, &headers, &sample_validators());
            matches_if_range(&headers, &sample_validators());
        }
        prop_assert!(parse_tags(&text).count() <= text.len());
    }
}
