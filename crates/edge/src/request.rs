//! The states of a request, from its head to its response.
//!
//! `handle_request` → `serve_with_rules` → `serve_through_cache` (`lookup_memory`, `lookup_disk`, then the
//! plan) → `fetch_or_join` → `fetch_as_leader` → `respond_with_fetch_outcome` → `deliver_object`. A
//! request that cannot use the cache continues with `fetch_uncoalesced`, `pass` or
//! `pass_with_body`.

mod cache_miss;
mod deliver_object;
mod lookup;
mod pass;

use std::sync::Arc;

use http::header::{CACHE_CONTROL, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use net::body::Incoming;
use net::viewers::collector_discovery_response;
use net::{Body, Conn, Error};

use crate::Edge;
use crate::cache_outcome::{CacheOutcome, PassReason};
use crate::deliver;
use crate::request_facts::{self, LocalRequest, RequestFacts};
use crate::telemetry::{PendingRecord, RequestSummary};

/// A response with the facts for its access record.
pub(crate) type ServedResponse = (Response<Body>, RequestSummary);

impl Edge {
    /// Serves one request and records it.
    pub(crate) fn handle_request(
        self: Arc<Edge>,
        worker: usize,
        request: Request<Incoming>,
        conn: Conn,
    ) -> impl Future<Output = Response<Body>> {
        // Splits the request before the future is created. Otherwise, the future would reserve
        // memory for the request and for its parts.
        let (parts, mut body) = request.into_parts();
        async move {
            self.serve_and_record(worker, &parts, &mut body, &conn)
                .await
        }
    }

    async fn serve_and_record(
        self: &Arc<Edge>,
        worker: usize,
        parts: &Parts,
        body: &mut Incoming,
        conn: &Conn,
    ) -> Response<Body> {
        let pending = self.telemetry.start_request(parts, conn);
        // `facts` is only borrowed below, because a move would make the future larger.
        let mut facts =
            RequestFacts::from_parts(parts, &self.settings, &self.loop_token, conn.client());
        if let Ok(facts) = &mut facts {
            facts.connection = Some(conn);
        }
        let (mut response, mut summary) = match &mut facts {
            Ok(facts) => match pending.trace_of_request() {
                None => {
                    self.serve_with_rules(worker, facts, body, &pending, conn)
                        .await
                }
                Some(trace) => {
                    let served = self.serve_with_rules(worker, facts, body, &pending, conn);
                    Box::pin(trace::run_with_trace(trace.clone(), served)).await
                }
            },
            Err(LocalRequest::Health) => with_local_summary(request_facts::text_response("ok\n")),
            Err(LocalRequest::Ready) => with_local_summary(self.ready_response()),
            Err(LocalRequest::Metrics) => with_local_summary(self.metrics_response(&parts.headers)),
            Err(LocalRequest::Collector) => {
                Box::pin(self.serve_cmcd_collector(parts, std::mem::take(body), conn)).await
            }
            Err(LocalRequest::Rejected(response)) => with_local_summary(std::mem::take(response)),
        };
        if let Err(error) = conn.reserve_send_memory(&mut response) {
            response = deliver::error_response(&error, summary.outcome);
            summary.error = Some(error);
        }
        if summary.error.is_some() {
            // Without this header, a player's script sees a network error instead of the status.
            net::headers::allow_any_origin(response.headers_mut());
        }
        self.telemetry
            .finish_request(pending, &mut response, summary);
        response
    }

    /// Responds to a request for the CMCD collector.
    async fn serve_cmcd_collector(
        &self,
        parts: &Parts,
        body: Incoming,
        conn: &Conn,
    ) -> ServedResponse {
        let Some(collector) = &self.collector else {
            return with_local_summary(collector_discovery_response(false));
        };
        let result = collector
            .respond_to_event_request(&parts.method, &parts.headers, body, conn)
            .await;
        match result {
            Ok(response) => with_local_summary(response),
            Err(error) => {
                let response = deliver::error_response(&error, CacheOutcome::Local);
                (
                    response,
                    build_summary(CacheOutcome::Local, None, Some(error)),
                )
            }
        }
    }

    /// Evaluates the rules for requests, serves the request, and applies the rule for the response.
    async fn serve_with_rules(
        self: &Arc<Edge>,
        worker: usize,
        facts: &mut RequestFacts<'_>,
        body: &mut Incoming,
        pending: &PendingRecord,
        conn: &Conn,
    ) -> ServedResponse {
        let cmcd = self.rules.parse_cmcd(facts);
        if let Some(collector) = &self.collector {
            let path = facts.target.split('?').next().unwrap_or_default();
            collector.collect_request(&cmcd, path, conn);
        }
        let actions = self.rules.request_actions(facts, &cmcd, conn.client());
        if let Some(delay) = actions.delay {
            Box::pin(tokio::time::sleep(delay)).await;
        }
        facts.ttl = actions.ttl;
        if actions.ignore_client_no_cache {
            facts.directives.ignore_revalidation();
        }
        actions
            .pool
            .into_iter()
            .for_each(|pool| facts.use_pool(pool));
        let (mut response, mut summary) = if let Some(status) = actions.deny {
            deny_request(status)
        } else if facts.has_unsafe_method() {
            Box::pin(self.pass_with_body(worker, facts, std::mem::take(body))).await
        } else if actions.pass {
            Box::pin(self.pass(worker, facts, PassReason::Rule)).await
        } else if facts.bypasses_cache_for_cookies(&self.settings) {
            Box::pin(self.pass(worker, facts, PassReason::Cookie)).await
        } else {
            self.serve_through_cache(worker, facts).await
        };
        let outcome = summary.outcome;
        summary.rule = self
            .rules
            .apply_to_response(facts, &cmcd, conn, &mut response, outcome);
        self.rules
            .sample_tcp_during_response(pending, conn, &mut response);
        summary.cmcd = cmcd.to_record();
        (response, summary)
    }
}

/// Responds to a request that a rule denies. The rule may depend on the client or on any header, so
/// caches must not store the response, whatever its status is.
fn deny_request(status: StatusCode) -> ServedResponse {
    let error = Error::new_client_error(status, "denied by a rule");
    let mut response = deliver::error_response(&error, CacheOutcome::Denied);
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    let summary = build_summary(CacheOutcome::Denied, None, Some(error));
    (response, summary)
}

fn with_local_summary(response: Response<Body>) -> ServedResponse {
    (response, build_summary(CacheOutcome::Local, None, None))
}

fn build_summary(
    outcome: CacheOutcome,
    upstream_us: Option<u64>,
    error: Option<Error>,
) -> RequestSummary {
    RequestSummary {
        outcome,
        upstream_us,
        error,
        rule: None,
        cmcd: None,
    }
}
