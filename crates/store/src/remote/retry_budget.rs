//! A budget for retries and for hedged requests.

use std::sync::{Mutex, PoisonError};

/// Maximum number of tokens. The maximum limits the burst of additional requests after a period
/// without additional requests.
const TOKENS_MAX: f64 = 10.0;

/// A token bucket. Each regular request adds `share` tokens, and each additional request takes one
/// token.
#[derive(Debug)]
pub(super) struct RetryBudget {
    share: f64,
    tokens: Mutex<f64>,
}

impl RetryBudget {
    /// Creates a full budget, or an empty budget if the share is 0.
    pub(super) fn new(share: f64) -> RetryBudget {
        let tokens = if share > 0.0 { TOKENS_MAX } else { 0.0 };
        RetryBudget {
            share,
            tokens: Mutex::new(tokens),
        }
    }

    /// Records a regular request.
    pub(super) fn record_request(&self) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = (*tokens + self.share).min(TOKENS_MAX);
    }

    /// Takes a token. Returns whether a token was available.
    pub(super) fn try_spend(&self) -> bool {
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
        let budget = RetryBudget::new(0.1);
        let mut extra = 0;
        for _ in 0..1000 {
            budget.record_request();
            extra += u32::from(budget.try_spend());
        }
        assert!((100..=110).contains(&extra), "{extra}");
        let none = RetryBudget::new(0.0);
        none.record_request();
        assert!(!none.try_spend());
    }
}
