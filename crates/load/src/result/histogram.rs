//! Times as HDR histograms: nanoseconds, 1 µs to an hour, three digits; written as V2.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Shortest time that is told from none.
const LOW_NS: u64 = 1_000;
/// Longest; what is longer counts as this.
const HIGH_NS: u64 = 3_600_000_000_000;

/// A distribution of times.
#[derive(Debug, Clone, PartialEq)]
pub struct Times(Histogram<u32>);

impl Default for Times {
    fn default() -> Times {
        Times(bounded(3))
    }
}

fn bounded(digits: u8) -> Histogram<u32> {
    // The bounds are constants that the library takes: 1 < 2·low ≤ high, digits ≤ 5.
    Histogram::new_with_bounds(LOW_NS, HIGH_NS, digits)
        .or_else(|_| Histogram::new(digits))
        .unwrap_or_else(|_| unreachable!("constant bounds are right"))
}

impl Times {
    /// Counts a time.
    pub fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(HIGH_NS);
        self.0.saturating_record(ns.min(HIGH_NS));
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Times) {
        // Equal bounds: nothing is refused.
        let _ = self.0.add(&other.0);
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that the share `q` (0 to 1) does not exceed, in milliseconds.
    pub fn quantile_ms(&self, q: f64) -> f64 {
        self.0.value_at_quantile(q) as f64 / 1e6
    }

    /// The longest, in milliseconds.
    pub fn max_ms(&self) -> f64 {
        if self.0.is_empty() {
            0.0
        } else {
            self.0.max() as f64 / 1e6
        }
    }

    /// The shortest, in milliseconds.
    pub fn min_ms(&self) -> f64 {
        if self.0.is_empty() {
            0.0
        } else {
            self.0.min() as f64 / 1e6
        }
    }

    /// The mean, in milliseconds; never to be shown alone.
    pub fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e6
    }

    /// The share of times that are at most `ms`.
    pub fn share_at_most(&self, ms: f64) -> f64 {
        self.0.quantile_below((ms.max(0.0) * 1e6) as u64)
    }

    /// Every value that was counted, in milliseconds, with its count.
    pub fn values_ms(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.0.iter_recorded().map(|step| {
            (
                step.value_iterated_to() as f64 / 1e6,
                step.count_since_last_iteration(),
            )
        })
    }

    /// V2, deflated, in base64: what stands in logs.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        // A vector takes everything.
        let _ = V2DeflateSerializer::new().serialize(&self.0, &mut bytes);
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    /// The inverse of [`Times::encode`]; other tools' histograms of nanoseconds too.
    ///
    /// # Errors
    /// What is no such text.
    pub fn decode(text: &str) -> Result<Times, String> {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|error| format!("no histogram: {error}"))?;
        // A deflated histogram says nothing of its size until inflated: bound what it may become.
        if bytes.len() > 8 << 20 {
            return Err("no histogram: longer than 8 MiB".into());
        }
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("no histogram: {error}"))?;
        let mut times = Times::default();
        for step in read.iter_recorded() {
            let count = u32::try_from(step.count_since_last_iteration()).unwrap_or(u32::MAX);
            times.0.saturating_record_n(step.value_iterated_to(), count);
        }
        Ok(times)
    }

    /// The histogram itself, to be written into a log.
    pub(crate) fn inner(&self) -> &Histogram<u32> {
        &self.0
    }
}

impl Serialize for Times {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encode())
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Times, D::Error> {
        let text = String::deserialize(deserializer)?;
        Times::decode(&text).map_err(serde::de::Error::custom)
    }
}

/// What writes histograms into logs.
pub(crate) type LogSerializer = V2DeflateSerializer;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_keeps_every_count() {
        let mut times = Times::default();
        for n in 1..1000u64 {
            times.record(Duration::from_micros(n * n));
        }
        let back = Times::decode(&times.encode()).unwrap();
        assert_eq!(back.count(), times.count());
        for q in [0.0, 0.5, 0.99, 0.999, 1.0] {
            assert_eq!(back.quantile_ms(q), times.quantile_ms(q), "{q}");
        }
        assert!(Times::decode("AAAA").is_err() && Times::decode("{").is_err());
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut times = Times::default();
        (1..=10_000u64).for_each(|n| times.record(Duration::from_micros(n * 100)));
        for (q, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = times.quantile_ms(q);
            assert!((found / expected - 1.0).abs() < 0.001, "{q}: {found}");
        }
    }
}
