//! Converts the times in recordings to seconds since 1970 in UTC.

/// Names of the months in the Common Log Format.
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Parses a time such as `2026-11-21T10:00:00.123+01:00` (RFC 3339 section 5.6). HAR requires this
/// format.
pub(super) fn parse_rfc3339(text: &str) -> Option<f64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (time, offset) = rest.split_at_checked(zone)?;
    Some(
        unix_seconds_from_date(parse_date(date)?, parse_time_of_day(time)?)
            - parse_utc_offset(offset)?,
    )
}

/// Parses the fields `date` and `time` of a W3C log, such as `2026-11-21` and `10:00:00` or
/// `10:00:00.123`.
pub(super) fn parse_w3c_time(date: &str, time: &str) -> Option<f64> {
    Some(unix_seconds_from_date(
        parse_date(date)?,
        parse_time_of_day(time)?,
    ))
}

/// Parses a time such as `29/Feb/2024:23:59:59 +0000`, in the Common Log Format.
pub(super) fn parse_common_log_time(text: &str) -> Option<f64> {
    let (date, rest) = text.split_once(':')?;
    let (time, offset) = rest.split_once(' ')?;
    let mut parts = date.split('/');
    let day = parse_digits(parts.next()?)?;
    let month = MONTHS
        .iter()
        .position(|name| Some(*name) == date.get(3..6))? as u32
        + 1;
    let year = parse_digits(parts.nth(1)?)?;
    let seconds = unix_seconds_from_date((year, month, day), parse_time_of_day(time)?);
    Some(seconds - parse_utc_offset(offset)?)
}

fn parse_digits(text: &str) -> Option<u32> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn parse_date(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('-');
    let mut next = || parse_digits(parts.next()?);
    let (year, month, day) = (next()?, next()?, next()?);
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day) && parts.next().is_none();
    valid.then_some((year, month, day))
}

fn parse_time_of_day(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let (hour, minute) = (parse_digits(parts.next()?)?, parse_digits(parts.next()?)?);
    let second = parts.next()?;
    let plain = second
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let second: f64 = second.parse().ok().filter(|_| plain)?;
    let valid = hour < 24 && minute < 60 && second < 61.0 && parts.next().is_none();
    valid.then(|| f64::from(hour * 3600 + minute * 60) + second)
}

/// Parses an offset from UTC, such as `Z`, `+01:00` or `-0500`. Returns the offset in seconds,
/// which is positive east of Greenwich.
fn parse_utc_offset(text: &str) -> Option<f64> {
    if matches!(text, "Z" | "z") {
        return Some(0.0);
    }
    let digits = text.get(1..)?.replace(':', "");
    let sign = match text.get(..1)? {
        "+" => 1.0,
        "-" => -1.0,
        _ => return None,
    };
    let (hours, minutes) = (
        parse_digits(digits.get(..2)?)?,
        parse_digits(digits.get(2..)?)?,
    );
    Some(sign * f64::from(hours * 3600 + minutes * 60))
}

/// Converts a Gregorian date and a time of day to seconds since 1970.
fn unix_seconds_from_date((year, month, day): (u32, u32, u32), second_of_day: f64) -> f64 {
    // This calculation starts each year in March, so that a leap day is the last day of a year.
    let year = i64::from(year) - i64::from(month <= 2);
    let month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // There are 719,468 days between 0000-03-01 and 1970-01-01.
    (days + day_of_year - 719_468) as f64 * 86_400.0 + second_of_day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_formats_are_the_same_instant() {
        let leap_day = Some(1_709_251_199.0);
        assert_eq!(parse_w3c_time("2024-02-29", "23:59:59"), leap_day);
        assert_eq!(
            parse_common_log_time("29/Feb/2024:23:59:59 +0000"),
            leap_day
        );
        assert_eq!(
            parse_common_log_time("01/Mar/2024:00:59:59 +0100"),
            leap_day
        );
        assert_eq!(parse_rfc3339("2024-02-29T18:59:59.000-05:00"), leap_day);
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.250Z"), Some(0.25));
        assert_eq!(parse_rfc3339("2000-03-01T00:00:00Z"), Some(951_868_800.0));
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2024-02-29",
            "2024-13-01T00:00:00Z",
            "2024-01-01T25:00:00Z",
            "T",
            "aTbZ",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
        for text in [
            "",
            "é/é/é:é é",
            "29/Xxx/2024:00:00:00 +0000",
            "1/Jan/2024:00:00:00 +0",
        ] {
            assert_eq!(parse_common_log_time(text), None, "{text}");
        }
    }
}
