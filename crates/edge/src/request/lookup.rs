//! The states `lookup_memory` and `lookup_disk`, and the choice of the next state.

use std::sync::Arc;
use std::time::Instant;

use http::Method;

use super::{ServedResponse, with_local_summary};
use crate::Edge;
use crate::cache_decision::{CacheDecision, decide_cache_use};
use crate::cache_entry::CacheEntry;
use crate::cache_key::CacheKey;
use crate::cache_outcome::{CacheOutcome, PassReason, StaleReason};
use crate::cached_object::CachedObject;
use crate::deliver;
use crate::request_facts::RequestFacts;

/// Maximum number of lookups of one request. A request repeats the lookup if the result of the
/// previous lookup has become unusable.
const LOOKUPS_MAX: usize = 3;

/// The result of [`Edge::lookup_memory`].
struct LookupResult {
    /// Key of the request's variant; absent if the URL has no variants.
    variant_key: Option<CacheKey>,
    found: Option<CacheEntry>,
}

impl Edge {
    /// Serves a request through the cache.
    ///
    /// Each open connection reserves memory for this future. The states that a hit does not reach
    /// are boxed, so that the future stays small.
    pub(crate) async fn serve_through_cache(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
    ) -> ServedResponse {
        // Only `GET` and `HEAD` requests use the cache. Here, the only other method is `OPTIONS`,
        // whose request body is not read.
        if ![Method::GET, Method::HEAD].contains(facts.method) {
            return Box::pin(self.pass(worker, facts, PassReason::Method)).await;
        }
        for _ in 0..LOOKUPS_MAX {
            let LookupResult { variant_key, found } = match self.lookup_memory(facts) {
                lookup if self.is_only_on_disk(facts, &lookup) => {
                    Box::pin(self.lookup_disk(facts, lookup)).await
                }
                lookup => lookup,
            };
            let plan = decide_cache_use(
                facts.method,
                &facts.directives,
                found.as_ref(),
                variant_key.is_some(),
                Instant::now(),
            );
            match plan {
                CacheDecision::RefuseUncached => {
                    return with_local_summary(deliver::refuse_uncached());
                }
                CacheDecision::Pass(reason) => {
                    return Box::pin(self.pass(worker, facts, reason)).await;
                }
                CacheDecision::Fetch(reason) => {
                    let cached = match found {
                        Some(CacheEntry::Object(object)) => Some(object),
                        _ => None,
                    };
                    let fetch = self.fetch_or_join(worker, facts, variant_key, cached, reason);
                    if let Some(served) = Box::pin(fetch).await {
                        return served;
                    }
                }
                CacheDecision::FetchUncoalesced => {
                    return Box::pin(self.fetch_uncoalesced(worker, facts)).await;
                }
                hit => {
                    let Some(CacheEntry::Object(object)) = found else {
                        break;
                    };
                    let outcome = classify_hit(hit, &object);
                    if outcome == CacheOutcome::Stale(StaleReason::WhileRevalidate) {
                        let key = variant_key.clone();
                        self.revalidate_in_background(worker, facts, key, &object);
                    }
                    let served = match object.blocks {
                        None => self.deliver_object_without_blocks(facts, &object, outcome),
                        Some(_) => {
                            let deliver =
                                self.deliver_object(worker, facts, &object, outcome, None);
                            Box::pin(deliver).await
                        }
                    };
                    if let Some(served) = served {
                        let primary = || CacheKey::from(facts.primary_key.as_ref());
                        self.persist_on_second_use(&object, || variant_key.unwrap_or_else(primary));
                        return served;
                    }
                }
            }
        }
        Box::pin(self.pass(worker, facts, PassReason::NotShared)).await
    }

    /// Searches the memory tier for the URL. If the URL has variants, searches for the variant that
    /// the request selects.
    fn lookup_memory(&self, facts: &RequestFacts<'_>) -> LookupResult {
        match self.memory.get(facts.primary_key.as_ref()) {
            Some(CacheEntry::Variants(varies)) => {
                let primary = CacheKey::from(facts.primary_key.as_ref());
                let variant_key = primary.for_variant(&varies.header_names, facts.headers);
                LookupResult {
                    found: self.memory.get(&variant_key),
                    variant_key: Some(variant_key),
                }
            }
            found => LookupResult {
                variant_key: None,
                found,
            },
        }
    }

    /// Returns whether the disk tier has an entry that memory lacks.
    fn is_only_on_disk(&self, facts: &RequestFacts<'_>, lookup: &LookupResult) -> bool {
        let key = lookup.variant_key.as_ref();
        let key = key.map_or(facts.primary_key.as_ref(), CacheKey::as_str);
        lookup.found.is_none() && self.disk.has_entry(key)
    }

    /// Loads the entry from the disk tier and searches memory again. If the entry lists variants,
    /// then loads the variant that the request selects.
    async fn lookup_disk(
        &self,
        facts: &RequestFacts<'_>,
        mut lookup: LookupResult,
    ) -> LookupResult {
        for _ in 0..LOOKUPS_MAX {
            if !self.is_only_on_disk(facts, &lookup) {
                break;
            }
            let key = lookup.variant_key;
            let key = key.unwrap_or_else(|| CacheKey::from(facts.primary_key.as_ref()));
            self.load_from_disk(&key).await;
            lookup = self.lookup_memory(facts);
        }
        lookup
    }
}

fn classify_hit(plan: CacheDecision, object: &CachedObject) -> CacheOutcome {
    match plan {
        CacheDecision::Stale(reason) => CacheOutcome::Stale(reason),
        _ if object.body.disk_file().is_some() => CacheOutcome::DiskHit,
        _ => CacheOutcome::Hit,
    }
}
