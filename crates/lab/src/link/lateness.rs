//! How late the emulator itself was.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest lateness told apart: an hour.
const MOST_US: u64 = 3_600_000_000;

/// Packets' actual arrival after the due one, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Half were at most this late.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %: a measurement is doubtful where this is beyond some two milliseconds.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// The latest.
    pub max: u64,
}

/// What counts it.
pub(super) struct Meter(Histogram<u64>);

impl Meter {
    pub(super) fn new() -> Result<Meter, hdrhistogram::CreationError> {
        Histogram::new_with_bounds(1, MOST_US, 2).map(Meter)
    }

    pub(super) fn note(&mut self, late_ns: u64) {
        self.0.saturating_record((late_ns / 1000).min(MOST_US));
    }

    pub(super) fn read(&self) -> Lateness {
        Lateness {
            p50: self.0.value_at_quantile(0.5),
            p90: self.0.value_at_quantile(0.9),
            p99: self.0.value_at_quantile(0.99),
            p999: self.0.value_at_quantile(0.999),
            max: self.0.max(),
        }
    }
}
