//! Origins: pools of servers, the order in which a request tries the servers, retries and health.

mod choice;
mod credentials;
mod dns_origin;
mod health;
mod member;
mod membership;
mod monitoring;
mod origin_metrics;
mod origin_policy;
mod pools;
mod resolver;
mod retry_budget;
mod title_folder;

pub use choice::BalanceMethod;
pub use credentials::{EdgeCredentials, pair_certificate_and_key};
pub use health::HealthPolicy;
pub use origin_metrics::OriginMetrics;
pub use origin_policy::OriginPolicy;
pub use pools::{OriginPoolSettings, PoolSettingsByName, read_pools};

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use net::edge_secret::EDGE_AUTH;
use net::{Body, Error};
use upstream::{
    InterimHandler, RequestUpload, TrustedAuthorities, UpstreamError, UpstreamResponse,
};

use self::health::HealthChange;
use self::member::{OriginPoolMember, PoolConnectionSettings, WeightedMember};
use self::membership::PoolMembers;
use self::retry_budget::RetryBudget;

/// Maximum number of origins to which one request is sent.
const ATTEMPTS_MAX: usize = 3;

/// Sends requests to the origins of named pools.
#[derive(Debug)]
pub struct OriginClient {
    pools: BTreeMap<Arc<str>, PoolState>,
    treatment: OriginPolicy,
    counts: OriginMetrics,
    credentials: EdgeCredentials,
}

/// The state of one pool.
#[derive(Debug)]
struct PoolState {
    members: PoolMembers,
    balance: BalanceMethod,
    gets_secret: bool,
    authorities: TrustedAuthorities,
    /// Path of the health probes, if configured.
    probe: Option<String>,
    budget: Mutex<RetryBudget>,
}

/// A request to the origins of a pool.
#[derive(Debug)]
pub struct OriginRequest<'a> {
    pub worker: usize,
    /// Name of the pool; empty for the default pool.
    pub pool: &'a str,
    pub method: &'a Method,
    pub target: &'a str,
    pub headers: HeaderMap,
    /// Host header to send. If absent, the origin's own host is sent.
    pub host: Option<&'a HeaderValue>,
    /// Handler for interim responses.
    pub on_interim: Option<InterimHandler>,
}

/// A response whose head has arrived, with the timing of the head. The caller reads the body.
pub struct OriginResponse {
    pub response: UpstreamResponse,
    /// Time from the start of the request until the head arrived, including failed attempts.
    pub elapsed: Duration,
    /// Wall-clock time when the head arrived.
    pub received_at: SystemTime,
}

impl OriginClient {
    /// Creates the pools. Each worker has its own connections to the origins.
    ///
    /// # Errors
    /// When a URL names no server.
    pub fn new(
        pools: &PoolSettingsByName,
        treatment: &OriginPolicy,
        counts: OriginMetrics,
        credentials: EdgeCredentials,
    ) -> io::Result<OriginClient> {
        OriginClient::build_pools(pools, treatment, (counts, credentials), None)
    }

    /// Creates the pools of new settings. An origin that stays in its pool keeps its connections
    /// and health, unless the limits or the certificate authorities changed.
    ///
    /// # Errors
    /// When a URL names no server.
    pub fn with_settings(
        &self,
        pools: &PoolSettingsByName,
        treatment: &OriginPolicy,
    ) -> io::Result<OriginClient> {
        let shared = (self.counts.clone(), self.credentials.clone());
        OriginClient::build_pools(pools, treatment, shared, Some(self))
    }

    fn build_pools(
        pools: &PoolSettingsByName,
        treatment: &OriginPolicy,
        (counts, credentials): (OriginMetrics, EdgeCredentials),
        old: Option<&OriginClient>,
    ) -> io::Result<OriginClient> {
        let old = old.filter(|old| old.treatment.limits == treatment.limits);
        let pools = pools.iter().map(|(name, pool)| {
            let known = old.and_then(|old| old.pools.get(name));
            let known = known.filter(|known| known.authorities == pool.authorities);
            let settings = PoolConnectionSettings {
                limits: &treatment.limits,
                authorities: &pool.authorities,
                certificate: credentials.certificate.as_ref(),
                counts: &counts,
            };
            let known = known.map(|known| &known.members);
            let pool = PoolState {
                members: PoolMembers::new(pool, &settings, known)?,
                balance: pool.balance,
                gets_secret: pool.gets_secret,
                authorities: pool.authorities.clone(),
                probe: pool.health.clone(),
                budget: Mutex::new(RetryBudget::new(Instant::now())),
            };
            Ok((Arc::clone(name), pool))
        });
        let client = OriginClient {
            pools: pools.collect::<io::Result<_>>()?,
            treatment: treatment.clone(),
            counts,
            credentials,
        };
        client.update_member_count_metric();
        Ok(client)
    }

    /// Sends a request that may be repeated. If an origin fails and the retry budget allows a
    /// retry, sends the request to the next origin.
    ///
    /// # Errors
    /// Status 502 or 504 when no origin sent a response head.
    pub async fn send_repeatable(
        &self,
        mut origin_request: OriginRequest<'_>,
    ) -> Result<OriginResponse, Error> {
        let pool = self.find_pool(origin_request.pool)?;
        let mut request = origin_request.take_http_request(())?;
        self.add_edge_secret(pool, request.headers_mut());
        let started = Instant::now();
        let mut last = Err(empty_pool_failure());
        let attempts = self
            .attempt_order(pool, origin_request.target, started)
            .await;
        for (nth, member) in attempts.enumerate() {
            if nth > 0 && !self.take_retry(pool) {
                break;
            }
            let host = origin_request.host.unwrap_or(&member.host).clone();
            request.headers_mut().insert(header::HOST, host);
            let sent = member
                .upstream
                .send_repeatable(origin_request.worker, &request)
                .await;
            let failed = self.record_result(pool, &member, &sent);
            last = sent;
            if !failed {
                break;
            }
        }
        self.counts.record_response_time(&last, started);
        to_origin_response(last, started)
    }

    /// Sends a request that must not be repeated. Tries another origin only if the previous origin
    /// cannot have received any part of the request.
    ///
    /// # Errors
    /// Status 502 or 504 when no origin sent a response head. Status 400 or 408 when the client's
    /// body is incomplete or late.
    pub async fn send_once(
        &self,
        mut origin_request: OriginRequest<'_>,
        body: Body,
    ) -> Result<OriginResponse, Error> {
        let pool = self.find_pool(origin_request.pool)?;
        let mut unsent = Some(Box::new(
            origin_request.take_http_request(RequestUpload::new(body))?,
        ));
        let started = Instant::now();
        let mut last = Err(empty_pool_failure());
        let attempts = self
            .attempt_order(pool, origin_request.target, started)
            .await;
        for (nth, member) in attempts.enumerate() {
            let Some(mut request) = unsent.take() else {
                break;
            };
            if nth > 0 && !self.take_retry(pool) {
                break;
            }
            let host = origin_request.host.unwrap_or(&member.host).clone();
            request.headers_mut().insert(header::HOST, host);
            self.add_edge_secret(pool, request.headers_mut());
            let sent = member
                .upstream
                .send_once(origin_request.worker, *request)
                .await;
            last = sent.map_err(|(failed, back)| {
                unsent = back;
                failed
            });
            self.record_result(pool, &member, &last);
            // If the client's upload failed, the next origin could not receive a complete body
            // either.
            if last.as_ref().is_err_and(|failed| failed.is_upload) {
                break;
            }
        }
        self.counts.record_response_time(&last, started);
        to_origin_response(last, started)
    }

    /// Returns the secret and the certificate that authenticate the edge to the origins.
    pub fn credentials(&self) -> &EdgeCredentials {
        &self.credentials
    }

    /// Adds the edge's secret to the request headers if the origins of the pool may receive the
    /// secret.
    fn add_edge_secret(&self, pool: &PoolState, headers: &mut HeaderMap) {
        headers.remove(EDGE_AUTH);
        let secret = self.credentials.secret.as_ref();
        if let Some(secret) = secret.filter(|_| pool.gets_secret) {
            secret.attach_secret(headers);
        }
    }

    fn find_pool(&self, name: &str) -> Result<&PoolState, Error> {
        let missing = || Error::new_internal_error(format_args!("pool {name:?} no longer exists"));
        self.pools.get(name).ok_or_else(missing)
    }

    /// Returns the pool's origins in the order in which the request tries them.
    async fn attempt_order(
        &self,
        pool: &PoolState,
        target: &str,
        now: Instant,
    ) -> impl Iterator<Item = Arc<OriginPoolMember>> + use<> {
        pool.lock_retry_budget()
            .credit_request(self.treatment.retry_share, now);
        let patience = self.treatment.limits.connect_timeout;
        let members = pool.members.list_members_when_resolved(patience).await;
        let order = if members.len() == 1 {
            vec![0]
        } else {
            let share = |listed: &WeightedMember| {
                let share = self.current_share(pool, &listed.member, now);
                (listed.member.seed, share * listed.weight)
            };
            let shares: Vec<_> = members.iter().map(share).collect();
            choice::rank_members(pool.balance, &shares, target)
        };
        let member = move |n: usize| members.get(n).map(|listed| listed.member.clone());
        order.into_iter().filter_map(member).take(ATTEMPTS_MAX)
    }

    fn current_share(&self, pool: &PoolState, member: &OriginPoolMember, now: Instant) -> f64 {
        let probed = pool.probe.is_some();
        member
            .lock_health()
            .request_share(&self.treatment.care, probed, now)
    }

    fn take_retry(&self, pool: &PoolState) -> bool {
        let may = pool.lock_retry_budget().take_retry();
        let result = if may { "sent" } else { "spent" };
        self.counts.retries.with_labels(&[result]).inc();
        may
    }

    /// Records the result of an attempt. Returns whether the request may be sent to another origin,
    /// because this origin failed or has too many requests in flight.
    fn record_result(
        &self,
        pool: &PoolState,
        member: &OriginPoolMember,
        sent: &Result<UpstreamResponse, UpstreamError>,
    ) -> bool {
        let result = match sent {
            Ok(response) if response.status.is_server_error() => "error",
            Ok(_) => "answer",
            Err(failed) if failed.is_upload => "client",
            Err(failed) if failed.is_request_limit => "limit",
            Err(failed) if failed.is_timeout => "late",
            Err(_) => "failed",
        };
        self.counts
            .requests
            .with_labels(&[&member.url, result])
            .inc();
        member.count_result(result);
        let failed = match sent {
            // The client's upload failed. The origin is not at fault, and may not have received a
            // complete request.
            Err(failed) if failed.is_upload => return false,
            // An origin that sends one of these statuses cannot serve requests at the moment.
            Ok(response) => matches!(response.status.as_u16(), 502..=504),
            Err(_) => true,
        };
        let (now, probed) = (Instant::now(), pool.probe.is_some());
        if let Err(failed) = sent {
            member.log_failure(failed, now);
            // Nothing was sent. The origin is not at fault, but another origin may accept the
            // request.
            if failed.is_request_limit {
                return true;
            }
        }
        let change = if failed {
            member
                .lock_health()
                .record_failure(&self.treatment.care, now)
        } else {
            member.lock_health().record_response(probed, now)
        };
        self.log_health_change(member, change);
        failed
    }

    fn log_health_change(&self, member: &OriginPoolMember, change: HealthChange) {
        let origin = &member.url;
        match change {
            HealthChange::Nothing => return,
            HealthChange::Suspended => {
                self.counts.suspensions.with_labels(&[origin]).inc();
                tracing::warn!(origin, "origin suspended after repeated failures");
            }
            HealthChange::Recovered => tracing::info!(origin, "origin is healthy again"),
        }
        let suspended = |pool: &PoolState| {
            let members = pool.members.list_members();
            let members = members.iter();
            members
                .filter(|listed| listed.member.lock_health().is_suspended())
                .count()
        };
        let suspended_count = self.pools.values().map(suspended).sum::<usize>();
        let suspended_count = i64::try_from(suspended_count).unwrap_or(i64::MAX);
        self.counts.suspended_now.set(suspended_count);
    }
}

impl PoolState {
    fn lock_retry_budget(&self) -> MutexGuard<'_, RetryBudget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OriginRequest<'_> {
    /// Builds the request without a Host header. Moves the headers out of `self`.
    fn take_http_request<B>(&mut self, body: B) -> Result<Request<B>, Error> {
        let uri: Uri = self.target.parse().map_err(Error::new_internal_error)?;
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = std::mem::take(&mut self.headers);
        if let Some(handler) = self.on_interim.take() {
            request.extensions_mut().insert(handler);
        }
        Ok(request)
    }
}

fn empty_pool_failure() -> UpstreamError {
    UpstreamError {
        is_timeout: false,
        may_have_arrived: false,
        is_upload: false,
        is_request_limit: false,
        reason: "the pool has no origin".into(),
    }
}

fn to_origin_response(
    last: Result<UpstreamResponse, UpstreamError>,
    started: Instant,
) -> Result<OriginResponse, Error> {
    Ok(OriginResponse {
        response: last.map_err(|failed| upstream_to_client_error(&failed))?,
        elapsed: started.elapsed(),
        received_at: SystemTime::now(),
    })
}

/// Returns the error for the client after a failed exchange with an origin. All such failures are
/// mapped here. The detail contains the origin's address, so the detail is recorded but not sent to
/// the client.
fn upstream_to_client_error(failed: &UpstreamError) -> Error {
    let error = match (failed.is_upload, failed.is_timeout) {
        (true, true) => {
            let what = "the body of the request did not arrive in time";
            Error::new_client_error(StatusCode::REQUEST_TIMEOUT, what)
        }
        (true, false) => {
            let what = "the body of the request is incomplete";
            Error::new_client_error(StatusCode::BAD_REQUEST, what)
        }
        (false, true) => {
            let what = "the origin does not respond in time";
            Error::new_upstream_error(StatusCode::GATEWAY_TIMEOUT, what)
        }
        (false, false) => {
            let what = match failed.may_have_arrived {
                true => "the origin sent no valid response",
                false => "the origin is not reachable",
            };
            Error::new_upstream_error(StatusCode::BAD_GATEWAY, what)
        }
    };
    error.with_detail(failed)
}
