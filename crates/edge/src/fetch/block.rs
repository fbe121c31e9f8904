//! Range requests to the origin, each for one block of a large object.

use std::sync::Arc;

use http::StatusCode;
use http::header::{self, HeaderValue};
use net::{Error, range};
use store::cache::FetchLeader;
use store::planted_bugs::is_bug_planted;
use tokio::sync::oneshot;

use super::{FetchOutcome, FetchRequest};
use crate::Edge;
use crate::cache_entry::CacheEntry;
use crate::cache_key::CacheKey;
use crate::cache_outcome::UncacheableReason;
use crate::cached_object::CachedObject;
use crate::origins::OriginResponse;

/// The response to a block's range request, with the block's key and length.
type OriginBlockResponse = (OriginResponse, CacheKey, u64);

/// Starts the fetch of block `n`. The fetch continues if the receiver is dropped.
pub fn start_block_fetch(
    edge: &Arc<Edge>,
    mut lead: FetchLeader<CacheKey, FetchOutcome>,
    request: &Arc<FetchRequest>,
    object: &Arc<CachedObject>,
    n: u64,
) -> oneshot::Receiver<FetchOutcome> {
    lead.set_span(request.span_context());
    let (outcome_sender, outcome) = oneshot::channel();
    let hold = edge.shutdown.hold_shutdown();
    let (edge, request, object) = (edge.clone(), request.clone(), object.clone());
    tokio::spawn(async move {
        edge.run_block_fetch(lead, &request, &object, n, outcome_sender)
            .await;
        drop(hold);
    });
    outcome
}

impl Edge {
    async fn run_block_fetch(
        &self,
        mut lead: FetchLeader<CacheKey, FetchOutcome>,
        request: &FetchRequest,
        object: &Arc<CachedObject>,
        n: u64,
        leader: oneshot::Sender<FetchOutcome>,
    ) {
        let reply = self.request_block(request, object, n).await;
        let outcome = match &reply {
            Ok(_) => FetchOutcome::Block(Arc::default()),
            Err(outcome) => outcome.clone(),
        };
        if let FetchOutcome::Private(_) = outcome {
            // The followers repeat the request with their own headers. They must not join the same
            // fetch again.
            lead.refuse_new_followers();
        }
        lead.publish_result(outcome.clone());
        if let FetchOutcome::ValidatorChanged = outcome {
            self.remove_object_and_blocks(object);
        }
        // The leader may have disconnected. The followers have already received the outcome.
        let _ = leader.send(outcome.clone());
        let (Ok((reply, key, len)), FetchOutcome::Block(block)) = (reply, outcome) else {
            return;
        };
        let received = self.receive_body(&mut lead, &block, reply.response, Some(len));
        if received.await && !lead.is_purged() {
            self.insert_into_memory(key.clone(), CacheEntry::Block(block));
            if lead.is_purged() {
                self.remove_cached(&key);
            }
        }
    }

    /// Requests the block's range from the origin. Checks that the response contains exactly this
    /// range and the object's entity tag.
    async fn request_block(
        &self,
        request: &FetchRequest,
        object: &CachedObject,
        n: u64,
    ) -> Result<OriginBlockResponse, FetchOutcome> {
        let (Some(blocks), Some(len)) = (&object.blocks, object.declared_len) else {
            return Err(FetchOutcome::ValidatorChanged);
        };
        let wanted = blocks.block_range(n, len);
        let last = wanted.end.saturating_sub(1);
        let mut headers = request.origin_headers.clone();
        let value = HeaderValue::try_from(format!("bytes={}-{last}", wanted.start));
        let etag = HeaderValue::from_str(&blocks.etag);
        let (Ok(value), Ok(etag)) = (value, etag) else {
            return Err(FetchOutcome::ValidatorChanged);
        };
        headers.insert(header::RANGE, value);
        if !is_bug_planted("blocks-of-any-version") {
            headers.insert(header::IF_RANGE, etag.clone());
        }
        let sent = self
            .origins
            .send_repeatable(request.to_origin_request(headers));
        let reply = sent
            .await
            .map_err(|error| FetchOutcome::Failed(Arc::new(error)))?;
        let header = |name| reply.response.headers.get(name);
        let same_range = header(header::CONTENT_RANGE) == Some(&range::content_range(&wanted, len));
        let same_tag =
            header(header::ETAG) == Some(&etag) || is_bug_planted("blocks-of-any-version");
        let has_tag = header(header::ETAG).is_some();
        match reply.response.status {
            StatusCode::PARTIAL_CONTENT if same_range && same_tag => {
                Ok((reply, blocks.block_key(n), wanted.end - wanted.start))
            }
            status if status.is_server_error() => {
                let what = format_args!("the origin sent {status} for a byte range");
                let error = Error::new_upstream_error(StatusCode::BAD_GATEWAY, what);
                Err(FetchOutcome::Failed(Arc::new(error)))
            }
            // The origin ignored the range, or sent a part without its entity tag. The object's key
            // is marked as unshareable, so that later requests for the object bypass the cache.
            // Otherwise, the origin would get useless requests for each block.
            status @ (StatusCode::OK
            | StatusCode::PARTIAL_CONTENT
            | StatusCode::RANGE_NOT_SATISFIABLE)
                if same_tag || (status == StatusCode::PARTIAL_CONTENT && !has_tag) =>
            {
                self.mark_unshareable(&blocks.object_key, true);
                Err(FetchOutcome::ValidatorChanged)
            }
            StatusCode::OK
            | StatusCode::PARTIAL_CONTENT
            | StatusCode::NOT_FOUND
            | StatusCode::GONE
            | StatusCode::RANGE_NOT_SATISFIABLE => Err(FetchOutcome::ValidatorChanged),
            // The headers of this client may be the reason, for example invalid credentials. The
            // status says nothing about the object.
            _ => Err(FetchOutcome::Private(UncacheableReason::Status)),
        }
    }
}
