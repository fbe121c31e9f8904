//! How many more requests may be made than were asked for.

use std::sync::{Mutex, PoisonError};

/// What a budget may hold, so that a pause does not save up for a storm.
const TOKENS_MAX: f64 = 10.0;

/// A share of all requests. Each that is made adds it; each extra one takes one.
#[derive(Debug)]
pub(super) struct Budget {
    share: f64,
    tokens: Mutex<f64>,
}

impl Budget {
    /// Full, unless the share is nothing.
    pub(super) fn new(share: f64) -> Budget {
        let tokens = if share > 0.0 { TOKENS_MAX } else { 0.0 };
        Budget {
            share,
            tokens: Mutex::new(tokens),
        }
    }

    /// A request was made that was asked for.
    pub(super) fn earn(&self) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = (*tokens + self.share).min(TOKENS_MAX);
    }

    /// Whether one more may be made.
    pub(super) fn spend(&self) -> bool {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let may = *tokens >= 1.0;
        if may {
            *tokens -= 1.0;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_requests_stay_a_share_of_all() {
        let budget = Budget::new(0.1);
        let mut extra = 0;
        for _ in 0..1000 {
            budget.earn();
            extra += u32::from(budget.spend());
        }
        assert!((100..=110).contains(&extra), "{extra}");
        let none = Budget::new(0.0);
        none.earn();
        assert!(!none.spend());
    }
}
