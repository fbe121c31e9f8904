//! The retry budget limits retries to a share of all requests, so that retries do not multiply the
//! load of a failing origin. The caller passes in the current time. The design follows Finagle's
//! retry budget.

use std::time::Instant;

/// Maximum number of unused retries that the budget keeps.
const AVAILABLE_MAX: f64 = 100.0;
/// Retries per second that the budget adds even if there are few requests.
const RETRIES_PER_S: f64 = 1.0;

/// The number of retries that are still allowed.
#[derive(Debug, Clone)]
pub struct RetryBudget {
    available: f64,
    updated_at: Instant,
}

impl RetryBudget {
    pub fn new(now: Instant) -> RetryBudget {
        RetryBudget {
            available: 10.0,
            updated_at: now,
        }
    }

    /// Counts one request, which adds `share` (a fraction of one retry) to the budget. Also adds
    /// `RETRIES_PER_S` for each second since the last call.
    pub fn credit_request(&mut self, share: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.updated_at).as_secs_f64();
        self.updated_at = now;
        self.available = (self.available + share + passed * RETRIES_PER_S).min(AVAILABLE_MAX);
    }

    /// Takes one retry from the budget. Returns `false` if less than one retry is left.
    pub fn take_retry(&mut self) -> bool {
        let may = self.available >= 1.0;
        if may {
            self.available -= 1.0;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_requests() {
        let now = Instant::now();
        let mut budget = RetryBudget::new(now);
        let mut retries = 0;
        for _ in 0..1000 {
            budget.credit_request(0.2, now);
            retries += u32::from(budget.take_retry());
        }
        assert!((205..=210).contains(&retries), "{retries}");
        for _ in 0..10_000 {
            budget.credit_request(0.2, now);
        }
        let saved = (0..1000).filter(|_| budget.take_retry()).count();
        assert_eq!(saved, 100);
        budget.credit_request(0.0, now + std::time::Duration::from_secs(3));
        assert_eq!((0..9).filter(|_| budget.take_retry()).count(), 3);
    }
}
