//! May a kept answer be used for this request (RFC 9111 section 4)?

use std::time::Duration;

use super::{Directives, Lifetime};
use crate::reason::Asking;

/// What may be done with a kept answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Use it.
    Fresh,
    /// Use it, and ask the origin meanwhile.
    WhileRevalidate,
    /// It is stale, and the client said that this is good enough.
    Stale,
    /// Ask the origin first, for this reason.
    Ask(Asking),
}

/// Judges a kept answer that has been here for `resident`.
pub fn judge(kept: &Lifetime, resident: Duration, request: &Directives) -> Use {
    let age = kept.age.saturating_add(resident);
    if kept.no_cache {
        return Use::Ask(Asking::NoCache);
    }
    if request.no_cache {
        return Use::Ask(Asking::RequestNoCache);
    }
    if request.max_age.is_some_and(|most| age > most) && request.max_stale.is_none() {
        return Use::Ask(Asking::RequestMaxAge);
    }
    if let Some(left) = kept.fresh.checked_sub(age).filter(|left| !left.is_zero()) {
        return match request.min_fresh {
            Some(least) if left < least => Use::Ask(Asking::RequestMinFresh),
            _ => Use::Fresh,
        };
    }
    let staleness = age.saturating_sub(kept.fresh);
    if kept.must_revalidate {
        Use::Ask(Asking::MustRevalidate)
    } else if request.min_fresh.is_some() {
        Use::Ask(Asking::RequestMinFresh)
    } else if staleness < kept.stale_while_revalidate {
        Use::WhileRevalidate
    } else if request.max_stale.is_some_and(|most| staleness <= most) {
        Use::Stale
    } else {
        Use::Ask(Asking::Expired)
    }
}

/// Whether a kept answer may stand in for an origin that failed (RFC 5861 section 4): the answer
/// or the request allows it, and the answer does not forbid all stale use.
pub fn serves_error(kept: &Lifetime, resident: Duration, request: &Directives) -> bool {
    let age = kept.age.saturating_add(resident);
    let staleness = age.saturating_sub(kept.fresh);
    let allowed = kept
        .stale_if_error
        .max(kept.stale_while_revalidate)
        .max(request.stale_if_error.unwrap_or_default());
    !kept.must_revalidate && !kept.no_cache && !request.no_cache && staleness < allowed
}
