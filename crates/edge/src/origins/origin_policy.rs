//! Timeouts, failure handling and retries.

use upstream::UpstreamLimits;

use super::HealthPolicy;

/// Timeouts, failure handling and retries of origins.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginPolicy {
    pub limits: UpstreamLimits,
    pub care: HealthPolicy,
    /// Share of requests that may be retried at a second origin.
    pub retry_share: f64,
}
