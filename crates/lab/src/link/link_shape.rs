//! The settings of a link and its two directions.

use super::{LinkRate, LossModel, QueueSize};
use serde::Serialize;
use std::time::Duration;

/// Maximum size of an IP packet, in bytes.
pub const MTU: u32 = 1500;

/// One direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionShape {
    /// Rate of the bottleneck.
    pub rate: LinkRate,
    /// Delay after the bottleneck.
    #[serde(serialize_with = "serialize_milliseconds", rename = "delay_ms")]
    pub delay: Duration,
    /// Maximum deviation from the delay. A packet arrives earlier or later by at most this time.
    /// The deviation is uniformly distributed, and packets stay in order.
    #[serde(serialize_with = "serialize_milliseconds", rename = "jitter_ms")]
    pub jitter: Duration,
    /// Queue before the bottleneck. A packet that does not fit is dropped (drop-tail).
    pub queue: QueueSize,
    /// Loss after the bottleneck. A lost packet has already used the bottleneck's capacity.
    pub loss: LossModel,
}

/// Both directions and the seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkShape {
    /// Direction from the second namespace (the server's) to the first (the client's).
    pub down: DirectionShape,
    /// Direction from the first namespace to the second.
    pub up: DirectionShape,
    /// Seed of the losses and the jitter. With the same seed, packets at the same positions in the
    /// packet sequence are lost.
    pub seed: u64,
}

impl LinkShape {
    /// Returns the round-trip time without queueing.
    pub fn round_trip(&self) -> Duration {
        self.down.delay + self.up.delay
    }

    /// Returns the queue size of a direction in bytes. With a rate trace, a multiple of the
    /// bandwidth-delay product refers to the mean rate.
    pub fn queue_bytes(&self, way: &DirectionShape) -> u64 {
        let rate = way.rate.mean_bits_per_s().unwrap_or(0) as f64;
        match way.queue {
            QueueSize::Bytes(bytes) => bytes,
            QueueSize::Bdp(multiple) => {
                let product = rate / 8.0 * self.round_trip().as_secs_f64();
                ((product * multiple) as u64).max(2 * u64::from(MTU))
            }
        }
    }
}

fn serialize_milliseconds<S: serde::Serializer>(
    delay: &Duration,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_f64(delay.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_in_bdp_is_rate_times_round_trip() {
        let way = DirectionShape {
            rate: LinkRate::Constant(20_000_000),
            delay: Duration::from_millis(100),
            jitter: Duration::ZERO,
            queue: QueueSize::Bdp(0.1),
            loss: LossModel::None,
        };
        let shape = LinkShape {
            down: way.clone(),
            up: way.clone(),
            seed: 1,
        };
        assert_eq!(shape.queue_bytes(&way), 50_000);
        let small = DirectionShape {
            queue: QueueSize::Bdp(0.0),
            ..way
        };
        assert_eq!(shape.queue_bytes(&small), 3000);
    }
}
