//! Checks the syntax of texts such as URIs and timestamps, and formats values for error messages.

use serde_json::Value;

/// Describes an unexpected value for error messages.
pub(super) fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "it is null".into(),
        Value::Bool(truth) => format!("it is {truth}"),
        Value::Number(number) => format!("it is {number}"),
        Value::String(text) if text.is_empty() => "empty string".into(),
        Value::String(text) => format!("it is {:?}", shorten_text(text)),
        Value::Array(_) => "it is an array".into(),
        Value::Object(_) => "it is an object".into(),
    }
}

/// Shortens a text for messages.
pub(super) fn shorten_text(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Formats at most eight names of a document.
pub(super) fn format_first_names(names: &[&str]) -> String {
    const NAMES_MAX: usize = 8;
    let shown = names.iter().take(NAMES_MAX);
    let mut shown: Vec<String> = shown
        .map(|name| format!("{:?}", shorten_text(name)))
        .collect();
    if names.len() > NAMES_MAX {
        shown.push("…".into());
    }
    format!("[{}]", shown.join(", "))
}

/// Formats all names of a list that the standard defines.
pub(super) fn join_names(names: &[&str]) -> String {
    names.join(", ")
}

/// Recognizes URIs (RFC 3986). Checks only for a scheme, a colon, and permitted characters.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let in_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let in_rest = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
    let escaped = rest.split('%').skip(1).all(|after| {
        let two = after.as_bytes().get(..2);
        two.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    });
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(in_scheme)
        && !rest.is_empty()
        && rest.chars().all(in_rest)
        && escaped
}

/// Recognizes timestamps (RFC 3339, section 5.6).
pub(super) fn is_date_time(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        let digits = text.get(range)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let dashes = [(4, '-'), (7, '-'), (13, ':'), (16, ':')];
    let marks = dashes
        .iter()
        .all(|(at, mark)| text.get(*at..).is_some_and(|t| t.starts_with(*mark)));
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let time = (number(11..13), number(14..16), number(17..19));
    let (Some(hour), Some(minute), Some(second)) = time else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let rest = text.get(19..).unwrap_or_default();
    let fraction = rest.strip_prefix('.').map_or(0, |rest| {
        1 + rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    let zone = rest.get(fraction..).unwrap_or_default();
    marks
        && text
            .get(10..11)
            .is_some_and(|t| t.eq_ignore_ascii_case("t"))
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60
        && fraction != 1
        && is_utc_offset(zone)
}

fn is_utc_offset(zone: &str) -> bool {
    let number = |at| {
        zone.get(at..at + 2)
            .and_then(|digits| digits.parse::<u8>().ok())
    };
    let signed = zone.starts_with(['+', '-']) && zone.len() == 6 && zone.get(3..4) == Some(":");
    zone.eq_ignore_ascii_case("z")
        || (signed && number(1).is_some_and(|n| n < 24) && number(4).is_some_and(|n| n < 60))
}

/// Recognizes media types of the form `type/subtype` (RFC 9110, section 8.3.1). Does not check
/// parameters.
pub(super) fn is_media_type(text: &str) -> bool {
    let token = |text: &str| {
        let of = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        !text.is_empty() && text.chars().all(of)
    };
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    essence
        .split_once('/')
        .is_some_and(|(kind, sub)| token(kind) && token(sub))
}

/// Recognizes `urn:mpeg:mpegi:nbmp:2YYY:name`.
pub(super) fn is_nbmp_brand(text: &str) -> bool {
    let rest = text.strip_prefix("urn:mpeg:mpegi:nbmp:");
    let parts = rest.and_then(|rest| rest.split_once(':'));
    parts.is_some_and(|(year, name)| {
        let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        year.len() == 4
            && year.starts_with('2')
            && year.bytes().all(|b| b.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(of_name)
    })
}

/// Recognizes a country code with an optional subdivision, such as `NL` or `US-CA` (ISO 3166).
pub(super) fn is_country_or_subdivision(text: &str) -> bool {
    let country = text.get(..2).unwrap_or_default();
    let rest = text.get(2..).unwrap_or("x");
    country.len() == 2
        && country.bytes().all(|b| b.is_ascii_uppercase())
        && (rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_syntax_is_recognized() {
        for good in ["http://a/b?c#d", "urn:x", "file:///var/%41", "s3://b/k"] {
            assert!(is_uri(good), "{good}");
        }
        for bad in [
            "",
            "a",
            "http:",
            "1a:b",
            "http://a b",
            "http://{a}",
            "x:%4",
            "x:%zz",
        ] {
            assert!(!is_uri(bad), "{bad}");
        }
        for good in ["2026-11-21T00:00:00Z", "2024-02-29t23:59:60.123+01:00"] {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "2026-11-21",
            "2026-11-21 00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T00:00:00",
            "2026-11-21T00:00:00.Z",
            "é026-11-21T00:00:00Z",
            "2026-11-21T00:00:00+1:00",
            "+026-11-21T00:00:00Z",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
        assert!(
            is_media_type("video/mp4; codecs=\"avc1\"")
                && !is_media_type("mp4")
                && !is_media_type("video/")
        );
        assert!(
            is_nbmp_brand("urn:mpeg:mpegi:nbmp:2023:load_test")
                && !is_nbmp_brand("urn:mpeg:mpegi:nbmp:1999:x")
        );
        assert!(
            is_country_or_subdivision("NL")
                && is_country_or_subdivision("US-CA")
                && !is_country_or_subdivision("nl")
                && !is_country_or_subdivision("NLD")
                && !is_country_or_subdivision("N")
        );
    }
}
