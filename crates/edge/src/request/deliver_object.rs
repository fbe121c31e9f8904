//! The state `deliver_object`: a response from a cached or growing object.

use std::sync::Arc;

use super::{ServedResponse, build_summary};
use crate::Edge;
use crate::blocks::{BlockBody, BlockError};
use crate::cache_outcome::{CacheOutcome, PassReason};
use crate::cached_object::CachedObject;
use crate::deliver;
use crate::request_facts::RequestFacts;

impl Edge {
    /// Responds with an object. Returns `None` if the object has become unusable. Its validator may
    /// have changed, or its first bytes may have been discarded because the object is too large to
    /// store.
    pub(super) async fn deliver_object(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
        object: &Arc<CachedObject>,
        outcome: CacheOutcome,
        upstream_us: Option<u64>,
    ) -> Option<ServedResponse> {
        let mut blocks = None;
        if object.blocks.is_some() {
            match Box::pin(self.open_block_body(worker, facts, object)).await {
                Ok(opened) => blocks = opened,
                Err(BlockError::ValidatorChanged) => return None,
                Err(BlockError::Refused) => {
                    let reason = PassReason::NotShared;
                    return Some(Box::pin(self.pass(worker, facts, reason)).await);
                }
                Err(BlockError::OriginFailed(error)) => {
                    let response = deliver::error_response(&error, outcome);
                    let summary = build_summary(outcome, upstream_us, Some((*error).clone()));
                    return Some((response, summary));
                }
            }
        }
        build_object_response(facts, object, outcome, upstream_us, blocks)
    }

    /// Responds with an object that is not stored in blocks.
    pub(super) fn deliver_object_without_blocks(
        &self,
        facts: &RequestFacts<'_>,
        object: &Arc<CachedObject>,
        outcome: CacheOutcome,
    ) -> Option<ServedResponse> {
        build_object_response(facts, object, outcome, None, None)
    }

    /// Gets the first block that the response needs. Returns `None` if the response has no body.
    async fn open_block_body(
        self: &Arc<Edge>,
        worker: usize,
        facts: &RequestFacts<'_>,
        object: &Arc<CachedObject>,
    ) -> Result<Option<BlockBody>, BlockError> {
        let first_byte = deliver::requested_body_start(facts.method, facts.headers, object);
        let (Some(layout), Some(first_byte)) = (&object.blocks, first_byte) else {
            return Ok(None);
        };
        let request =
            Arc::new(facts.to_fetch_request(worker, None, &self.settings, &self.loop_token));
        let n = first_byte / layout.block_bytes;
        let first = self.get_or_fetch_block(&request, object, n).await?;
        Ok(Some(BlockBody {
            edge: self.clone(),
            request,
            object: object.clone(),
            first: Some(first),
        }))
    }
}

fn build_object_response(
    facts: &RequestFacts<'_>,
    object: &Arc<CachedObject>,
    outcome: CacheOutcome,
    upstream_us: Option<u64>,
    blocks: Option<BlockBody>,
) -> Option<ServedResponse> {
    let (method, headers) = (facts.method, facts.headers);
    let response = deliver::respond_with_object(method, headers, object, outcome, blocks)?;
    Some((response, build_summary(outcome, upstream_us, None)))
}
