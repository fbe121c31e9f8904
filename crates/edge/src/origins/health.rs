//! Whether an origin is asked, and how much: what its failures and its probes lead to. Pure.

use std::time::{Duration, Instant};

/// What is made of failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Care {
    /// So many in a row, and it is out.
    pub failures_max: u32,
    /// Then it is not asked for so long; twice as long each time it fails again.
    pub retry_after: Duration,
    /// When it is back, how long until it is given its whole share.
    pub slow_start: Duration,
}

/// One origin's state.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Failures in a row.
    failed: u32,
    /// Good probes in a row, while it is out.
    passed: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is asked; since then, if it was out before.
    In(Option<Instant>),
    /// It is not asked until then, and was out so often without an answer in between.
    Out(Instant, u32),
}

impl Default for State {
    fn default() -> State {
        State::In(None)
    }
}

/// What a word about an origin has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Nothing,
    Out,
    Back,
}

/// The share of one that is tried again, or has just come back.
const TRIAL: f64 = 0.05;
/// Good probes in a row that bring an origin back.
const PROBES: u32 = 2;
/// The time that it is out doubles so often.
const DOUBLINGS_MAX: u32 = 5;

impl Health {
    /// Its share of requests, of 1; 0: it is not asked. One that is probed comes back by its
    /// probes alone, another by being tried.
    pub fn share(&self, care: &Care, probed: bool, now: Instant) -> f64 {
        match self.state {
            State::In(None) => 1.0,
            State::In(Some(since)) if care.slow_start > now.saturating_duration_since(since) => {
                let passed = now.saturating_duration_since(since).as_secs_f64();
                (passed / care.slow_start.as_secs_f64()).max(TRIAL)
            }
            State::In(_) => 1.0,
            State::Out(until, _) if now >= until && !probed => TRIAL,
            State::Out(..) => 0.0,
        }
    }

    pub fn is_out(&self) -> bool {
        matches!(self.state, State::Out(..))
    }

    /// It has answered a request.
    pub fn answered(&mut self, probed: bool, now: Instant) -> Change {
        self.failed = 0;
        if self.is_out() && !probed {
            return self.back(now);
        }
        Change::Nothing
    }

    /// It has failed a request.
    pub fn failed(&mut self, care: &Care, now: Instant) -> Change {
        self.failed = self.failed.saturating_add(1);
        self.passed = 0;
        match self.state {
            State::In(_) if self.failed >= care.failures_max => {
                self.state = State::Out(now + care.retry_after, 0);
                Change::Out
            }
            State::Out(until, times) if now >= until => {
                let times = (times + 1).min(DOUBLINGS_MAX);
                self.state = State::Out(now + care.retry_after * 2u32.pow(times), times);
                Change::Nothing
            }
            _ => Change::Nothing,
        }
    }

    /// A probe came out so.
    pub fn probed(&mut self, good: bool, care: &Care, now: Instant) -> Change {
        if !good {
            return self.failed(care, now);
        }
        if !self.is_out() {
            self.failed = 0;
            return Change::Nothing;
        }
        self.passed += 1;
        if self.passed < PROBES {
            return Change::Nothing;
        }
        self.back(now)
    }

    fn back(&mut self, now: Instant) -> Change {
        *self = Health {
            state: State::In(Some(now)),
            ..Health::default()
        };
        Change::Back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARE: Care = Care {
        failures_max: 3,
        retry_after: Duration::from_secs(5),
        slow_start: Duration::from_secs(10),
    };

    fn out(now: Instant) -> Health {
        let mut health = Health::default();
        assert_eq!(health.failed(&CARE, now), Change::Nothing);
        health.answered(false, now);
        for expected in [Change::Nothing, Change::Nothing, Change::Out] {
            assert_eq!(health.share(&CARE, false, now), 1.0);
            assert_eq!(health.failed(&CARE, now), expected);
        }
        assert_eq!(health.share(&CARE, false, now), 0.0);
        health
    }

    #[test]
    fn three_failures_in_a_row_and_it_is_out_until_it_is_tried() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut health = out(start);
        assert_eq!(health.share(&CARE, false, at(4)), 0.0);
        assert_eq!(health.share(&CARE, false, at(5)), TRIAL);
        // Tried, and failed: out for twice as long.
        assert_eq!(health.failed(&CARE, at(5)), Change::Nothing);
        assert_eq!(health.share(&CARE, false, at(14)), 0.0);
        assert_eq!(health.share(&CARE, false, at(15)), TRIAL);
        assert_eq!(health.answered(false, at(15)), Change::Back);
        for (s, share) in [(15, TRIAL), (20, 0.5), (24, 0.9), (25, 1.0), (99, 1.0)] {
            assert!(
                (health.share(&CARE, false, at(s)) - share).abs() < 1e-9,
                "{s}"
            );
        }
    }

    #[test]
    fn one_that_is_probed_comes_back_by_two_good_probes() {
        let now = Instant::now();
        let mut health = out(now);
        let later = now + Duration::from_secs(1000);
        assert_eq!(health.share(&CARE, true, later), 0.0);
        assert_eq!(health.answered(true, later), Change::Nothing);
        assert_eq!(health.probed(true, &CARE, later), Change::Nothing);
        assert_eq!(health.probed(false, &CARE, later), Change::Nothing);
        assert_eq!(health.probed(true, &CARE, later), Change::Nothing);
        assert_eq!(health.probed(true, &CARE, later), Change::Back);
        assert_eq!(health.share(&CARE, true, later), TRIAL);
    }

    #[test]
    fn the_time_that_it_is_out_has_an_end() {
        let mut now = Instant::now();
        let mut health = out(now);
        for _ in 0..100 {
            now += Duration::from_secs(3600);
            health.failed(&CARE, now);
        }
        assert_eq!(
            health.share(&CARE, false, now + Duration::from_secs(160)),
            TRIAL
        );
    }
}
