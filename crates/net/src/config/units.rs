//! Values with their unit: `6s`, `512MiB`.

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

/// Longest duration that a setting may have: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// `250ms`, `6s`, `2.5s`, `1min`, `2h`.
///
/// # Errors
/// A sentence that says what a duration looks like.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration is a number and ms, s, min or h, such as 6s".to_owned();
    let (number, unit) = split(text);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (_, scale) = TIMES
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let seconds = number * scale;
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err("a duration is at most 24h".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// `512MiB`, `2GB`, `100B`.
///
/// # Errors
/// A sentence that says what a size looks like.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "a size is a whole number and B, KiB, MiB, GiB, such as 512MiB".to_owned();
    let (number, unit) = split(text);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (_, scale) = SIZES
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    number.checked_mul(*scale).ok_or_else(wrong)
}

/// A whole number.
///
/// # Errors
/// When it is none.
pub fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it is a whole number".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in [
            ("6s", 6000),
            ("250ms", 250),
            ("2.5s", 2500),
            ("1min", 60_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in [
            "6", "", "s", "6 s", "-1s", "6x", "1e3s", "25h", "..s", "NaNs", "infs",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        for (text, n) in [("512MiB", 512 << 20), ("2GB", 2_000_000_000), ("0B", 0)] {
            assert_eq!(bytes(text), Ok(n), "{text}");
        }
        for wrong in ["512", "1.5GiB", "MiB", "-1B", "99999999999TiB", "1mib"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
