//! The data of a client's request that a fetch still needs if the client disconnects.

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
    /// Headers that the client sent. They select the variant.
    pub client_headers: HeaderMap,
    /// Headers that are sent to the origin. A revalidation or the fetch of a block adds further
    /// headers.
    pub origin_headers: HeaderMap,
    /// Host to send instead of the host in the origin's URL.
    pub host: Option<HeaderValue>,
    pub directives: CacheDirectives,
    /// The cached object to revalidate.
    pub cached: Option<Arc<CachedObject>>,
    pub policy: FreshnessPolicy,
    /// Receives the origin's interim responses.
    pub on_interim: Option<InterimHandler>,
    /// The trace span of the fetch, if the request that caused the fetch is traced. The span ends
    /// when the body has been received.
    pub span: Option<OpenSpan>,
}

impl FetchRequest {
    /// Returns the trace context of the span. The spans of waiting requests are linked to this
    /// span.
    pub fn span_context(&self) -> Option<TraceContext> {
        self.span.as_ref()?.context()
    }

    /// Builds the request to the origin with `headers`.
    pub fn to_origin_request(&self, headers: HeaderMap) -> OriginRequest<'_> {
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
