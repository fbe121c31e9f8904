//! How many requests may be sent a second time: a share of all, so that a failing origin is not
//! asked many times over. Pure; after Finagle's retry budget.

use std::time::Instant;

/// What quiet times leave over, in retries.
const SAVED_MAX: f64 = 100.0;
/// Allowed in any case, so that few requests are not without.
const RETRIES_PER_S: f64 = 1.0;

/// Retries that may be made.
#[derive(Debug, Clone)]
pub struct Budget {
    saved: f64,
    at: Instant,
}

impl Budget {
    pub fn new(now: Instant) -> Budget {
        Budget {
            saved: 10.0,
            at: now,
        }
    }

    /// A request was made: `share` of a retry is earned.
    pub fn earn(&mut self, share: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.saved = (self.saved + share + passed * RETRIES_PER_S).min(SAVED_MAX);
    }

    /// Whether a retry may be made, which is then spent.
    pub fn spend(&mut self) -> bool {
        let may = self.saved >= 1.0;
        if may {
            self.saved -= 1.0;
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
        let mut budget = Budget::new(now);
        let mut retries = 0;
        for _ in 0..1000 {
            budget.earn(0.2, now);
            retries += u32::from(budget.spend());
        }
        assert!((205..=210).contains(&retries), "{retries}");
        for _ in 0..10_000 {
            budget.earn(0.2, now);
        }
        let saved = (0..1000).filter(|_| budget.spend()).count();
        assert_eq!(saved, 100);
        budget.earn(0.0, now + std::time::Duration::from_secs(3));
        assert_eq!((0..9).filter(|_| budget.spend()).count(), 3);
    }
}
