//! Exact times. Conversions between timescales that need rounding belong in this file.

use std::cmp::Ordering;

/// A time or duration as a fraction of seconds: `ticks / timescale`. Never rounded.
///
/// `timescale` is never zero, because [`Time::new`] replaces zero with one.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    /// Number of ticks; negative before the start of the film.
    pub ticks: i64,
    /// Ticks per second.
    pub timescale: u32,
}

impl Time {
    /// Zero seconds.
    pub const ZERO: Time = Time {
        ticks: 0,
        timescale: 1,
    };

    /// Creates a time of `ticks / timescale` seconds. A timescale of zero becomes one.
    pub fn new(ticks: i64, timescale: u32) -> Time {
        Time {
            ticks,
            timescale: timescale.max(1),
        }
    }

    /// Creates a time from milliseconds.
    pub fn from_ms(ms: i64) -> Time {
        Time::new(ms, 1000)
    }

    /// Returns the nearest tick of `timescale`. Halves are rounded away from zero.
    pub fn round_to(self, timescale: u32) -> i64 {
        // 64 bits are nearly always enough, and a 64-bit division is many times faster than a
        // 128-bit division.
        let half = i64::from(self.timescale / 2);
        let away = if self.ticks < 0 { -half } else { half };
        let scaled = self.ticks.checked_mul(timescale.into());
        if let Some(rounded) = scaled.and_then(|scaled| scaled.checked_add(away)) {
            return rounded / i64::from(self.timescale);
        }
        let scaled = self.ticks as i128 * timescale as i128;
        let half = self.timescale as i128 / 2;
        let away = if scaled < 0 { -half } else { half };
        clamp_to_i64((scaled + away) / self.timescale as i128)
    }

    /// Returns the last tick of `timescale` that is not after this time.
    pub fn floor_to(self, timescale: u32) -> i64 {
        let scaled = self.ticks as i128 * timescale as i128;
        clamp_to_i64(scaled.div_euclid(self.timescale as i128))
    }

    /// Returns the first tick of `timescale` that is not before this time.
    pub fn ceil_to(self, timescale: u32) -> i64 {
        let scaled = self.ticks as i128 * timescale as i128;
        clamp_to_i64(-(-scaled).div_euclid(self.timescale as i128))
    }

    /// Returns seconds as a float. Use it only for messages and limits, so that timeline arithmetic
    /// stays exact.
    pub fn as_seconds_f64(self) -> f64 {
        self.ticks as f64 / self.timescale as f64
    }

    /// Returns the time, rounded to the nearest nanosecond.
    pub fn as_nanos(self) -> i64 {
        self.round_to(1_000_000_000)
    }
}

fn clamp_to_i64(value: i128) -> i64 {
    value.clamp(i64::MIN as i128, i64::MAX as i128) as i64
}

impl PartialEq for Time {
    fn eq(&self, other: &Time) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Time) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Time) -> Ordering {
        let left = self.ticks as i128 * other.timescale as i128;
        left.cmp(&(other.ticks as i128 * self.timescale as i128))
    }
}

/// Returns the greatest common divisor; `gcd(0, n)` is `n`.
pub fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_exact_and_symmetric_around_zero() {
        let third = Time::new(1, 3);
        assert_eq!(
            (third.floor_to(10), third.round_to(10), third.ceil_to(10)),
            (3, 3, 4)
        );
        let minus = Time::new(-1, 3);
        assert_eq!(
            (minus.floor_to(10), minus.round_to(10), minus.ceil_to(10)),
            (-4, -3, -3)
        );
        assert_eq!(Time::new(1, 2).round_to(1), 1);
        assert_eq!(Time::new(-1, 2).round_to(1), -1);
    }

    #[test]
    fn order_is_by_value_not_by_timescale() {
        assert_eq!(Time::new(90_000, 90_000), Time::new(48_000, 48_000));
        assert!(Time::new(3003, 90_000) < Time::new(1602, 48_000));
        assert!(Time::new(i64::MAX, 1) > Time::new(i64::MAX, 2));
    }

    proptest::proptest! {
        #[test]
        fn rounding_is_the_same_for_small_and_large(ticks: i64, from in 1u32.., to in 1u32..) {
            for ticks in [ticks, ticks >> 32, ticks >> 48] {
                let twice = 2 * ticks as i128 * to as i128;
                let rounded = (twice.abs() + from as i128) / (2 * from as i128) * twice.signum();
                proptest::prop_assert_eq!(Time::new(ticks, from).round_to(to), clamp_to_i64(rounded));
            }
        }
    }

    #[test]
    fn gcd_of_common_timescales() {
        assert_eq!(gcd(48_000, 12_800), 3200);
        assert_eq!(gcd(0, 7), 7);
    }
}
