//! Parses values with a unit, such as `6s` and `512MiB`.

use std::time::Duration;

const TIMES: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];

const SIZES: [(&str, u64); 8] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// The longest duration that a setting may have, in seconds (one day).
const SECONDS_MAX: f64 = 86_400.0;

/// Parses a duration, such as `250ms`, `6s`, `2.5s`, `1min` or `2h`.
///
/// # Errors
/// A message with the expected format.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a duration in ms, s, min or h, such as 6s".to_owned();
    let (number, unit) = split_unit(text);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (_, scale) = TIMES
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let seconds = number * scale;
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err("the longest duration is 24h".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses a number of bytes, such as `512MiB`, `2GB` or `100B`.
///
/// # Errors
/// A message with the expected format.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || "expected a whole number of B, KiB, MiB or GiB, such as 512MiB".to_owned();
    let (number, unit) = split_unit(text);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (_, scale) = SIZES
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    number.checked_mul(*scale).ok_or_else(wrong)
}

/// Parses a memory size. It is a number of bytes as in [`parse_bytes()`], a percentage of `limit_bytes`
/// such as `25%`, or a percentage with a maximum such as `25% up to 1GiB`.
///
/// # Errors
/// A message with the expected format.
pub fn parse_memory_bytes(text: &str, limit_bytes: u64) -> Result<u64, String> {
    let Some((percent, upper_limit)) = text.split_once('%') else {
        return parse_bytes(text);
    };
    let wrong = || "expected a size such as 512MiB, or 1% to 100% of the memory limit".to_owned();
    let percent: Option<u128> = percent.parse().ok().filter(|p| (1..=100).contains(p));
    let share = u128::from(limit_bytes) * percent.ok_or_else(wrong)? / 100;
    let share = u64::try_from(share).map_err(|_| wrong())?;
    match upper_limit {
        "" => Ok(share),
        upper_limit => {
            let upper_limit = upper_limit.strip_prefix(" up to ").ok_or_else(wrong)?;
            Ok(share.min(parse_bytes(upper_limit)?))
        }
    }
}

/// Parses a whole number.
///
/// # Errors
/// A message when the text is not a whole number.
pub fn parse_count(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "expected a whole number".to_owned())
}

/// Parses a switch. `yes`, `on` and `true` turn it on, and `no`, `off` and `false` turn it off.
///
/// # Errors
/// A message when the text is none of these words.
pub fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "on" | "true" => Ok(true),
        "no" | "off" | "false" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_a_known_unit() {
        for (text, ms) in [
            ("6s", 6000),
            ("250ms", 250),
            ("2.5s", 2500),
            ("1min", 60_000),
            ("0s", 0),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for wrong in [
            "6", "", "s", "6 s", "-1s", "6x", "1e3s", "25h", "..s", "NaNs", "infs",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_a_whole_number_with_a_unit() {
        for (text, n) in [("512MiB", 512 << 20), ("2GB", 2_000_000_000), ("0B", 0)] {
            assert_eq!(parse_bytes(text), Ok(n), "{text}");
        }
        for wrong in ["512", "1.5GiB", "MiB", "-1B", "99999999999TiB", "1mib"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_of_memory_may_be_a_share_of_the_limit() {
        let cases = [
            ("25%", 1000, 250),
            ("100%", u64::MAX, u64::MAX),
            ("50% up to 100B", 1000, 100),
            ("50% up to 1GiB", 1000, 500),
            ("2KiB", 1000, 2048),
        ];
        for (text, limit, n) in cases {
            assert_eq!(parse_memory_bytes(text, limit), Ok(n), "{text}");
        }
        for wrong in [
            "0%",
            "101%",
            "%",
            "25 %",
            "25%1GiB",
            "25% up to",
            "1.5%",
            "-1%",
            "25",
        ] {
            assert!(parse_memory_bytes(wrong, 1000).is_err(), "{wrong}");
        }
    }
}
