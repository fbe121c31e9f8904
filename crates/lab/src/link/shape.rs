//! What a link does: its two directions as they are asked for.

use super::Rate;
use serde::Serialize;
use std::time::Duration;

/// Bytes of an IP packet that a link carries at most.
pub const MTU: u32 = 1500;

/// One direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Way {
    /// Of the bottleneck.
    pub rate: Rate,
    /// From the bottleneck's end to the other namespace.
    #[serde(serialize_with = "milliseconds", rename = "delay_ms")]
    pub delay: Duration,
    /// The delay varies evenly by this to both sides; packets stay in order.
    #[serde(serialize_with = "milliseconds", rename = "jitter_ms")]
    pub jitter: Duration,
    /// How much may wait for the bottleneck; a packet that finds no room is dropped (drop-tail).
    pub queue: Queue,
    /// What is lost after the bottleneck, its air time spent.
    pub loss: Loss,
}

/// Room for packets that wait.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Multiples of rate × round trip time without queues; never less than two packets.
    Bdp(f64),
}

/// Which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// None but what finds no room in the queue.
    None,
    /// Each with this probability, whatever became of the others.
    Independent(f64),
    /// Two states, each with its share of losses; before each packet the state may turn (Gilbert
    /// 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of turning from the good state to the bad one.
        to_bad: f64,
        /// Probability of turning back.
        to_good: f64,
        /// Share that is lost in the good state.
        good: f64,
        /// Share that is lost in the bad state.
        bad: f64,
    },
}

impl Loss {
    /// Losses of this share in all, in bursts of this many packets on average: all of the bad
    /// state, none of the good one.
    pub fn bursts(share: f64, packets: f64) -> Loss {
        let to_good = 1.0 / packets;
        Loss::GilbertElliott {
            to_bad: (share * to_good / (1.0 - share)).min(1.0),
            to_good,
            good: 0.0,
            bad: 1.0,
        }
    }
}

/// Both directions, and what decides chance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// From the second namespace (a server's) to the first (a client's).
    pub down: Way,
    /// From the first namespace to the second.
    pub up: Way,
    /// The same seed loses the same packets, by their number.
    pub seed: u64,
}

impl Shape {
    /// A round trip without queues.
    pub fn round_trip(&self) -> Duration {
        self.down.delay + self.up.delay
    }

    /// What a direction's queue holds, in bytes (of a trace: by its mean); without a rate nothing
    /// waits.
    pub fn queue_bytes(&self, way: &Way) -> u64 {
        let rate = way.rate.mean().unwrap_or(0) as f64;
        match way.queue {
            Queue::Bytes(bytes) => bytes,
            Queue::Bdp(multiple) => {
                let product = rate / 8.0 * self.round_trip().as_secs_f64();
                ((product * multiple) as u64).max(2 * u64::from(MTU))
            }
        }
    }
}

fn milliseconds<S: serde::Serializer>(delay: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(delay.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_in_bdp_is_rate_times_round_trip() {
        let way = Way {
            rate: Rate::Constant(20_000_000),
            delay: Duration::from_millis(100),
            jitter: Duration::ZERO,
            queue: Queue::Bdp(0.1),
            loss: Loss::None,
        };
        let shape = Shape {
            down: way.clone(),
            up: way.clone(),
            seed: 1,
        };
        assert_eq!(shape.queue_bytes(&way), 50_000);
        let small = Way {
            queue: Queue::Bdp(0.0),
            ..way
        };
        assert_eq!(shape.queue_bytes(&small), 3000);
    }
}
