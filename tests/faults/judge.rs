//! Checks the invariants of a run:
//!
//! 1. A response contains only bytes that the origin sent for this URL and validator.
//! 2. The edge uses a stored response after its lifetime, or for another client, only if the
//!    headers permit this.
//! 3. Every request ends. A request fails only if a fault or a timeout caused the failure.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::client::{ClientExchange, ExchangeEnd, ObservedResponse};
use crate::origin::OriginState;
use crate::plan::RequestKind;
use crate::resource::{CachingPolicy, Resource};

/// Maximum time between an event at the origin and its effect at a client on a busy machine.
const DELAY_MAX: Duration = Duration::from_secs(1);

/// Timeout of the edge for the first byte of an origin's response, and between later bytes.
const ORIGIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The observations of a run so far.
pub struct RunJudge<'a> {
    origin: &'a OriginState,
    resources: &'a [Resource],
    /// Serial numbers of received responses that only one client may use. The value is the start of
    /// the client's request.
    receivers: HashMap<u64, Instant>,
    pub violations: Vec<String>,
}

impl<'a> RunJudge<'a> {
    pub fn new(origin: &'a OriginState, resources: &'a [Resource]) -> RunJudge<'a> {
        RunJudge {
            origin,
            resources,
            receivers: HashMap::new(),
            violations: Vec::new(),
        }
    }

    /// Judges an exchange. `was_killed` is true if the edge may have been killed during the
    /// exchange.
    pub fn judge(&mut self, exchange: &ClientExchange, was_killed: bool) {
        let resource = &self.resources[exchange.request.resource];
        if let Some(violation) = self.find_violation(exchange, resource, was_killed) {
            let (path, request) = (&resource.path, &exchange.request);
            self.violations
                .push(format!("{path}: {violation}: {request:?}"));
        }
    }

    fn find_violation(
        &mut self,
        exchange: &ClientExchange,
        resource: &Resource,
        was_killed: bool,
    ) -> Option<String> {
        let is_excused = was_killed || self.has_cause(exchange, resource);
        let response = match &exchange.result {
            ExchangeEnd::Hanging => return Some("no response in time".into()),
            ExchangeEnd::NotConnected if !was_killed => return Some("refused".into()),
            ExchangeEnd::Closed if !is_excused => return Some("no response".into()),
            ExchangeEnd::NotConnected | ExchangeEnd::Closed => return None,
            ExchangeEnd::Response(response) => response,
        };
        if response.is_hanging {
            return Some("a body without an end".into());
        }
        if exchange.request.kind == RequestKind::BrokenUpload {
            let is_expected = matches!(response.status, 400 | 502);
            return (!is_expected).then(|| format!("status {} of an upload", response.status));
        }
        let status = response.status;
        match status {
            500.. if is_excused => return None,
            // On a busy machine, the edge can reach its timeout although the origin has no fault.
            504 if exchange.end - exchange.start >= ORIGIN_TIMEOUT => return None,
            // A fault can make the origin send a false 304, which the edge forwards to this client
            // only.
            304 if is_excused => return None,
            200 | 206 | 304 => {}
            _ => return Some(format!("status {status}")),
        }
        let disconnects = matches!(exchange.request.kind, RequestKind::Disconnect(_));
        if !response.is_complete && !is_excused && !disconnects {
            return Some("a body that ended early".into());
        }
        self.check_bytes(exchange, resource, response)
            .or_else(|| self.check_permission(exchange, resource, response))
    }

    /// Returns whether a fault may have affected this exchange. The replacement of a large resource
    /// counts as a fault, because the edge cannot complete a response that has begun with the old
    /// version.
    fn has_cause(&self, exchange: &ClientExchange, resource: &Resource) -> bool {
        let start = exchange.start.checked_sub(DELAY_MAX).unwrap();
        let is_replaced = resource.policy == CachingPolicy::Large
            && self.origin.current_version(&resource.path) > 0;
        is_replaced || self.origin.has_fault(&resource.path, start, exchange.end)
    }

    /// Checks the first invariant.
    fn check_bytes(
        &self,
        exchange: &ClientExchange,
        resource: &Resource,
        response: &ObservedResponse,
    ) -> Option<String> {
        let (Some(version), Some(language)) =
            (response.number("x-version"), response.header("x-language"))
        else {
            return Some("a response that no origin sent".into());
        };
        let tag = format!("\"{version}\"");
        if response.header("etag").is_some_and(|found| found != tag) {
            return Some("a tag of another version".into());
        }
        let is_varying = resource.policy == CachingPolicy::Varying;
        if is_varying && language != exchange.request.language {
            return Some(format!("language {language}"));
        }
        let whole = resource.body(language, version);
        let (first, expected_len) = match response.status {
            304 => return check_not_modified(exchange, version),
            206 => match parse_content_range(response, whole.len()) {
                Some(range) => range,
                None => return Some(format!("range {:?}", response.header("content-range"))),
            },
            _ => (0, whole.len()),
        };
        let is_head = exchange.request.kind == RequestKind::Head;
        let expected = &whole[first..first + expected_len];
        let is_equal = match response.is_complete && !is_head {
            true if matches!(exchange.request.kind, RequestKind::Disconnect(_)) => {
                expected.starts_with(&response.body)
            }
            true => response.body == expected,
            false => expected.starts_with(&response.body),
        };
        (!is_equal).then(|| {
            let (status, len) = (response.status, response.body.len());
            format!("{status} with {len} wrong bytes of version {version}, {expected_len} expected")
        })
    }

    /// Checks the second invariant.
    fn check_permission(
        &mut self,
        exchange: &ClientExchange,
        resource: &Resource,
        response: &ObservedResponse,
    ) -> Option<String> {
        let (version, language) = (
            response.number("x-version")?,
            response.header("x-language")?,
        );
        let times = self.origin.times_sent(&resource.path, language, version);
        let Some(last) = times.iter().filter(|time| **time <= exchange.end).max() else {
            return Some(format!("version {version} was never sent"));
        };
        if resource.policy.is_for_one_client() {
            let serial = response.number("x-serial")?;
            let other = self.receivers.insert(serial, exchange.start);
            return other.map(|_| "a response for another client".into());
        }
        let age = exchange.start.saturating_duration_since(*last);
        let is_fresh = age <= resource.policy.lifetime() + DELAY_MAX;
        let may_be_stale = exchange.request.kind == RequestKind::MaxStale
            && resource.policy != CachingPolicy::Revalidated
            || resource.policy == CachingPolicy::StaleIfError && self.has_cause(exchange, resource);
        (!is_fresh && !may_be_stale).then(|| format!("version {version} is {age:?} old"))
    }
}

fn check_not_modified(exchange: &ClientExchange, version: u64) -> Option<String> {
    let is_expected = exchange.request.kind == RequestKind::IfNoneMatch(version);
    (!is_expected).then(|| format!("304 of version {version}"))
}

/// Returns the offset of the first byte, and the length, of a partial response.
fn parse_content_range(response: &ObservedResponse, whole: usize) -> Option<(usize, usize)> {
    let text = response.header("content-range")?.strip_prefix("bytes ")?;
    let (range, len) = text.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    (len.parse() == Ok(whole) && first <= last && last < whole).then(|| (first, last + 1 - first))
}
