//! Endpoint selection, retries and hedged requests.

use super::RemoteCore;
use super::endpoints::Endpoint;
use super::object_version::ObservedVersion;
use super::range_request::{RangeRequest, RangeResponse};
use super::request_failure::RequestFailure;
use crate::{Error, Key, RequestReason};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first pause before failed endpoints are tried again. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(30);
/// The shortest delay before a hedged request.
const HEDGE_AFTER_MIN: Duration = Duration::from_millis(5);

/// The remaining attempts for one request.
pub(super) struct RetryPlan<'a> {
    core: &'a RemoteCore,
    key: &'a Key,
    /// The reason of the next attempt.
    reason: RequestReason,
    /// Number of retries that are left.
    left: u32,
    failed: Vec<Arc<Endpoint>>,
    /// Whether every endpoint has failed once.
    is_repeating: bool,
    pause: Duration,
    /// Whether the request lists a folder. Endpoints that cannot list, such as plain HTTP servers,
    /// are then skipped if another endpoint can list.
    is_listing: bool,
}

/// The endpoints of one attempt.
pub(super) struct AttemptEndpoints {
    pub(super) endpoint: Arc<Endpoint>,
    /// The endpoint for a hedged request. If no other endpoint is left, this endpoint is the same
    /// as `endpoint`.
    pub(super) other: Arc<Endpoint>,
    pub(super) reason: RequestReason,
}

impl RetryPlan<'_> {
    /// Selects the best endpoint that has not failed. If all endpoints have failed, pauses and then
    /// tries all endpoints again.
    pub(super) async fn next_attempt(&mut self) -> Result<AttemptEndpoints, Error> {
        let order = self.ordered_endpoints();
        if order.iter().all(|one| contains_endpoint(&self.failed, one)) {
            tokio::time::sleep(jitter_delay(self.pause)).await;
            self.pause *= 2;
            self.failed.clear();
            self.is_repeating = true;
        }
        let mut new = order
            .iter()
            .filter(|one| !contains_endpoint(&self.failed, one));
        let endpoint = new.next().ok_or(Error::NotFound)?.clone();
        let other = new.next().unwrap_or(&endpoint).clone();
        endpoint.begin_trial();
        Ok(AttemptEndpoints {
            other,
            endpoint,
            reason: self.reason,
        })
    }

    /// Returns the endpoints that support the request, best first.
    fn ordered_endpoints(&self) -> Vec<Arc<Endpoint>> {
        let mut order = self.core.routes.ordered_endpoints(self.key);
        if self.is_listing && order.iter().any(|one| one.can_list()) {
            order.retain(|one| one.can_list());
        }
        order
    }

    /// Records a failed attempt. Returns the error if no retry is allowed.
    pub(super) fn record_failed_attempt(
        &mut self,
        attempt: AttemptEndpoints,
        failure: RequestFailure,
    ) -> Result<(), Error> {
        self.failed.push(attempt.endpoint);
        self.reason = RequestReason::Retry;
        let fails_over =
            !self.is_repeating && can_fail_over(&failure, &self.ordered_endpoints(), &self.failed);
        match fails_over || (failure.is_retryable && self.take_retry()) {
            true => Ok(()),
            false => Err(failure.error),
        }
    }

    /// Takes one retry from the limit of this request and from the budget of all requests. Returns
    /// whether a retry was available.
    fn take_retry(&mut self) -> bool {
        let may = self.left > 0 && self.core.retries.try_spend();
        self.left -= u32::from(may);
        may
    }

    /// Prefers endpoints other than `endpoint`, because a request to `endpoint` for the same object
    /// has failed.
    pub(super) fn avoid(mut self, endpoint: Option<Arc<Endpoint>>) -> Self {
        self.failed.extend(endpoint);
        self
    }
}

impl RemoteCore {
    /// Plans the attempts of a new request.
    pub(super) fn plan_retries<'a>(&'a self, key: &'a Key, reason: RequestReason) -> RetryPlan<'a> {
        self.retries.record_request();
        RetryPlan {
            core: self,
            key,
            reason,
            left: self.options.retries,
            failed: Vec::new(),
            is_repeating: false,
            pause: PAUSE,
            is_listing: false,
        }
    }

    /// Plans the attempts to list a folder.
    pub(super) fn plan_listing<'a>(&'a self, key: &'a Key) -> RetryPlan<'a> {
        let is_listing = true;
        let plan = self.plan_retries(key, RequestReason::Look);
        RetryPlan { is_listing, ..plan }
    }

    /// Fetches a range from any endpoint, preferably not from `avoided`. `reason` is the reason of
    /// the first attempt.
    pub(super) async fn fetch_range(
        self: &Arc<RemoteCore>,
        request: &RangeRequest,
        reason: RequestReason,
        avoided: Option<Arc<Endpoint>>,
    ) -> Result<RangeResponse, Error> {
        self.hedges.record_request();
        let mut plan = self.plan_retries(&request.key, reason).avoid(avoided);
        loop {
            let attempt = plan.next_attempt().await?;
            match self.race_requests(request, &attempt).await {
                Ok(response) => return Ok(response),
                Err(failure) => plan.record_failed_attempt(attempt, failure)?,
            }
        }
    }

    /// Requests an object's current version.
    pub(super) async fn fetch_version(
        self: &Arc<RemoteCore>,
        key: &Key,
        reason: RequestReason,
    ) -> Result<ObservedVersion, Error> {
        let mut plan = self.plan_retries(key, reason);
        loop {
            let attempt = plan.next_attempt().await?;
            match attempt
                .endpoint
                .send_head_request(self, key, attempt.reason)
                .await
            {
                Ok(seen) => return Ok(seen),
                Err(failure) => plan.record_failed_attempt(attempt, failure)?,
            }
        }
    }

    /// Sends a request. Sends a second request if the first request is slower than most of the
    /// recent requests. The first correct response is used, and the other request is canceled.
    async fn race_requests(
        self: &Arc<RemoteCore>,
        request: &RangeRequest,
        attempt: &AttemptEndpoints,
    ) -> Result<RangeResponse, RequestFailure> {
        let mut first = pin!(
            attempt
                .endpoint
                .send_range_request(self, request, attempt.reason)
        );
        let Some(slow) = self.hedge_delay() else {
            return first.await;
        };
        if let Ok(response) = tokio::time::timeout(slow, &mut first).await {
            return response;
        }
        if !self.hedges.try_spend() {
            return first.await;
        }
        let mut second = pin!(attempt.other.send_range_request(
            self,
            request,
            RequestReason::Hedge
        ));
        tokio::select! {
            response = &mut first => match response {
                Err(failure) if failure.is_retryable => second.await,
                response => response,
            },
            response = &mut second => match response {
                Err(_) => first.await,
                response => response,
            },
        }
    }

    fn hedge_delay(&self) -> Option<Duration> {
        if self.options.hedge_share <= 0.0 {
            return None;
        }
        let slow = self.latency.percentile(self.options.hedge_percentile)?;
        Some(slow.max(HEDGE_AFTER_MIN))
    }
}

/// Returns whether an endpoint that is not in `failed` can take over a request. When an endpoint is
/// lost, all its requests fail at once. Each of these requests may then try every other endpoint
/// once, until one attempt succeeds. These attempts do not use the retry budget.
///
/// The budget still limits retries if additional requests would make the failure worse. This is the
/// case if the storage reports overload, and after timeouts when no other endpoint is up.
pub(super) fn can_fail_over(
    failure: &RequestFailure,
    all: &[Arc<Endpoint>],
    failed: &[Arc<Endpoint>],
) -> bool {
    let is_timeout = matches!(failure.error, Error::Slow(_));
    let now = Instant::now();
    let mut others = all.iter().filter(|one| !contains_endpoint(failed, one));
    failure.is_retryable
        && !failure.is_overload
        && others.any(|other| !is_timeout || other.is_up(now))
}

fn contains_endpoint(all: &[Arc<Endpoint>], one: &Arc<Endpoint>) -> bool {
    all.iter().any(|other| Arc::ptr_eq(other, one))
}

/// Returns a random time between half of `pause` and `pause`, so that failed requests are not all
/// repeated at the same time.
fn jitter_delay(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    pause.mul_f64(0.5 + (random % 1024) as f64 / 2048.0)
}
