//! Use of stored responses (RFC 9111 section 4).

use std::time::Duration;

use store::planted_bugs::is_bug_planted;

use super::{CacheDirectives, FreshnessLifetime};
use crate::cache_outcome::RevalidationReason;

/// The permitted use of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReuseDecision {
    /// The response is fresh and may be used.
    Fresh,
    /// The response is stale, but may be used while it is revalidated in the background.
    WhileRevalidate,
    /// The response is stale, and the request accepts this staleness.
    Stale,
    /// The response must be revalidated before use, for this reason.
    Revalidate(RevalidationReason),
}

/// Decides how a stored response may be used. `resident` is the time since the response arrived.
pub fn judge_reuse(
    stored: &FreshnessLifetime,
    resident: Duration,
    request: &CacheDirectives,
) -> ReuseDecision {
    let mut age = stored.age.saturating_add(resident);
    if is_bug_planted("age-ignored") {
        age = Duration::ZERO;
    }
    if stored.no_cache {
        return ReuseDecision::Revalidate(RevalidationReason::NoCache);
    }
    if request.no_cache {
        return ReuseDecision::Revalidate(RevalidationReason::RequestNoCache);
    }
    if request.max_age.is_some_and(|limit| age > limit) && request.max_stale.is_none() {
        return ReuseDecision::Revalidate(RevalidationReason::RequestMaxAge);
    }
    if let Some(left) = stored.fresh.checked_sub(age).filter(|left| !left.is_zero()) {
        return match request.min_fresh {
            Some(min_fresh) if left < min_fresh => {
                ReuseDecision::Revalidate(RevalidationReason::RequestMinFresh)
            }
            _ => ReuseDecision::Fresh,
        };
    }
    let staleness = age.saturating_sub(stored.fresh);
    if stored.must_revalidate {
        ReuseDecision::Revalidate(RevalidationReason::MustRevalidate)
    } else if request.min_fresh.is_some() {
        ReuseDecision::Revalidate(RevalidationReason::RequestMinFresh)
    } else if staleness < stored.stale_while_revalidate {
        ReuseDecision::WhileRevalidate
    } else if request.max_stale.is_some_and(|limit| staleness <= limit) {
        ReuseDecision::Stale
    } else {
        ReuseDecision::Revalidate(RevalidationReason::Expired)
    }
}

/// Returns whether a stored response may be served stale after a failure of the origin (RFC 5861
/// section 4). The response, the request or the setting `stale-if-error` must allow stale use. The
/// result is `false` if the response or the request forbids stale use.
pub fn allows_stale_on_error(
    stored: &FreshnessLifetime,
    resident: Duration,
    request: &CacheDirectives,
) -> bool {
    if is_bug_planted("stale-on-any-error") {
        return true;
    }
    let age = stored.age.saturating_add(resident);
    let staleness = age.saturating_sub(stored.fresh);
    let allowed = stored
        .stale_if_error
        .max(stored.stale_while_revalidate)
        .max(request.stale_if_error.unwrap_or_default());
    !stored.must_revalidate && !stored.no_cache && !request.no_cache && staleness < allowed
}
