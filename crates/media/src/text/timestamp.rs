//! Timestamps in the form `HH:MM:SS.mmm` (WebVTT, 4.1). SubRip uses a comma instead of the point.

use std::fmt::{Display, Formatter, Result};

/// Maximum number of hours in a timestamp. Films are far shorter.
const HOURS_MAX: i64 = 10_000;

/// Parses `[HH:]MM:SS[.mmm]`, with a point or a comma, and returns milliseconds.
pub(super) fn parse_timestamp(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let mut units = clock.rsplitn(3, ':').map(parse_digits);
    let (seconds, minutes) = (units.next()??, units.next()??);
    let hours = units.next().unwrap_or(Some(0))?;
    if seconds > 59 || minutes > 59 || hours > HOURS_MAX {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + parse_thousandths(fraction)?)
}

fn parse_digits(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty() && digits.len() <= 6;
    (plain && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
}

/// Parses the digits after the decimal point and returns milliseconds. Digits after the third are
/// ignored.
fn parse_thousandths(fraction: &str) -> Option<i64> {
    let value = parse_digits(fraction.get(..3).unwrap_or(fraction))?;
    Some(match fraction.len() {
        1 => value * 100,
        2 => value * 10,
        _ => value,
    })
}

/// Displays milliseconds as `HH:MM:SS.mmm`. A negative time is displayed as zero.
pub(super) struct CueTimestampDisplay(pub(super) i64);

impl Display for CueTimestampDisplay {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let ms = self.0.max(0);
        let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
        write!(
            f,
            "{hours:02}:{minutes:02}:{:02}.{:03}",
            ms / 1000 % 60,
            ms % 1000
        )
    }
}
