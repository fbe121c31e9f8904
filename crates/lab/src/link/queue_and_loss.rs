//! The queue and the loss of one direction of a link.

use serde::Serialize;

/// Size of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSize {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Multiples of the bandwidth-delay product (rate × round-trip time), but at least two packets.
    Bdp(f64),
}

/// Loss model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossModel {
    /// Packets are lost only if the queue drops them.
    None,
    /// Each packet is lost independently with this probability.
    Independent(f64),
    /// Two states with different loss probabilities. The state may change before each packet
    /// (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of changing from the good to the bad state.
        to_bad: f64,
        /// Probability of changing from the bad to the good state.
        to_good: f64,
        /// Probability of loss in the good state.
        good: f64,
        /// Probability of loss in the bad state.
        bad: f64,
    },
}

impl LossModel {
    /// Creates a model that loses this share of packets, in bursts of this mean number of packets.
    /// The bad state loses every packet, and the good state loses none.
    pub fn from_bursts(share: f64, packets: f64) -> LossModel {
        let to_good = 1.0 / packets;
        LossModel::GilbertElliott {
            to_bad: (share * to_good / (1.0 - share)).min(1.0),
            to_good,
            good: 0.0,
            bad: 1.0,
        }
    }
}
