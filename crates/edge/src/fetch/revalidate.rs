//! Conditional requests to the origin, and the update of the objects that a 304 confirms (RFC 9111
//! section 4.3).

use std::sync::Arc;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use net::Error;
use net::conditional::Validators;
use store::cache::FetchLeader;
use store::planted_bugs::is_bug_planted;

use super::{FetchOutcome, FetchRequest, SharedResponse, judge_head};
use crate::Edge;
use crate::block_layout::BlockLayout;
use crate::cache_key::CacheKey;
use crate::cached_object::CachedObject;
use crate::origins::OriginResponse;

impl Edge {
    /// Sends the request to the origin, as a conditional request if there is a cached object.
    ///
    /// A 304 whose entity tag differs from the object's entity tag does not confirm the cached
    /// object. The request is then repeated without conditions, and `request.cached` is cleared.
    pub(super) async fn revalidate_or_fetch(
        &self,
        request: &mut FetchRequest,
    ) -> Result<OriginResponse, Error> {
        let mut headers = request.origin_headers.clone();
        if let Some(cached) = &request.cached {
            add_conditions(&mut headers, cached);
        }
        let reply = self
            .origins
            .send_repeatable(request.to_origin_request(headers))
            .await?;
        let is_304 = reply.response.status == StatusCode::NOT_MODIFIED;
        let cached = request.cached.as_ref();
        if !is_304 || cached.is_none_or(|cached| confirms_object(&reply, cached)) {
            return Ok(reply);
        }
        request.cached = None;
        let headers = request.origin_headers.clone();
        self.origins
            .send_repeatable(request.to_origin_request(headers))
            .await
    }

    /// Merges the headers of a 304 into the cached object, and stores the result if this is still
    /// allowed.
    pub(super) fn apply_304(
        &self,
        lead: &FetchLeader<CacheKey, FetchOutcome>,
        request: &FetchRequest,
        reply: OriginResponse,
    ) -> FetchOutcome {
        let Some(cached) = &request.cached else {
            let what = "the origin sent 304 to a request without conditions";
            return FetchOutcome::Failed(Arc::new(Error::new_upstream_error(
                StatusCode::BAD_GATEWAY,
                what,
            )));
        };
        let new_headers = &reply.response.headers;
        let client_headers = &request.client_headers;
        let mut merged = cached.merge_304(new_headers, cached.lifetime, client_headers);
        // The merged headers determine whether the object may be stored, and how long it is fresh
        // (RFC 9111 section 4.3.4). Objects do not store Age, so the Age of the 304 is added for
        // this decision.
        let mut judged = merged.headers.clone();
        if let Some(age) = new_headers.get(header::AGE) {
            judged.insert(header::AGE, age.clone());
        }
        match judge_head(request, &reply, merged.status, &judged) {
            Ok(lifetime) => {
                merged.lifetime = lifetime;
                // A new Vary in the 304 changes the object's key and the keys of its blocks.
                // Lookups no longer find the blocks that are stored under the old keys, so these
                // blocks are evicted later.
                if let Some(blocks) = merged.blocks.take() {
                    let object_key =
                        self.register_variant_key(&request.primary_key, &merged, client_headers);
                    merged.blocks = Some(BlockLayout {
                        object_key,
                        ..blocks
                    });
                }
                let merged = Arc::new(merged);
                self.store_object(lead, request, &merged);
                FetchOutcome::Revalidated(self.share_object(request, merged))
            }
            // The headers of the 304 forbid further storage of the object. The leader still gets
            // the object. If the reason is a header of the leader's request, the cached object stays
            // valid for other requests.
            Err(reason) => {
                if !reason.depends_on_request() {
                    let primary_key = &request.primary_key;
                    let key = self.register_variant_key(primary_key, cached, client_headers);
                    self.remove_cached(&key);
                }
                FetchOutcome::Revalidated(SharedResponse {
                    object: Arc::new(merged),
                    uncacheable: Some(reason),
                    required_headers: None,
                })
            }
        }
    }
}

/// Adds conditions with the validators of the cached object (RFC 9111 section 4.3.1).
fn add_conditions(headers: &mut HeaderMap, cached: &CachedObject) {
    for (from, to) in [
        (header::ETAG, header::IF_NONE_MATCH),
        (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE),
    ] {
        if let Some(value) = cached.headers.get(from) {
            headers.insert(to, value.clone());
        }
    }
}

/// Returns whether a 304 confirms the cached object (RFC 9111 section 4.3.4). The 304 must contain
/// the object's entity tag, or no entity tag.
fn confirms_object(reply: &OriginResponse, cached: &CachedObject) -> bool {
    fn opaque_tag(tag: &HeaderValue) -> &[u8] {
        let bytes = tag.as_bytes();
        bytes.strip_prefix(b"W/").unwrap_or(bytes)
    }
    let new_tag = Validators::from_headers(&reply.response.headers).etag;
    if is_bug_planted("any-304-confirms") {
        return true;
    }
    match (new_tag, &cached.validators.etag) {
        (Some(new), Some(old)) => opaque_tag(&new) == opaque_tag(old),
        (Some(_), None) => false,
        (None, _) => true,
    }
}
