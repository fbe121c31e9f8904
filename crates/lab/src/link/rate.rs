//! A bottleneck's rate over time.

use super::UnitError;
use serde::Serialize;

/// The reason why a rate trace is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateTraceError {
    /// A line is invalid.
    #[error("line {line}: {fault}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The fault of the line.
        fault: RateTraceLineFault,
    },
    /// All rates are zero, or a step has no duration.
    #[error("no step with a duration and a rate above 0bit; add one")]
    NoRate,
    /// The trace has no line that marks its end.
    #[error("the end is missing; write when the trace repeats in the last line, such as `60 end`")]
    NoEnd,
}

/// The reason why a line of a rate trace is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateTraceLineFault {
    /// The line does not have two fields.
    #[error("expected two fields; write seconds and a rate, such as `12.5 8mbit`")]
    Form,
    /// The first field is not a number.
    #[error("the seconds are not a number; write them like `12.5`")]
    Seconds,
    /// The seconds are out of range.
    #[error("the seconds are not between 0 and 1000000; use a number between them")]
    SecondsRange,
    /// The first line does not start at second 0.
    #[error("the first line does not start at second 0; add a line such as `0 8mbit`")]
    Start,
    /// The times of lines do not increase.
    #[error("times of lines do not increase; sort the lines by second")]
    Order,
    /// The second field is not a rate.
    #[error(transparent)]
    LinkRate(UnitError),
}

const SECOND_NS: u128 = 1_000_000_000;

/// A rate in bits per second, which counts all bits of the IP packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRate {
    /// There is no bottleneck, and therefore no queue.
    Unlimited,
    /// A constant rate.
    Constant(u64),
    /// A rate that follows a repeating trace.
    RateTrace(RateTrace),
}

/// Successive rates with their durations. The first step begins when the link starts. After the
/// last step, the trace repeats.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateTrace {
    steps: Vec<RateStep>,
}

/// A rate and its duration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RateStep {
    /// Duration in nanoseconds, at least 1.
    pub lasts_ns: u64,
    /// Rate in bits per second; 0 is an outage.
    pub bits_per_s: u64,
}

impl LinkRate {
    /// Returns the time at which `bytes` have been transmitted if transmission starts at
    /// `start_ns`.
    pub fn transmission_end_ns(&self, start_ns: u64, bytes: u64) -> u64 {
        match self {
            LinkRate::Unlimited => start_ns,
            LinkRate::Constant(rate) => start_ns + transmission_ns(bytes * 8, *rate),
            LinkRate::RateTrace(trace) => trace.transmission_end_ns(start_ns, bytes * 8),
        }
    }

    /// Returns the mean rate in bits per second, or `None` if the rate is unlimited.
    pub fn mean_bits_per_s(&self) -> Option<u64> {
        match self {
            LinkRate::Unlimited => None,
            LinkRate::Constant(rate) => Some(*rate),
            LinkRate::RateTrace(trace) => {
                Some((trace.scaled_period_bits() / u128::from(trace.period_ns())) as u64)
            }
        }
    }
}

impl RateTrace {
    /// Creates a trace.
    ///
    /// # Errors
    /// There is no step, a step has no duration, or no rate is above 0.
    pub fn new(steps: Vec<RateStep>) -> Result<RateTrace, RateTraceError> {
        let lasting = steps.iter().all(|step| step.lasts_ns > 0);
        if !lasting || !steps.iter().any(|step| step.bits_per_s > 0) {
            return Err(RateTraceError::NoRate);
        }
        Ok(RateTrace { steps })
    }

    /// Parses lines that each contain a time in seconds and a rate (`0 10mbit`, `12.5 0bit`). Each
    /// rate applies until the time of the next line. The last line has `end` instead of a rate.
    ///
    /// # Errors
    /// A line is invalid, the line with `end` is missing, or no rate is above 0. Only the first
    /// fault is returned.
    pub fn parse_trace(text: &str) -> Result<RateTrace, RateTraceError> {
        let mut steps: Vec<RateStep> = Vec::new();
        let mut before: Option<(u64, u64)> = None;
        let lines = text
            .lines()
            .enumerate()
            .map(|(n, line)| (n + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let wrong = |fault| RateTraceError::Line {
                line: number,
                fault,
            };
            let parts = line.split_once(char::is_whitespace);
            let (at, rate) = parts.ok_or_else(|| wrong(RateTraceLineFault::Form))?;
            let seconds: f64 = at.parse().map_err(|_| wrong(RateTraceLineFault::Seconds))?;
            if !(0.0..=1e6).contains(&seconds) {
                return Err(wrong(RateTraceLineFault::SecondsRange));
            }
            let at_ns = (seconds * 1e9) as u64;
            match before {
                None if at_ns > 0 => return Err(wrong(RateTraceLineFault::Start)),
                Some((was_ns, _)) if at_ns <= was_ns => {
                    return Err(wrong(RateTraceLineFault::Order));
                }
                Some((was_ns, bits_per_s)) => {
                    let lasts_ns = at_ns - was_ns;
                    steps.push(RateStep {
                        lasts_ns,
                        bits_per_s,
                    });
                }
                None => {}
            }
            before = match rate.trim() {
                "end" => return RateTrace::new(steps),
                "0bit" => Some((at_ns, 0)),
                rate => Some((
                    at_ns,
                    super::parse_rate(rate)
                        .map_err(|error| wrong(RateTraceLineFault::LinkRate(error)))?,
                )),
            };
        }
        Err(RateTraceError::NoEnd)
    }

    fn period_ns(&self) -> u64 {
        self.steps.iter().map(|step| step.lasts_ns).sum()
    }

    /// Returns the bits that are transmitted in one period of the trace, multiplied by 10⁹.
    fn scaled_period_bits(&self) -> u128 {
        let area = |step: &RateStep| u128::from(step.bits_per_s) * u128::from(step.lasts_ns);
        self.steps.iter().map(area).sum()
    }

    fn transmission_end_ns(&self, start_ns: u64, bits: u64) -> u64 {
        let period_ns = self.period_ns();
        let mut now_ns = start_ns - start_ns % period_ns;
        let mut left = u128::from(bits) * SECOND_NS;
        // Skips whole periods. The remaining bits need at most two more periods, so the loop ends.
        let rounds = left / self.scaled_period_bits();
        left -= rounds * self.scaled_period_bits();
        now_ns += rounds as u64 * period_ns;
        let start_ns = start_ns + rounds as u64 * period_ns;
        for step in self.steps.iter().cycle() {
            let end_ns = now_ns + step.lasts_ns;
            if end_ns > start_ns {
                let from_ns = now_ns.max(start_ns);
                let room = u128::from(end_ns - from_ns) * u128::from(step.bits_per_s);
                if left <= room {
                    let needed = left.checked_div(u128::from(step.bits_per_s));
                    return from_ns + needed.unwrap_or(0) as u64;
                }
                left -= room;
            }
            now_ns = end_ns;
        }
        now_ns
    }
}

fn transmission_ns(bits: u64, rate: u64) -> u64 {
    (u128::from(bits) * SECOND_NS / u128::from(rate.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn create_trace(steps: &[(u64, u64)]) -> RateTrace {
        let step = |(lasts_ns, bits_per_s): &(u64, u64)| RateStep {
            lasts_ns: *lasts_ns,
            bits_per_s: *bits_per_s,
        };
        RateTrace::new(steps.iter().map(step).collect()).unwrap()
    }

    #[test]
    fn bytes_pass_at_the_rate_of_their_time() {
        // The rate is 8 kbit/s in the first second, 0 in the second, and 16 kbit/s in the third.
        let rate = LinkRate::RateTrace(create_trace(&[(S, 8000), (S, 0), (S, 16_000)]));
        for (start, bytes, through) in [
            (0, 1000, S),
            (0, 500, S / 2),
            (S / 2, 1000, 2 * S + S / 4),
            (S, 2000, 3 * S),
            (3 * S, 1000, 4 * S),
            (0, 3000, 3 * S),
            (0, 9000, 9 * S),
            (S + S / 2, 2000, 3 * S),
            (S + S / 2, 2500, 3 * S + S / 2),
        ] {
            assert_eq!(
                rate.transmission_end_ns(start, bytes),
                through,
                "{start} {bytes}"
            );
        }
        assert_eq!(rate.mean_bits_per_s(), Some(8000));
    }

    #[test]
    fn traces_are_parsed_and_faults_name_their_line() {
        let read = RateTrace::parse_trace("# a walk\n0 8kbit\n1 0bit\n\n2 16kbit\n3 end\n");
        assert_eq!(read, Ok(create_trace(&[(S, 8000), (S, 0), (S, 16_000)])));
        for (text, message) in [
            ("", "end"),
            ("0 1mbit", "end"),
            ("1 1mbit\n2 end", "line 1"),
            ("0 1mbit\n0 2mbit\n3 end", "line 2"),
            ("0 fast\n3 end", "line 1"),
            ("0\n3 end", "line 1"),
            ("0 0bit\n3 end", "above 0"),
            ("NaN 1mbit", "line 1"),
        ] {
            let error = RateTrace::parse_trace(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_flat_trace_is_a_constant_rate(
            start in 0..100 * S, bytes in 1..1_000_000u64, rate in 1000..1_000_000_000u64,
            lasts in 1000..10 * S,
        ) {
            let flat = LinkRate::RateTrace(create_trace(&[(lasts, rate), (2 * lasts, rate)]));
            let through = LinkRate::Constant(rate).transmission_end_ns(start, bytes);
            prop_assert!(flat.transmission_end_ns(start, bytes).abs_diff(through) <= 1);
        }

        #[test]
        fn more_bytes_take_longer_and_chunks_take_as_long_as_the_whole(
            start in 0..10 * S, a in 1..100_000u64, b in 1..100_000u64,
            steps in prop::collection::vec((1000..3 * S, prop_oneof![Just(0), 1000..10_000_000u64]), 1..6),
        ) {
            prop_assume!(steps.iter().any(|(_, rate)| *rate > 0));
            let rate = LinkRate::RateTrace(create_trace(&steps));
            let first = rate.transmission_end_ns(start, a);
            let (pieces, whole) = (rate.transmission_end_ns(first, b), rate.transmission_end_ns(start, a + b));
            prop_assert!(first >= start && whole >= first);
            // Results are rounded down to nanoseconds. Each rounding loses at most the bits that
            // are sent in one nanosecond at the fastest rate.
            let (low, high) = (pieces.min(whole), pieces.max(whole));
            let lost_bits = 2 * 10_000_000 / S + 1;
            prop_assert!(rate.transmission_end_ns(low, lost_bits.div_ceil(8)) >= high);
        }
    }
}
