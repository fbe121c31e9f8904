//! Messages between agents and their controller: JSON of bounded size.

use super::errors::MessageError;
use crate::experiment::distributed::{AgentShare, MachineNoise, Measurement};
use crate::experiment::{Arm, MachineDescription};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Size limit of a message, the default of NATS servers.
pub(super) const MESSAGE_MAX: usize = 1 << 20;
/// Maximum number of agents of an experiment.
pub(super) const AGENTS_MAX: usize = 256;
/// Interval of the heartbeats of agents and of the controller ("pulses").
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// A side that has been silent for this long is lost.
pub(super) const LOST: Duration = Duration::from_secs(5);

/// Identity of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AgentIdentity {
    /// Unique identifier, part of the agent's NATS subject.
    pub(super) id: String,
    /// Name for operators.
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    /// Host name or address for other agents.
    pub(super) address: String,
    /// Program version; all agents must have the same.
    pub(super) version: String,
}

/// An order with the session that sent it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OrderMessage {
    /// Session of the controller; an agent serves one session at a time.
    pub(super) session: String,
    pub(super) order: AgentOrder,
}

/// An order to an agent; the agent sends one reply to each.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AgentOrder {
    /// Serve this session.
    Join,
    /// Return the current time.
    Clock,
    /// Describe the machine and the versions that these commands print.
    Machine { versions: BTreeMap<String, String> },
    /// Find or make these sources of a document.
    Sources { text: String, names: Vec<String> },
    /// Deploy the agent's share of one run: places and links.
    Deploy(Box<DeployOrder>),
    /// Start a function and reply when it is healthy.
    Function { name: String },
    /// Run these sinks without measuring.
    WarmUp { sinks: Vec<String> },
    /// Run these sinks concurrently, starting at this time of the agent's clock.
    Measure { sinks: Vec<String>, at_ns: u64 },
    /// Check that the functions are still running.
    Look,
    /// Remove what was deployed.
    TakeAway,
    /// Release the agent.
    Leave,
}

/// One run and an agent's share of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DeployOrder {
    pub(super) text: String,
    pub(super) arm: Arm,
    pub(super) round: u32,
    pub(super) seed: u64,
    pub(super) share: AgentShare,
}

/// A reply to an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AgentReply {
    Done,
    /// Nanoseconds since 1970 by the agent's clock.
    Clock(u64),
    Machine(Box<MachineDescription>),
    /// The measurement, and the delay of its start in nanoseconds.
    Measurement(Box<Measurement>, u64),
    /// Machine noise since the deployment.
    MachineNoise(MachineNoise),
    /// The agent serves another session.
    Busy,
    /// The reason why the order failed.
    Failed(String),
}

/// Encodes a message.
///
/// # Errors
/// The message is too long.
pub(super) fn encode_message(what: &impl Serialize) -> Result<Vec<u8>, MessageError> {
    let bytes = serde_json::to_vec(what).map_err(MessageError::Encode)?;
    match bytes.len() <= MESSAGE_MAX {
        true => Ok(bytes),
        false => Err(MessageError::TooLong(bytes.len())),
    }
}

/// Decodes a message.
///
/// # Errors
/// The message is too long or invalid.
pub(super) fn decode_message<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, MessageError> {
    if bytes.len() > MESSAGE_MAX {
        return Err(MessageError::TooLong(bytes.len()));
    }
    serde_json::from_slice(bytes).map_err(MessageError::Decode)
}

/// Current time in nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_in_both_directions() {
        let long = AgentReply::Failed("x".repeat(MESSAGE_MAX));
        assert!(
            encode_message(&long)
                .unwrap_err()
                .to_string()
                .contains("bytes")
        );
        assert!(decode_message::<AgentReply>(&vec![b' '; MESSAGE_MAX + 1]).is_err());
        let order = AgentOrder::WarmUp {
            sinks: vec!["s".into()],
        };
        let letter = OrderMessage {
            session: "x".into(),
            order,
        };
        let bytes = encode_message(&letter).unwrap();
        assert_eq!(
            encode_message(&decode_message::<OrderMessage>(&bytes).unwrap()).unwrap(),
            bytes
        );
        for wrong in ["", "{}", "null", r#"{"session":"x","order":"burn"}"#] {
            assert!(
                decode_message::<OrderMessage>(wrong.as_bytes()).is_err(),
                "{wrong}"
            );
        }
    }
}
