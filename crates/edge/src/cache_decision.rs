//! Decides how to serve a request, from the cached entry and the request's cache directives. The
//! function is pure, so the caller passes in the current time.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use http::Method;

use crate::cache_entry::CacheEntry;
use crate::cache_outcome::{MissReason, PassReason, RevalidationReason, StaleReason};
use crate::freshness::{CacheDirectives, ReuseDecision, judge_reuse};

/// The way in which a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheDecision {
    /// Serve the cached object.
    Hit,
    /// Serve the cached object although it is stale.
    Stale(StaleReason),
    /// Fetch from the origin. Concurrent requests for the same key share this fetch.
    Fetch(MissReason),
    /// Fetch from the origin if no other request for this key is fetching. Otherwise, pass. A
    /// request with a range or precondition always passes. This plan applies after an unshareable
    /// response, until the unshareable mark expires or a response for this key is shareable.
    FetchUncoalesced,
    /// Send the request to the origin for this client alone.
    Pass(PassReason),
    /// Respond with 504, because the client accepts only a cached response (`only-if-cached`) and
    /// the cache has no usable response (RFC 9111 section 5.2.1.7).
    RefuseUncached,
}

/// Decides how to serve a request.
///
/// `found` is the cache entry under the request's key. If `has_variants` is set, `found` is the
/// entry of the variant that the request selects.
pub fn decide_cache_use(
    method: &Method,
    directives: &CacheDirectives,
    found: Option<&CacheEntry>,
    has_variants: bool,
    now: Instant,
) -> CacheDecision {
    let uncached = match found {
        Some(CacheEntry::Object(object)) => {
            let is_purged = object.is_purged.load(Relaxed);
            let resident = now.saturating_duration_since(object.received_at);
            let revalidate = |reason| CacheDecision::Fetch(MissReason::Revalidation(reason));
            match judge_reuse(&object.lifetime, resident, directives) {
                _ if is_purged => revalidate(RevalidationReason::Purged),
                ReuseDecision::Fresh => return CacheDecision::Hit,
                ReuseDecision::WhileRevalidate => {
                    return CacheDecision::Stale(StaleReason::WhileRevalidate);
                }
                ReuseDecision::Stale => return CacheDecision::Stale(StaleReason::Request),
                ReuseDecision::Revalidate(reason) => revalidate(reason),
            }
        }
        Some(CacheEntry::Unshareable {
            until, always_pass, ..
        }) if *until > now => {
            if *always_pass {
                CacheDecision::Pass(PassReason::Unshareable)
            } else {
                CacheDecision::FetchUncoalesced
            }
        }
        _ if has_variants => CacheDecision::Fetch(MissReason::Variant),
        _ => CacheDecision::Fetch(MissReason::Absent),
    };
    if directives.only_if_cached {
        CacheDecision::RefuseUncached
    } else if method != Method::GET {
        CacheDecision::Pass(PassReason::Method)
    } else if directives.no_store {
        CacheDecision::Pass(PassReason::RequestNoStore)
    } else {
        uncached
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn unshareable_mark_expires_at_the_given_time() {
        let now = Instant::now();
        let until = now + Duration::from_secs(10);
        let plan = |always_pass, now| {
            let entry = CacheEntry::Unshareable {
                until,
                always_pass,
                has_unlisted_variants: false,
            };
            let directives = CacheDirectives::default();
            decide_cache_use(&Method::GET, &directives, Some(&entry), false, now)
        };
        assert_eq!(plan(false, now), CacheDecision::FetchUncoalesced);
        assert_eq!(
            plan(true, now),
            CacheDecision::Pass(PassReason::Unshareable)
        );
        for always_pass in [false, true] {
            assert_eq!(
                plan(always_pass, until),
                CacheDecision::Fetch(MissReason::Absent)
            );
        }
    }
}
