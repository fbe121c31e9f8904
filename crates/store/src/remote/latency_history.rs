//! Recent times to first byte of the storage.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of responses whose times are stored.
const SAMPLES_MAX: usize = 256;
/// Number of responses that are required for a percentile.
const SAMPLES_MIN: usize = 32;
/// Number of responses between two updates of the percentiles.
const SAMPLES_PER_UPDATE: usize = 16;

/// Times to first byte of the last responses.
#[derive(Debug, Default)]
pub(super) struct LatencyHistory {
    inner: Mutex<LatencySamples>,
}

#[derive(Debug, Default)]
struct LatencySamples {
    ring: Vec<u32>,
    next: usize,
    sorted: Vec<u32>,
}

impl LatencyHistory {
    /// Records a time to first byte.
    pub(super) fn record_latency(&self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        match inner.ring.get_mut(inner.next % SAMPLES_MAX) {
            Some(old) => *old = micros,
            None => inner.ring.push(micros),
        }
        inner.next += 1;
        if inner.ring.len() >= SAMPLES_MIN && inner.next.is_multiple_of(SAMPLES_PER_UPDATE) {
            inner.sorted.clone_from(&inner.ring);
            inner.sorted.sort_unstable();
        }
    }

    /// Returns a percentile of the times to first byte. The fraction `share` of the last responses
    /// took at most this time. Returns `None` while there are too few responses.
    pub(super) fn percentile(&self, share: f64) -> Option<Duration> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let last = inner.sorted.len().checked_sub(1)?;
        let place = (last as f64 * share.clamp(0.0, 1.0)).ceil() as usize;
        let micros = inner.sorted.get(place.min(last))?;
        Some(Duration::from_micros(u64::from(*micros)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_covers_the_last_responses() {
        let latency = LatencyHistory::default();
        for _ in 0..31 {
            latency.record_latency(Duration::from_millis(900));
        }
        assert_eq!(latency.percentile(0.95), None);
        for n in 0..(SAMPLES_MAX + SAMPLES_PER_UPDATE) as u64 {
            latency.record_latency(Duration::from_millis(n % 100));
        }
        let p95 = latency.percentile(0.95).unwrap();
        assert!((90..=99).contains(&p95.as_millis()), "{p95:?}");
        assert!(latency.percentile(0.5).unwrap() < Duration::from_millis(60));
    }
}
