//! The part of a client's request that a fetch needs after the client may have disconnected.

use std::sync::Arc;

use http::Method;
use http::header::{HeaderMap, HeaderValue};
use trace::{OpenSpan, TraceContext};
use upstream::InterimHandler;

use crate::cache_key::CacheKey;
use crate::cached_object::CachedObject;
use crate::freshness::{CacheDirectives, FreshnessPolicy};
use crate::origins::OriginRequest;

/// A request to the origin whose response may be cached.
pub struct FetchRequest {
    /// Index of the worker whose upstream connections are used.
    pub worker: usize,
    /// Name of the origin pool; empty for the default pool.
    pub pool: Arc<str>,
    /// Cache key without the lines of a variant.
    pub primary_key: CacheKey,
    pub target: String,
    /// Headers as the client sent them; they select the variant.
    pub client_headers: HeaderMap,
    /// Headers as they are sent to the origin.
    pub origin_headers: HeaderMap,
    /// Host to send in place of the origin's own.
    pub host: Option<HeaderValue>,
    pub directives: CacheDirectives,
    /// The cached object to revalidate.
    pub cached: Option<Arc<CachedObject>>,
    pub policy: FreshnessPolicy,
    /// Receives the origin's interim responses.
    pub on_interim: Option<InterimHandler>,
    /// The span of the fetch, if the request that caused it is traced. It ends with the body.
    pub span: Option<OpenSpan>,
}

impl FetchRequest {
    /// Returns the identity of the span, for the requests that wait for the fetch.
    pub fn span_context(&self) -> Option<TraceContext> {
        self.span.as_ref()?.context()
    }

    /// Builds the request to the origin with these headers.
    pub fn to_origin(&self, headers: HeaderMap) -> OriginRequest<'_> {
        OriginRequest {
            worker: self.worker,
            pool: &self.pool,
            method: &Method::GET,
            target: &self.target,
            headers,
            host: self.host.as_ref(),
            on_interim: self.on_interim.clone(),
        }
    }
}
