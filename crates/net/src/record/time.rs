//! UTC times in the notations of the record formats.

use std::fmt::{self, Display};
use std::time::SystemTime;

use serde::Serializer;

/// A UTC time in the Gregorian calendar. Times before 1970 become the start of 1970.
pub(super) struct UtcTime {
    date: (u64, u64, u64),
    second_of_day: u64,
    micros: u32,
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl UtcTime {
    pub(super) fn from_system(time: SystemTime) -> UtcTime {
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        UtcTime {
            date: civil_date(since.as_secs() / 86_400),
            second_of_day: since.as_secs() % 86_400,
            micros: since.subsec_micros(),
        }
    }

    /// Formats the date, for example as `2024-02-29`.
    pub(super) fn date(&self) -> impl Display {
        let (year, month, day) = self.date;
        fmt::from_fn(move |f| write!(f, "{year:04}-{month:02}-{day:02}"))
    }

    /// Formats the time of day, for example as `23:59:59`.
    pub(super) fn time_of_day(&self) -> impl Display {
        let second = self.second_of_day;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        fmt::from_fn(move |f| write!(f, "{hour:02}:{minute:02}:{second:02}"))
    }

    /// Formats the date and time for the Common Log Format, for example as
    /// `29/Feb/2024:23:59:59 +0000`.
    pub(super) fn common_log_time(&self) -> impl Display {
        let (year, month, day) = self.date;
        let name = MONTHS.get(month as usize - 1).copied().unwrap_or_default();
        let time = self.time_of_day();
        fmt::from_fn(move |f| write!(f, "{day:02}/{name}/{year:04}:{time} +0000"))
    }
}

/// Serializes a time, for example as `2024-02-29T23:59:59.000042Z`. Times before 1970 become the
/// start of 1970.
pub(super) fn serialize_rfc3339<S: Serializer>(
    time: &SystemTime,
    to: S,
) -> Result<S::Ok, S::Error> {
    let time = UtcTime::from_system(*time);
    to.collect_str(&format_args!(
        "{}T{}.{:06}Z",
        time.date(),
        time.time_of_day(),
        time.micros
    ))
}

/// Returns the year, month and day that is `days` days after 1970-01-01.
///
/// The calculation starts each year in March, so that a leap day is the last day of its year. The
/// Gregorian calendar repeats every 400 years (146,097 days).
fn civil_date(days: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 146_097;
    // From 0000-03-01 to 1970-01-01, there are 719,468 days.
    let days = days + 719_468;
    let (cycle, day) = (days / CYCLE, days % CYCLE);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, the lengths of the months repeat every five months, which have 153 days
    // together.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (cycle * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_one_another_for_a_thousand_years() {
        let divides = |by: u64, year: u64| year.is_multiple_of(by);
        let leap = |year| divides(4, year) && (!divides(100, year) || divides(400, year));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..365_243 {
            assert_eq!(civil_date(days), (year, month, day), "day {days}");
            let length = match month {
                2 if leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
