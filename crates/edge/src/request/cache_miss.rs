//! The states of a request after a cache miss: `fetch_or_join`, `fetch_as_leader`,
//! `fetch_uncoalesced` and `respond_with_fetch_outcome`. If a state returns `None`, the request cannot
//! use the outcome of the fetch and does another lookup.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use store::cache::{FetchLeader, LeadOrFollow};

use super::{ServedResponse, build_summary};
use crate::Edge;
use crate::cache_entry::CacheEntry;
use crate::cache_key::CacheKey;
use crate::cache_outcome::{CacheOutcome, MissReason, PassReason, StaleReason, UncacheableReason};
use crate::cached_object::CachedObject;
use crate::deliver;
use crate::fetch::{FetchOutcome, FetchResultForLeader, start_fetch};
use crate::freshness::allows_stale_on_error;
use crate::request_facts::RequestFacts;

/// Whether a request started the fetch or waited for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FetchRole {
    Leader,
    Follower,
}

impl FetchRole {
    fn miss_outcome(
        self,
        reason: MissReason,
        uncacheable: Option<UncacheableReason>,
    ) -> CacheOutcome {
        match self {
            FetchRole::Leader => CacheOutcome::Miss(reason, uncacheable),
            FetchRole::Follower => CacheOutcome::Follow(reason),
        }
    }
}

impl Edge {
    /// Starts a fetch for this key, or joins the fetch that is already in progress.
    pub(super) async fn fetch_or_join(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
        variant_key: Option<CacheKey>,
        cached: Option<Arc<CachedObject>>,
        reason: MissReason,
    ) -> Option<ServedResponse> {
        let key = variant_key.unwrap_or_else(|| CacheKey::from(facts.primary_key.as_ref()));
        match self.flights.lead_or_join(&key) {
            LeadOrFollow::Lead(lead) => {
                // Another fetch may have finished between the lookup and the join.
                if let Some(CacheEntry::Object(now)) = self.memory.get(&key)
                    && cached
                        .as_ref()
                        .is_none_or(|cached| !Arc::ptr_eq(cached, &now))
                {
                    return None;
                }
                self.fetch_as_leader(worker, facts, lead, cached, reason)
                    .await
            }
            LeadOrFollow::Follow(follow) => {
                let outcome = follow.wait_for_result().await?;
                let outcome = adapt_to_follower(facts, cached, outcome)?;
                let role = FetchRole::Follower;
                self.respond_with_fetch_outcome(worker, facts, outcome, None, reason, role)
                    .await
            }
        }
    }

    /// Fetches the object for all requests that wait for this key.
    async fn fetch_as_leader(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
        lead: FetchLeader<CacheKey, FetchOutcome>,
        cached: Option<Arc<CachedObject>>,
        reason: MissReason,
    ) -> Option<ServedResponse> {
        let request = facts.to_fetch_request(worker, cached, &self.settings, &self.loop_token);
        match start_fetch(self.clone(), lead, request).await {
            Ok(FetchResultForLeader::Shared {
                outcome,
                upstream_us,
                // This guard keeps the first bytes in memory until the response has its own reader.
                // The guard is dropped at the end of this match arm.
                first_bytes: _first_bytes,
            }) => {
                let role = FetchRole::Leader;
                self.respond_with_fetch_outcome(worker, facts, outcome, upstream_us, reason, role)
                    .await
            }
            Ok(FetchResultForLeader::Private(reply, UncacheableReason::TooLarge))
                if facts.has_range() =>
            {
                // The fetch requested the whole object, but this client wants only a range. Passing
                // the range request is cheaper than receiving the whole object, so the fetch is
                // abandoned.
                drop(reply);
                Some(Box::pin(self.pass(worker, facts, PassReason::TooLarge)).await)
            }
            Ok(FetchResultForLeader::Private(reply, uncacheable)) => {
                let upstream_us = Some(net::record::micros(reply.elapsed));
                let outcome = CacheOutcome::Miss(reason, Some(uncacheable));
                let response = deliver::relay_response(facts.method, *reply, outcome);
                Some((response, build_summary(outcome, upstream_us, None)))
            }
            Err(_) => None,
        }
    }

    /// Serves a request for a URL whose recent responses were not shareable. The request starts a
    /// fetch if no fetch is in progress, and is passed to the origin otherwise. The request never
    /// waits for another request's fetch.
    ///
    /// Range requests and conditional requests are passed at once. A fetch would request the full
    /// response, which is larger and probably not cacheable.
    pub(super) async fn fetch_uncoalesced(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
    ) -> ServedResponse {
        let key = CacheKey::from(facts.primary_key.as_ref());
        let reason = MissReason::Absent;
        if !facts.is_partial_or_conditional()
            && let LeadOrFollow::Lead(lead) = self.flights.lead_or_join(&key)
            && let Some(served) = self
                .fetch_as_leader(worker, facts, lead, None, reason)
                .await
        {
            return served;
        }
        self.pass(worker, facts, PassReason::Unshareable).await
    }

    /// Responds with the outcome of a fetch.
    async fn respond_with_fetch_outcome(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
        outcome: FetchOutcome,
        upstream_us: Option<u64>,
        reason: MissReason,
        role: FetchRole,
    ) -> Option<ServedResponse> {
        let is_follower = role == FetchRole::Follower;
        let (object, outcome) = match outcome {
            FetchOutcome::Stored(shared) | FetchOutcome::Revalidated(shared)
                if is_follower && !shared.matches_follower(facts.headers) =>
            {
                return None;
            }
            FetchOutcome::Stored(shared) => {
                (shared.object, role.miss_outcome(reason, shared.uncacheable))
            }
            FetchOutcome::Revalidated(shared) => {
                let uncacheable = shared.uncacheable;
                let outcome = match reason {
                    MissReason::Revalidation(reason) => {
                        CacheOutcome::Revalidated(reason, uncacheable)
                    }
                    _ => role.miss_outcome(reason, uncacheable),
                };
                (shared.object, outcome)
            }
            FetchOutcome::StaleOnError(object) => {
                (object, CacheOutcome::Stale(StaleReason::IfError))
            }
            // The reason is a header of the leader's request. The response to another request may
            // be shareable, so the followers coalesce again.
            FetchOutcome::Private(uncacheable)
                if uncacheable.depends_on_request()
                    && !is_unshareable_likewise(facts, uncacheable) =>
            {
                return None;
            }
            FetchOutcome::Private(uncacheable) => {
                let reason = match uncacheable {
                    UncacheableReason::TooLarge => PassReason::TooLarge,
                    _ => PassReason::NotShared,
                };
                return Some(Box::pin(self.pass(worker, facts, reason)).await);
            }
            // Only fetches of blocks have these outcomes. Blocks are fetched under separate keys.
            FetchOutcome::Block(_) | FetchOutcome::ValidatorChanged => return None,
            FetchOutcome::Failed(error) => {
                let outcome = role.miss_outcome(reason, None);
                let response = deliver::error_response(&error, outcome);
                let summary = build_summary(outcome, upstream_us, Some((*error).clone()));
                return Some((response, summary));
            }
        };
        self.deliver_object(worker, facts, &object, outcome, upstream_us)
            .await
    }

    /// Revalidates a stale object without making a client wait.
    pub(super) fn revalidate_in_background(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
        variant_key: Option<CacheKey>,
        cached: &Arc<CachedObject>,
    ) {
        let key = variant_key.unwrap_or_else(|| CacheKey::from(facts.primary_key.as_ref()));
        if let LeadOrFollow::Lead(lead) = self.flights.lead_or_join(&key) {
            let cached = Some(cached.clone());
            let request = facts.to_fetch_request(worker, cached, &self.settings, &self.loop_token);
            drop(start_fetch(self.clone(), lead, request));
        }
    }
}

/// Returns whether the response to this request is probably not shareable for the same reason as
/// the response to the leader's request. If such requests coalesced again, they would wait for each
/// other in vain.
fn is_unshareable_likewise(facts: &RequestFacts<'_>, reason: UncacheableReason) -> bool {
    reason == UncacheableReason::Authorization && facts.headers.contains_key(AUTHORIZATION)
}

/// Adapts the outcome of another request's fetch to the cache directives of this request, which
/// determine whether this request may get a stale object after a failure of the origin. `cached` is
/// the object that this request found. Returns `None` if this request has to look up the cache
/// again.
fn adapt_to_follower(
    facts: &RequestFacts<'_>,
    cached: Option<Arc<CachedObject>>,
    outcome: FetchOutcome,
) -> Option<FetchOutcome> {
    let may_use_stale = |object: &Arc<CachedObject>| {
        allows_stale_on_error(&object.lifetime, object.resident_time(), &facts.directives)
    };
    match &outcome {
        FetchOutcome::StaleOnError(stale) => {
            let is_usable = may_use_stale(stale) && stale.matches_request(facts.headers);
            return is_usable.then_some(outcome);
        }
        FetchOutcome::Failed(_) => {}
        FetchOutcome::Stored(shared) if shared.object.status.is_server_error() => {}
        _ => return Some(outcome),
    }
    let stale = cached.filter(may_use_stale).map(FetchOutcome::StaleOnError);
    Some(stale.unwrap_or(outcome))
}
