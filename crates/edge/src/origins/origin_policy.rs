//! Timeouts, failure handling and retries.

use upstream::UpstreamLimits;

use super::HealthPolicy;

/// Settings for timeouts, failure handling and retries of requests to origins.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginPolicy {
    pub limits: UpstreamLimits,
    pub care: HealthPolicy,
    /// Limit on retries at another origin, as a fraction of all requests.
    pub retry_share: f64,
}
