//! The state of the running edge. The methods that process a request are in other files.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use net::viewers::CmcdCollector;
use net::{Body, Error, OverloadManager, Shutdown};
use store::Arena;
use store::cache::{FetchTable, MemoryCache};

use crate::apply_rules::RuleApplier;
use crate::cache_entry::CacheEntry;
use crate::cache_key::CacheKey;
use crate::config::EdgeSettings;
use crate::disk::DiskCache;
use crate::fetch::{FetchOutcome, InFlightBytes};
use crate::origins::OriginClient;
use crate::request_facts;
use crate::telemetry::RequestTelemetry;

/// The edge with one version of the settings. A reload builds another `Edge` that shares the cache,
/// the fetches and the counters.
pub(crate) struct Edge {
    pub(crate) settings: EdgeSettings,
    pub(crate) memory: Arc<MemoryCache<CacheKey, CacheEntry>>,
    pub(crate) flights: FetchTable<CacheKey, FetchOutcome>,
    pub(crate) in_flight_bytes: InFlightBytes,
    pub(crate) arena: Arc<Arena>,
    pub(crate) disk: Arc<DiskCache>,
    pub(crate) origins: OriginClient,
    pub(crate) telemetry: Arc<RequestTelemetry>,
    pub(crate) rules: RuleApplier,
    /// The CMCD collector, if it is enabled.
    pub(crate) collector: Option<Arc<CmcdCollector>>,
    pub(crate) shutdown: Shutdown,
    pub(crate) overload: OverloadManager,
    /// Name of this process in `CDN-Loop`.
    pub(crate) loop_token: HeaderValue,
}

impl Edge {
    /// Responds to `/readyz`. The status is 503 while the process drains without a successor.
    pub(crate) fn ready_response(&self) -> Response<Body> {
        if self.shutdown.is_ready() {
            return request_facts::text_response("ready\n");
        }
        let error = Error {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..Error::new_internal_error("shutting down")
        };
        error.to_response()
    }

    /// Responds to `/metrics` in the format that the request's headers prefer.
    pub(crate) fn metrics_response(&self, headers: &HeaderMap) -> Response<Body> {
        self.disk.update_metrics();
        let cached = (self.memory.stored_bytes(), self.memory.len());
        self.telemetry
            .render_metrics(headers, cached, &self.flights)
    }

    /// Returns the number of requests for each cache result.
    pub(crate) fn request_counts_by_result(&self) -> BTreeMap<&'static str, u64> {
        self.telemetry.request_counts_by_result()
    }
}
