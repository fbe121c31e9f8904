//! Fetches from the origin. Many requests may share one fetch.
//!
//! A fetch runs in its own task. It therefore continues if the client that caused the fetch
//! disconnects. The fetch reports its outcome once, when the response head has arrived, and then
//! receives the body. Only a complete body is stored.

pub mod block;
mod body;
mod in_flight_bytes;
mod outcome;
mod request;
mod revalidate;
mod storage;

pub use in_flight_bytes::InFlightBytes;
pub use outcome::{FetchOutcome, FetchResultForLeader, SharedResponse};
pub use request::FetchRequest;

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use store::cache::FetchLeader;
use store::planted_bugs::is_bug_planted;
use tokio::sync::oneshot;
use upstream::UpstreamResponse;

use crate::Edge;
use crate::block_layout::{BlockLayout, choose_cache_block_bytes, strong_etag};
use crate::cache_key::{CacheKey, selecting_value};
use crate::cache_outcome::UncacheableReason;
use crate::cached_object::{CachedObject, vary_values};
use crate::freshness::{
    self, CacheDirectives, FreshnessLifetime, ReuseDecision, StorageFacts, allows_stale_on_error,
};
use crate::headers;
use crate::origins::OriginResponse;

/// Maximum total length, in bytes, of the request header values that select a variant. The values
/// are part of the variant's cache key, so the limit bounds the size of a key.
const VARIANT_BYTES_MAX: usize = 2048;

/// Starts a fetch. The fetch continues if the receiver is dropped.
pub fn start_fetch(
    edge: Arc<Edge>,
    mut lead: FetchLeader<CacheKey, FetchOutcome>,
    request: FetchRequest,
) -> oneshot::Receiver<FetchResultForLeader> {
    lead.set_span(request.span_context());
    let (reply_sender, reply) = oneshot::channel();
    let hold = edge.shutdown.hold_shutdown();
    tokio::spawn(async move {
        edge.run_fetch(lead, request, reply_sender).await;
        drop(hold);
    });
    reply
}

impl Edge {
    /// Runs one fetch, from the request to the last byte of the response.
    async fn run_fetch(
        &self,
        mut lead: FetchLeader<CacheKey, FetchOutcome>,
        mut request: FetchRequest,
        leader: oneshot::Sender<FetchResultForLeader>,
    ) {
        let cached = request.cached.clone();
        let stale = cached.filter(|cached| {
            allows_stale_on_error(
                &cached.lifetime,
                cached.resident_time(),
                &request.directives,
            )
        });
        let reply = match (self.revalidate_or_fetch(&mut request).await, stale) {
            (Err(_), Some(stale)) => {
                let outcome = FetchOutcome::StaleOnError(stale);
                return publish_outcome(&lead, leader, outcome, None);
            }
            (Err(_), None) if is_bug_planted("failure-not-reported") => {
                return std::future::pending().await;
            }
            (Err(error), None) => {
                let outcome = FetchOutcome::Failed(Arc::new(error));
                return publish_outcome(&lead, leader, outcome, None);
            }
            (Ok(reply), Some(stale)) if reply.response.status.is_server_error() => {
                let outcome = FetchOutcome::StaleOnError(stale);
                return publish_outcome(&lead, leader, outcome, Some(upstream_us(&reply)));
            }
            (Ok(reply), _) => reply,
        };
        let upstream_us = Some(upstream_us(&reply));
        if reply.response.status == StatusCode::NOT_MODIFIED {
            let outcome = self.apply_304(&lead, &request, reply);
            return publish_outcome(&lead, leader, outcome, upstream_us);
        }
        match self.judge_reply(&request, &reply) {
            Ok((lifetime, None)) => {
                let object = Arc::new(new_object(&request, &reply, lifetime));
                self.announce_variant(&mut lead, &request, &object);
                let outcome = FetchOutcome::Stored(self.share_object(&request, object.clone()));
                publish_outcome(&lead, leader, outcome, upstream_us);
                let received = self.receive_body(&mut lead, &object.body, reply.response, None);
                if received.await {
                    self.store_object(&lead, &request, &object);
                }
            }
            Ok((lifetime, Some(etag))) => {
                // The response is dropped, which closes its connection. The body will be fetched in
                // blocks instead.
                let object = self.store_block_object(&mut lead, &request, &reply, lifetime, etag);
                drop(reply);
                let outcome = FetchOutcome::Stored(self.share_object(&request, object));
                publish_outcome(&lead, leader, outcome, upstream_us);
            }
            // If the followers did not share this error response, each of them would repeat the
            // request to a failing origin.
            Err(reason) if is_shareable_error(&reply, reason) => {
                let shared = self.share_error(&request, &reply, reason);
                let object = shared.object.clone();
                let outcome = FetchOutcome::Stored(shared);
                publish_outcome(&lead, leader, outcome, upstream_us);
                self.receive_body(&mut lead, &object.body, reply.response, None)
                    .await;
            }
            Err(reason) => {
                // An error response may be specific to this client's headers, so the URL is not
                // marked as unshareable.
                if !has_error_status(&reply) {
                    self.mark_unshareable_for(&request.primary_key, reason);
                }
                // A follower that cannot use the outcome must not join the same fetch again.
                lead.refuse_new_followers();
                lead.publish_result(FetchOutcome::Private(reason));
                let _ = leader.send(FetchResultForLeader::Private(Box::new(reply), reason));
            }
        }
    }

    /// Returns the values of all forwarded request headers except the request id, which is
    /// different in each request.
    fn cacheable_request_header_values(
        &self,
        client_headers: &HeaderMap,
    ) -> Arc<[(HeaderName, String)]> {
        headers::cacheable_request_header_names(&self.settings.forward)
            .chain([&headers::CDN_LOOP])
            .map(|name| (name.clone(), selecting_value(client_headers, name)))
            .collect()
    }

    /// Returns a stored object as the response for the followers. If the object must be validated
    /// before each use, it may depend on any forwarded header, such as a cookie. Only requests with
    /// equal headers then share it (RFC 9111 sections 4.2.4 and 5.2.2.4).
    fn share_object(&self, request: &FetchRequest, object: Arc<CachedObject>) -> SharedResponse {
        let no_directives = CacheDirectives::default();
        let reuse = freshness::judge_reuse(&object.lifetime, Duration::ZERO, &no_directives);
        let needs_validation = matches!(reuse, ReuseDecision::Revalidate(_));
        SharedResponse {
            object,
            uncacheable: None,
            required_headers: needs_validation
                .then(|| self.cacheable_request_header_values(&request.client_headers)),
        }
    }

    /// Returns an error response as the response for the followers. A 4xx may depend on the headers
    /// of the request, so only requests with equal headers share a 4xx.
    fn share_error(
        &self,
        request: &FetchRequest,
        reply: &OriginResponse,
        reason: UncacheableReason,
    ) -> SharedResponse {
        let is_client_error = reply.response.status.is_client_error();
        SharedResponse {
            object: Arc::new(new_object(request, reply, DELIVERY_ONLY)),
            uncacheable: Some(reason),
            required_headers: is_client_error
                .then(|| self.cacheable_request_header_values(&request.client_headers)),
        }
    }

    /// Decides whether the response may be stored, and for how long it is fresh. If a validator is
    /// returned, the body has to be stored in blocks.
    fn judge_reply(
        &self,
        request: &FetchRequest,
        reply: &OriginResponse,
    ) -> Result<(FreshnessLifetime, Option<Box<str>>), UncacheableReason> {
        let response = &reply.response;
        let lifetime = judge_head(request, reply, response.status, &response.headers)?;
        let is_large = response
            .remaining()
            .is_some_and(|len| len > self.memory.object_bytes_max());
        match strong_etag(&response.headers) {
            _ if !is_large => Ok((lifetime, None)),
            Some(etag) if response.status == StatusCode::OK => Ok((lifetime, Some(etag))),
            _ => Err(UncacheableReason::TooLarge),
        }
    }

    /// Stores the head of an object whose body is stored in blocks.
    fn store_block_object(
        &self,
        lead: &mut FetchLeader<CacheKey, FetchOutcome>,
        request: &FetchRequest,
        reply: &OriginResponse,
        lifetime: FreshnessLifetime,
        etag: Box<str>,
    ) -> Arc<CachedObject> {
        let mut object = new_object(request, reply, lifetime);
        let object_key =
            self.register_variant_key(&request.primary_key, &object, &request.client_headers);
        object.blocks = Some(BlockLayout {
            object_key,
            etag,
            block_bytes: choose_cache_block_bytes(self.memory.object_bytes_max()),
        });
        let object = Arc::new(object);
        self.announce_variant(lead, request, &object);
        self.store_object(lead, request, &object);
        // Removed only now, because `store_object` looks at the entry that the object replaces.
        if let Some(replaced) = &request.cached {
            self.remove_object_and_blocks(replaced);
        }
        object
    }
}

/// Reports the outcome to the followers, and to the leader if its client is still connected.
fn publish_outcome(
    lead: &FetchLeader<CacheKey, FetchOutcome>,
    leader: oneshot::Sender<FetchResultForLeader>,
    outcome: FetchOutcome,
    upstream_us: Option<u64>,
) {
    let first_bytes = match &outcome {
        FetchOutcome::Stored(shared) => shared.object.body.growing.open_reader(0..u64::MAX),
        _ => {
            // A follower that cannot use the outcome must not join the same fetch again. Only
            // `Stored` has a body that requests may still join.
            lead.refuse_new_followers();
            None
        }
    };
    lead.publish_result(outcome.for_followers());
    let _ = leader.send(FetchResultForLeader::Shared {
        outcome,
        upstream_us,
        first_bytes,
    });
}

/// Decides whether a response with this status and these headers may be stored, and for how long it
/// is fresh. After a 304, these are the status and the merged headers of the cached object.
fn judge_head(
    request: &FetchRequest,
    reply: &OriginResponse,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<FreshnessLifetime, UncacheableReason> {
    let exchange = storage_facts(request, reply);
    let at = reply.received_at;
    let lifetime = freshness::judge_storage(&exchange, status, headers, at, &request.policy)?;
    if has_long_variant(headers, &request.client_headers) {
        return Err(UncacheableReason::VaryLong);
    }
    Ok(lifetime)
}

/// Returns whether the header values that select a variant are too long for a cache key.
fn has_long_variant(headers: &HeaderMap, client_headers: &HeaderMap) -> bool {
    let values = vary_values(headers, client_headers).into_iter();
    values.map(|(_, value)| value.len()).sum::<usize>() > VARIANT_BYTES_MAX
}

fn storage_facts<'a>(request: &FetchRequest, reply: &OriginResponse) -> StorageFacts<'a> {
    StorageFacts {
        method: &Method::GET,
        has_authorization: request.client_headers.contains_key(header::AUTHORIZATION),
        has_cookies: request.client_headers.contains_key(header::COOKIE),
        delay: reply.elapsed,
    }
}

/// Lifetime of an object that is delivered to the waiting requests but not stored.
const DELIVERY_ONLY: FreshnessLifetime = FreshnessLifetime {
    fresh: Duration::ZERO,
    source: freshness::LifetimeSource::Nothing,
    age: Duration::ZERO,
    no_cache: true,
    must_revalidate: true,
    stale_while_revalidate: Duration::ZERO,
    stale_if_error: Duration::ZERO,
};

fn has_error_status(reply: &OriginResponse) -> bool {
    let status = reply.response.status;
    status.is_client_error() || status.is_server_error()
}

/// Returns whether the response is an error response that waiting requests may share.
fn is_shareable_error(reply: &OriginResponse, reason: UncacheableReason) -> bool {
    has_error_status(reply)
        && !matches!(
            reason,
            UncacheableReason::Private | UncacheableReason::SetCookie | UncacheableReason::TooLarge
        )
        && !reply.response.headers.contains_key(header::SET_COOKIE)
}

fn new_object(
    request: &FetchRequest,
    reply: &OriginResponse,
    lifetime: FreshnessLifetime,
) -> CachedObject {
    let UpstreamResponse {
        status, headers, ..
    } = &reply.response;
    CachedObject::new(
        *status,
        headers,
        lifetime,
        reply.response.remaining(),
        &request.client_headers,
    )
}

fn upstream_us(reply: &OriginResponse) -> u64 {
    net::record::micros(reply.elapsed)
}
