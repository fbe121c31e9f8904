//! Lateness of the emulator when it delivers packets.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Maximum recorded lateness in microseconds (one hour). A greater lateness is recorded as one
/// hour.
const MOST_US: u64 = 3_600_000_000;

/// Percentiles of the lateness of packets, in microseconds. The lateness is the actual delivery
/// time minus the scheduled delivery time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LatenessPercentiles {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile. If this value exceeds about 2000 (two milliseconds), measurements over the
    /// link are doubtful.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Maximum.
    pub max: u64,
}

/// Records lateness.
pub(super) struct LatenessMeter(Histogram<u64>);

impl LatenessMeter {
    pub(super) fn new() -> Result<LatenessMeter, hdrhistogram::CreationError> {
        Histogram::new_with_bounds(1, MOST_US, 2).map(LatenessMeter)
    }

    pub(super) fn record_lateness(&mut self, late_ns: u64) {
        self.0.saturating_record((late_ns / 1000).min(MOST_US));
    }

    pub(super) fn percentiles(&self) -> LatenessPercentiles {
        LatenessPercentiles {
            p50: self.0.value_at_quantile(0.5),
            p90: self.0.value_at_quantile(0.9),
            p99: self.0.value_at_quantile(0.99),
            p999: self.0.value_at_quantile(0.999),
            max: self.0.max(),
        }
    }
}
