//! The states `pass` and `pass_with_body`, in which a request goes to the origin for one client
//! alone.

use http::header::{HeaderMap, HeaderValue};
use net::Error;
use net::body::Incoming;

use super::{ServedResponse, build_summary};
use crate::Edge;
use crate::cache_key::CacheKey;
use crate::cache_outcome::{CacheOutcome, PassReason};
use crate::deliver;
use crate::headers::start_fetch_span;
use crate::origins::{OriginRequest, OriginResponse};
use crate::request_facts::RequestFacts;

impl Edge {
    /// Sends the request to the origin and relays the response to this client.
    pub(crate) async fn pass(
        &self,
        worker: usize,
        facts: &RequestFacts<'_>,
        reason: PassReason,
    ) -> ServedResponse {
        let mut headers = facts.pass_headers(&self.loop_token);
        let _span = start_fetch_span(&mut headers);
        let host = facts.forwarded_host(&self.settings);
        let request = origin_request(worker, facts, headers, host.as_ref());
        let reply = self.origins.send_repeatable(request).await;
        relay_reply(facts, reply, CacheOutcome::Pass(reason))
    }

    /// Sends a request with an unsafe method, together with its body, only once. If the request
    /// succeeds, invalidates the cached responses for its URL (RFC 9111 section 4.4).
    pub(super) async fn pass_with_body(
        &self,
        worker: usize,
        facts: &RequestFacts<'_>,
        body: Incoming,
    ) -> ServedResponse {
        let outcome = CacheOutcome::Pass(PassReason::Method);
        let grace = self.settings.common.limits.header_timeout;
        let max = self.settings.body_bytes_max;
        let (body, fault) = match net::body::relay_request_body(body, max, grace) {
            Ok(relayed) => relayed,
            Err(error) => return relay_reply(facts, Err(error), outcome),
        };
        let mut headers = facts.pass_headers(&self.loop_token);
        let _span = start_fetch_span(&mut headers);
        let host = facts.forwarded_host(&self.settings);
        let request = origin_request(worker, facts, headers, host.as_ref());
        let reply = self.origins.send_once(request, body).await;
        // If receiving the client's request body fails, the request to the origin also fails. The
        // error of the request body then explains the cause better than the error of the request.
        let reply = reply.map_err(|error| fault.client_error().unwrap_or(error));
        if reply.as_ref().is_ok_and(is_non_error) {
            self.invalidate_key(&CacheKey::from(facts.primary_key.as_ref()));
        }
        relay_reply(facts, reply, outcome)
    }
}

fn is_non_error(reply: &OriginResponse) -> bool {
    let status = reply.response.status;
    status.is_success() || status.is_redirection()
}

fn relay_reply(
    facts: &RequestFacts<'_>,
    reply: Result<OriginResponse, Error>,
    outcome: CacheOutcome,
) -> ServedResponse {
    match reply {
        Ok(reply) => {
            let upstream_us = Some(net::record::micros(reply.elapsed));
            let response = deliver::relay_response(facts.method, reply, outcome);
            (response, build_summary(outcome, upstream_us, None))
        }
        Err(error) => (
            deliver::error_response(&error, outcome),
            build_summary(outcome, None, Some(error)),
        ),
    }
}

fn origin_request<'a>(
    worker: usize,
    facts: &'a RequestFacts<'_>,
    headers: HeaderMap,
    host: Option<&'a HeaderValue>,
) -> OriginRequest<'a> {
    OriginRequest {
        worker,
        pool: facts.pool.as_deref().unwrap_or_default(),
        method: facts.method,
        target: &facts.target,
        headers,
        host,
        on_interim: facts.interim_handler(),
    }
}
