//! HDR histograms of latencies, encoded as V2. The values are nanoseconds, from 1 µs to one hour,
//! with three significant digits.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{
    DeserializeError, Deserializer, Serializer, V2DeflateSerializer,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Smallest time that the histogram distinguishes, in nanoseconds.
const LOW_NS: u64 = 1_000;
/// Largest time that the histogram distinguishes, in nanoseconds. Longer times count as this time.
const HIGH_NS: u64 = 3_600_000_000_000;

/// Maximum size of an encoded histogram in bytes, after base64 decoding and before inflation.
const ENCODED_BYTES_MAX: usize = 8 << 20;

/// The reason why a text is not a valid encoded histogram.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("invalid histogram: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The encoded histogram is too long.
    #[error("invalid histogram: longer than {ENCODED_BYTES_MAX} bytes")]
    TooLong,
    /// The bytes are not a V2 histogram.
    #[error("invalid histogram: {0}; expected the HDR V2 format")]
    Malformed(DeserializeError),
}

/// A distribution of times.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyHistogram(Histogram<u32>);

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram(bounded_histogram(3))
    }
}

fn bounded_histogram(digits: u8) -> Histogram<u32> {
    // The library requires 1 ≤ low, 2·low ≤ high and digits ≤ 5, which these constants satisfy.
    Histogram::new_with_bounds(LOW_NS, HIGH_NS, digits)
        .or_else(|_| Histogram::new(digits))
        .unwrap_or_else(|_| unreachable!("constant bounds are right"))
}

impl LatencyHistogram {
    /// Adds one time to the distribution.
    pub fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(HIGH_NS);
        self.0.saturating_record(ns.min(HIGH_NS));
    }

    /// Adds the counts of another distribution.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        // Adding cannot fail, because both histograms have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the quantile `q` (0 to 1) of the times, in milliseconds.
    pub fn quantile_ms(&self, q: f64) -> f64 {
        self.0.value_at_quantile(q) as f64 / 1e6
    }

    /// Returns the longest time in milliseconds.
    pub fn max_ms(&self) -> f64 {
        if self.0.is_empty() {
            0.0
        } else {
            self.0.max() as f64 / 1e6
        }
    }

    /// Returns the shortest time in milliseconds.
    pub fn min_ms(&self) -> f64 {
        if self.0.is_empty() {
            0.0
        } else {
            self.0.min() as f64 / 1e6
        }
    }

    /// Returns the share (0 to 1) of the times that are at most `ms` milliseconds.
    pub fn share_at_most(&self, ms: f64) -> f64 {
        self.0.quantile_below((ms.max(0.0) * 1e6) as u64)
    }

    /// Returns every recorded value in milliseconds with its count.
    pub fn values_ms(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.0.iter_recorded().map(|step| {
            (
                step.value_iterated_to() as f64 / 1e6,
                step.count_since_last_iteration(),
            )
        })
    }

    /// Encodes the histogram in the format of HDR logs, which is deflated V2 in base64.
    pub fn encode_histogram(&self) -> String {
        let mut bytes = Vec::new();
        // Writing to a vector does not fail.
        let _ = V2DeflateSerializer::new().serialize(&self.0, &mut bytes);
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    /// Decodes a histogram that [`LatencyHistogram::encode_histogram`] or another tool encoded. The
    /// values must be nanoseconds.
    ///
    /// # Errors
    /// The text is not an encoded histogram.
    pub fn decode_histogram(text: &str) -> Result<LatencyHistogram, HistogramError> {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text)?;
        // The size after inflation is not known in advance, so the size before inflation is
        // limited.
        if bytes.len() > ENCODED_BYTES_MAX {
            return Err(HistogramError::TooLong);
        }
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(HistogramError::Malformed)?;
        let mut times = LatencyHistogram::default();
        for step in read.iter_recorded() {
            let count = u32::try_from(step.count_since_last_iteration()).unwrap_or(u32::MAX);
            times.0.saturating_record_n(step.value_iterated_to(), count);
        }
        Ok(times)
    }

    /// Returns the histogram in the form that the log writer needs.
    pub(crate) fn as_histogram(&self) -> &Histogram<u32> {
        &self.0
    }
}

impl Serialize for LatencyHistogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encode_histogram())
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<LatencyHistogram, D::Error> {
        let text = String::deserialize(deserializer)?;
        LatencyHistogram::decode_histogram(&text).map_err(serde::de::Error::custom)
    }
}

/// The encoder of HDR logs.
pub(crate) type HdrLogSerializer = V2DeflateSerializer;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_keeps_every_count() {
        let mut times = LatencyHistogram::default();
        for n in 1..1000u64 {
            times.record(Duration::from_micros(n * n));
        }
        let back = LatencyHistogram::decode_histogram(&times.encode_histogram()).unwrap();
        assert_eq!(back.count(), times.count());
        for q in [0.0, 0.5, 0.99, 0.999, 1.0] {
            assert_eq!(back.quantile_ms(q), times.quantile_ms(q), "{q}");
        }
        assert!(
            LatencyHistogram::decode_histogram("AAAA").is_err()
                && LatencyHistogram::decode_histogram("{").is_err()
        );
    }

    #[test]
    fn quantiles_have_three_correct_digits() {
        let mut times = LatencyHistogram::default();
        (1..=10_000u64).for_each(|n| times.record(Duration::from_micros(n * 100)));
        for (q, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = times.quantile_ms(q);
            assert!((found / expected - 1.0).abs() < 0.001, "{q}: {found}");
        }
    }
}
