//! Parses decimal numbers and durations to nanoseconds, without floating-point numbers. Decimals
//! after the ninth are ignored.

/// The timescale of all parsed times.
pub(super) const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// Maximum duration in nanoseconds, about 31 years.
const NANOS_MAX: i64 = 1_000_000_000 * NANOS_PER_SECOND as i64;

/// Parses non-negative decimal seconds such as `9.009` to nanoseconds.
pub(super) fn parse_seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if (whole.is_empty() && fraction.is_empty())
        || !is_all_digits(whole)
        || !is_all_digits(fraction)
    {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos: i64 = 0;
    for n in 0..9 {
        let digit = fraction.as_bytes().get(n).map_or(0, |digit| digit - b'0');
        nanos = nanos * 10 + i64::from(digit);
    }
    let total = whole
        .checked_mul(NANOS_PER_SECOND.into())?
        .checked_add(nanos)?;
    (total <= NANOS_MAX).then_some(total)
}

fn is_all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses an XML Schema duration such as `PT1H2M3.5S` to nanoseconds. A year counts as 365 days and
/// a month as 30 days. These are approximations, but films are shorter than a month.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    let text = text.trim();
    let rest = text.strip_prefix('P')?;
    let (days, time) = rest.split_once('T').unwrap_or((rest, ""));
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let days = parse_duration_fields(
        days,
        &[('Y', 365 * 86_400), ('M', 30 * 86_400), ('D', 86_400)],
    )?;
    let total = days.checked_add(parse_duration_fields(
        time,
        &[('H', 3600), ('M', 60), ('S', 1)],
    )?)?;
    (total <= NANOS_MAX).then_some(total)
}

/// Returns the sum of all fields in nanoseconds. Each field consists of a number and a unit, such
/// as `30M`. Each unit may occur at most once, in the order of `units`.
fn parse_duration_fields(mut text: &str, units: &[(char, i64)]) -> Option<i64> {
    let mut total = 0_i64;
    for (unit, factor) in units {
        if let Some((number, rest)) = text.split_once(*unit) {
            total = total.checked_add(parse_seconds(number)?.checked_mul(*factor)?)?;
            text = rest;
        }
    }
    text.is_empty().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_parsed_exactly() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("9.009", Some(9_009_000_000)),
            (".5", Some(500_000_000)),
            ("6.", Some(6_000_000_000)),
            ("0.0416666666666", Some(41_666_666)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1e9", None),
            ("nan", None),
            ("9999999999999999999", None),
        ] {
            assert_eq!(parse_seconds(text), nanos, "{text}");
        }
    }

    #[test]
    fn xml_schema_durations_are_parsed() {
        for (text, nanos) in [
            ("PT0S", Some(0)),
            ("PT1H2M3.5S", Some(3_723_500_000_000)),
            ("PT734.167S", Some(734_167_000_000)),
            ("P1DT1S", Some(86_401_000_000_000)),
            ("PT1.5M", Some(90_000_000_000)),
            ("P0Y0M0DT0H3M30.000S", Some(210_000_000_000)),
            ("P", None),
            ("PT", None),
            ("-PT1S", None),
            ("PT1S2M", None),
            ("P99999999999Y", None),
        ] {
            assert_eq!(parse_duration(text), nanos, "{text}");
        }
    }
}
