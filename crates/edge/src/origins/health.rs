//! Health of an origin, derived from failures and probes.

use std::time::{Duration, Instant};

/// Settings of failure handling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthPolicy {
    /// Number of consecutive failures that suspend an origin.
    pub failures_max: u32,
    /// Duration of a suspension. If the origin still fails afterwards, the suspension is extended,
    /// and each extension doubles the duration.
    pub retry_after: Duration,
    /// Time in which a recovered origin's share of requests grows to its full value.
    pub slow_start: Duration,
}

/// The health of one origin.
#[derive(Debug, Clone, Default)]
pub struct OriginHealth {
    /// Number of consecutive failures.
    failures: u32,
    /// Number of consecutive successful probes during a suspension.
    probes_passed: u32,
    state: HealthState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HealthState {
    /// The origin gets requests. The time is the end of its last suspension, or `None` if the
    /// origin was never suspended.
    Active(Option<Instant>),
    /// The origin is suspended, and gets no trial requests before this time. The number is how
    /// often the duration of the suspension has doubled.
    Suspended(Instant, u32),
}

impl Default for HealthState {
    fn default() -> HealthState {
        HealthState::Active(None)
    }
}

/// The effect of a response, failure or probe on an origin's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthChange {
    Nothing,
    Suspended,
    Recovered,
}

/// Share of requests that a suspended origin gets as a trial, and that a recovered origin gets at
/// first.
const TRIAL_SHARE: f64 = 0.05;
/// Number of consecutive successful probes that end a suspension.
const PROBES_MIN: u32 = 2;
/// Maximum number of times that the duration of a suspension doubles.
const DOUBLINGS_MAX: u32 = 5;

impl OriginHealth {
    /// Returns the origin's share of requests, from 0 (suspended) to 1. If the pool has probes,
    /// only successful probes end a suspension. Otherwise, a suspended origin gets a small share of
    /// the requests as a trial after some time.
    pub fn request_share(&self, care: &HealthPolicy, probed: bool, now: Instant) -> f64 {
        match self.state {
            HealthState::Active(None) => 1.0,
            HealthState::Active(Some(since))
                if care.slow_start > now.saturating_duration_since(since) =>
            {
                let passed = now.saturating_duration_since(since).as_secs_f64();
                (passed / care.slow_start.as_secs_f64()).max(TRIAL_SHARE)
            }
            HealthState::Active(_) => 1.0,
            HealthState::Suspended(until, _) if now >= until && !probed => TRIAL_SHARE,
            HealthState::Suspended(..) => 0.0,
        }
    }

    pub fn is_suspended(&self) -> bool {
        matches!(self.state, HealthState::Suspended(..))
    }

    /// Records a response to a request.
    pub fn record_response(&mut self, probed: bool, now: Instant) -> HealthChange {
        self.failures = 0;
        if self.is_suspended() && !probed {
            return self.mark_recovered(now);
        }
        HealthChange::Nothing
    }

    /// Records a failed request.
    pub fn record_failure(&mut self, care: &HealthPolicy, now: Instant) -> HealthChange {
        self.failures = self.failures.saturating_add(1);
        self.probes_passed = 0;
        match self.state {
            HealthState::Active(_) if self.failures >= care.failures_max => {
                self.state = HealthState::Suspended(now + care.retry_after, 0);
                HealthChange::Suspended
            }
            HealthState::Suspended(until, times) if now >= until => {
                let times = (times + 1).min(DOUBLINGS_MAX);
                self.state =
                    HealthState::Suspended(now + care.retry_after * 2u32.pow(times), times);
                HealthChange::Nothing
            }
            _ => HealthChange::Nothing,
        }
    }

    /// Records the result of a probe.
    pub fn record_probe(&mut self, good: bool, care: &HealthPolicy, now: Instant) -> HealthChange {
        if !good {
            return self.record_failure(care, now);
        }
        if !self.is_suspended() {
            self.failures = 0;
            return HealthChange::Nothing;
        }
        self.probes_passed += 1;
        if self.probes_passed < PROBES_MIN {
            return HealthChange::Nothing;
        }
        self.mark_recovered(now)
    }

    fn mark_recovered(&mut self, now: Instant) -> HealthChange {
        *self = OriginHealth {
            state: HealthState::Active(Some(now)),
            ..OriginHealth::default()
        };
        HealthChange::Recovered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARE: HealthPolicy = HealthPolicy {
        failures_max: 3,
        retry_after: Duration::from_secs(5),
        slow_start: Duration::from_secs(10),
    };

    fn out(now: Instant) -> OriginHealth {
        let mut health = OriginHealth::default();
        assert_eq!(health.record_failure(&CARE, now), HealthChange::Nothing);
        health.record_response(false, now);
        for expected in [
            HealthChange::Nothing,
            HealthChange::Nothing,
            HealthChange::Suspended,
        ] {
            assert_eq!(health.request_share(&CARE, false, now), 1.0);
            assert_eq!(health.record_failure(&CARE, now), expected);
        }
        assert_eq!(health.request_share(&CARE, false, now), 0.0);
        health
    }

    #[test]
    fn three_failures_in_a_row_suspend_an_origin_until_a_trial() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut health = out(start);
        assert_eq!(health.request_share(&CARE, false, at(4)), 0.0);
        assert_eq!(health.request_share(&CARE, false, at(5)), TRIAL_SHARE);
        // The trial failed, so the next suspension takes 10 s instead of 5 s.
        assert_eq!(health.record_failure(&CARE, at(5)), HealthChange::Nothing);
        assert_eq!(health.request_share(&CARE, false, at(14)), 0.0);
        assert_eq!(health.request_share(&CARE, false, at(15)), TRIAL_SHARE);
        assert_eq!(
            health.record_response(false, at(15)),
            HealthChange::Recovered
        );
        for (s, share) in [
            (15, TRIAL_SHARE),
            (20, 0.5),
            (24, 0.9),
            (25, 1.0),
            (99, 1.0),
        ] {
            assert!(
                (health.request_share(&CARE, false, at(s)) - share).abs() < 1e-9,
                "{s}"
            );
        }
    }

    #[test]
    fn two_good_probes_restore_an_origin() {
        let now = Instant::now();
        let mut health = out(now);
        let later = now + Duration::from_secs(1000);
        assert_eq!(health.request_share(&CARE, true, later), 0.0);
        assert_eq!(health.record_response(true, later), HealthChange::Nothing);
        assert_eq!(
            health.record_probe(true, &CARE, later),
            HealthChange::Nothing
        );
        assert_eq!(
            health.record_probe(false, &CARE, later),
            HealthChange::Nothing
        );
        assert_eq!(
            health.record_probe(true, &CARE, later),
            HealthChange::Nothing
        );
        assert_eq!(
            health.record_probe(true, &CARE, later),
            HealthChange::Recovered
        );
        assert_eq!(health.request_share(&CARE, true, later), TRIAL_SHARE);
    }

    #[test]
    fn the_suspension_time_is_bounded() {
        let mut now = Instant::now();
        let mut health = out(now);
        for _ in 0..100 {
            now += Duration::from_secs(3600);
            health.record_failure(&CARE, now);
        }
        assert_eq!(
            health.request_share(&CARE, false, now + Duration::from_secs(160)),
            TRIAL_SHARE
        );
    }
}
