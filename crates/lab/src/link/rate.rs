//! A bottleneck's rate over time.

use serde::Serialize;

const SECOND_NS: u128 = 1_000_000_000;

/// Bits a second of IP packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// No bottleneck, and no queue.
    Unlimited,
    /// Always the same.
    Constant(u64),
    /// As a trace says, over and over.
    Trace(Trace),
}

/// Steps of a rate, from the link's beginning; after the last they begin anew.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    steps: Vec<Step>,
}

/// A rate and how long it holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// Nanoseconds; more than 0.
    pub lasts_ns: u64,
    /// Bits a second; 0 is an outage.
    pub bits_per_s: u64,
}

impl Rate {
    /// When `bytes` are through, that begin at `start_ns`.
    pub fn through_ns(&self, start_ns: u64, bytes: u64) -> u64 {
        match self {
            Rate::Unlimited => start_ns,
            Rate::Constant(rate) => start_ns + air_ns(bytes * 8, *rate),
            Rate::Trace(trace) => trace.through_ns(start_ns, bytes * 8),
        }
    }

    /// Bits a second over a long time; none where unlimited.
    pub fn mean(&self) -> Option<u64> {
        match self {
            Rate::Unlimited => None,
            Rate::Constant(rate) => Some(*rate),
            Rate::Trace(trace) => Some((trace.bits_ns() / u128::from(trace.period_ns())) as u64),
        }
    }
}

impl Trace {
    /// A trace.
    ///
    /// # Errors
    /// A sentence, where it has no step, one that lasts no time, or none above 0.
    pub fn new(steps: Vec<Step>) -> Result<Trace, String> {
        let lasting = steps.iter().all(|step| step.lasts_ns > 0);
        if !lasting || !steps.iter().any(|step| step.bits_per_s > 0) {
            return Err("a trace has steps that each last some time, one of them above 0".into());
        }
        Ok(Trace { steps })
    }

    /// Reads lines of seconds and a rate (`0 10mbit`, `12.5 0bit`): each holds until the next one's
    /// time, the last, whose rate is nothing but a mark, ends the round: write `end` there.
    ///
    /// # Errors
    /// The line, and what is wrong in it.
    pub fn read(text: &str) -> Result<Trace, String> {
        let mut steps: Vec<Step> = Vec::new();
        let mut before: Option<(u64, u64)> = None;
        let lines = text
            .lines()
            .enumerate()
            .map(|(n, line)| (n + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let wrong = |what: &str| format!("line {number}: {what}, such as `12.5 8mbit`");
            let parts = line.split_once(char::is_whitespace);
            let (at, rate) = parts.ok_or_else(|| wrong("a line is seconds and a rate"))?;
            let seconds: f64 = at.parse().map_err(|_| wrong("seconds are a number"))?;
            if !(0.0..=1e6).contains(&seconds) {
                return Err(wrong("seconds are from 0 to 1000000"));
            }
            let at_ns = (seconds * 1e9) as u64;
            match before {
                None if at_ns > 0 => return Err(wrong("the first line is of second 0")),
                Some((was_ns, _)) if at_ns <= was_ns => return Err(wrong("seconds grow")),
                Some((was_ns, bits_per_s)) => {
                    let lasts_ns = at_ns - was_ns;
                    steps.push(Step {
                        lasts_ns,
                        bits_per_s,
                    });
                }
                None => {}
            }
            before = match rate.trim() {
                "end" => return Trace::new(steps),
                "0bit" => Some((at_ns, 0)),
                rate => Some((at_ns, super::rate(rate).map_err(|what| wrong(&what))?)),
            };
        }
        Err("the last line says when it begins anew: `60 end`".into())
    }

    fn period_ns(&self) -> u64 {
        self.steps.iter().map(|step| step.lasts_ns).sum()
    }

    /// Bits of a whole round, times 10⁹.
    fn bits_ns(&self) -> u128 {
        let area = |step: &Step| u128::from(step.bits_per_s) * u128::from(step.lasts_ns);
        self.steps.iter().map(area).sum()
    }

    fn through_ns(&self, start_ns: u64, bits: u64) -> u64 {
        let period_ns = self.period_ns();
        let mut now_ns = start_ns - start_ns % period_ns;
        let mut left = u128::from(bits) * SECOND_NS;
        // Whole rounds at once; what is left needs at most two, so this ends.
        let rounds = left / self.bits_ns();
        left -= rounds * self.bits_ns();
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

fn air_ns(bits: u64, rate: u64) -> u64 {
    (u128::from(bits) * SECOND_NS / u128::from(rate.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn trace(steps: &[(u64, u64)]) -> Trace {
        let step = |(lasts_ns, bits_per_s): &(u64, u64)| Step {
            lasts_ns: *lasts_ns,
            bits_per_s: *bits_per_s,
        };
        Trace::new(steps.iter().map(step).collect()).unwrap()
    }

    #[test]
    fn bytes_pass_at_the_rate_of_their_time() {
        // A second at 8 kbit/s, a second of outage, a second at 16 kbit/s.
        let rate = Rate::Trace(trace(&[(S, 8000), (S, 0), (S, 16_000)]));
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
            assert_eq!(rate.through_ns(start, bytes), through, "{start} {bytes}");
        }
        assert_eq!(rate.mean(), Some(8000));
    }

    #[test]
    fn traces_are_read_and_their_faults_placed() {
        let read = Trace::read("# a walk\n0 8kbit\n1 0bit\n\n2 16kbit\n3 end\n");
        assert_eq!(read, Ok(trace(&[(S, 8000), (S, 0), (S, 16_000)])));
        for (text, said) in [
            ("", "end"),
            ("0 1mbit", "end"),
            ("1 1mbit\n2 end", "line 1"),
            ("0 1mbit\n0 2mbit\n3 end", "line 2"),
            ("0 fast\n3 end", "line 1"),
            ("0\n3 end", "line 1"),
            ("0 0bit\n3 end", "above 0"),
            ("NaN 1mbit", "line 1"),
        ] {
            let error = Trace::read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_flat_trace_is_a_constant_rate(
            start in 0..100 * S, bytes in 1..1_000_000u64, rate in 1000..1_000_000_000u64,
            lasts in 1000..10 * S,
        ) {
            let flat = Rate::Trace(trace(&[(lasts, rate), (2 * lasts, rate)]));
            let through = Rate::Constant(rate).through_ns(start, bytes);
            prop_assert!(flat.through_ns(start, bytes).abs_diff(through) <= 1);
        }

        #[test]
        fn more_takes_longer_and_pieces_take_as_long_as_the_whole(
            start in 0..10 * S, a in 1..100_000u64, b in 1..100_000u64,
            steps in prop::collection::vec((1000..3 * S, prop_oneof![Just(0), 1000..10_000_000u64]), 1..6),
        ) {
            prop_assume!(steps.iter().any(|(_, rate)| *rate > 0));
            let rate = Rate::Trace(trace(&steps));
            let first = rate.through_ns(start, a);
            let (pieces, whole) = (rate.through_ns(first, b), rate.through_ns(start, a + b));
            prop_assert!(first >= start && whole >= first);
            // Each answer is cut to a nanosecond, in which a fast step passes more than a slow
            // one makes up in the same time: bits of one nanosecond at the fastest rate.
            let (low, high) = (pieces.min(whole), pieces.max(whole));
            let lost_bits = 2 * 10_000_000 / S + 1;
            prop_assert!(rate.through_ns(low, lost_bits.div_ceil(8)) >= high);
        }
    }
}
