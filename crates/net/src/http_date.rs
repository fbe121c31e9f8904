//! Parses HTTP dates (RFC 9110 section 5.6.7) as leniently as other caches do.

use std::time::SystemTime;

const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
/// Limit on the bytes of a date. All valid dates are shorter.
const DATE_BYTES_MAX: usize = 40;

/// Parses a date in any of the three HTTP formats. Letter case is ignored. A wrong weekday is
/// accepted, because the date is unambiguous without the weekday.
pub fn parse_http_date(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    let exact = httpdate::parse_http_date(text).ok();
    exact.or_else(|| parse_with_any_weekday(text))
}

fn parse_with_any_weekday(text: &str) -> Option<SystemTime> {
    if text.len() > DATE_BYTES_MAX || !text.is_ascii() {
        return None;
    }
    let text = capitalize_words(text);
    let (given, rest) = text.split_at(text.find([',', ' '])?);
    let is_short = given.len() == 3;
    let names = WEEKDAYS.map(|name| name.get(..3).filter(|_| is_short).unwrap_or(name));
    if !names.contains(&given) {
        return None;
    }
    let parse = |name| httpdate::parse_http_date(&format!("{name}{rest}")).ok();
    names.into_iter().find_map(parse)
}

/// Capitalizes each word, as in `Sun` and `Nov`. The time zone becomes `GMT`.
fn capitalize_words(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphabetic());
    let capitalized = words.map(|word| {
        let mut word = word.to_ascii_lowercase();
        if word == "gmt" {
            return "GMT".to_owned();
        }
        if let Some(first) = word.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        word
    });
    capitalized.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn case_and_weekday_do_not_matter() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            " sun, 06 nov 1994 08:49:37 gmt ",
            "SUN, 06 NOV 1994 08:49:37 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "friday, 06-NOV-94 08:49:37 gmt",
            "Sun Nov  6 08:49:37 1994",
            "tue nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse_http_date(text), Some(time), "{text}");
        }
        for invalid in [
            "",
            "0",
            "Sun",
            "Foo, 06 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            "S\u{fc}n, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(invalid), None, "{invalid}");
        }
    }
}
