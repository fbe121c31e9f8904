//! Messages between agents and their controller, in JSON of limited size.

use super::errors::MessageError;
use crate::experiment::distributed::{AgentShare, MachineNoise, PartMeasurements};
use crate::experiment::{Arm, MachineDescription};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum size of a message in bytes, which is also the default limit of NATS servers.
pub(super) const MESSAGE_MAX: usize = 1 << 20;
/// Maximum number of agents in an experiment.
pub(super) const AGENTS_MAX: usize = 256;
/// Interval of an agent's heartbeats, and of the controller's heartbeats ("pulses").
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// An agent or controller that has been silent for longer than this time is lost.
pub(super) const LOST: Duration = Duration::from_secs(5);

/// Identity of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AgentIdentity {
    /// Unique identifier, which is part of the agent's NATS subject.
    pub(super) id: String,
    /// Name that operators see and that documents can require.
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    /// Host name or address at which other agents reach this agent.
    pub(super) address: String,
    /// Program version. All agents must have the version of the controller.
    pub(super) version: String,
}

/// Decodes the reply to a roll call. Returns `None` if the reply is invalid. The address of an agent
/// becomes part of the shell commands of other agents.
pub(super) fn decode_agent_identity(bytes: &[u8]) -> Option<AgentIdentity> {
    let who: AgentIdentity = decode_message(bytes).ok()?;
    is_host(&who.address).then_some(who)
}

/// Returns whether a text is an IP address or a host name, and therefore a plain word of a shell
/// command. An IPv6 address may have brackets.
pub(crate) fn is_host(text: &str) -> bool {
    let bracketed = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None if text.parse::<IpAddr>().is_ok() => true,
        // A leading dash would start an option.
        None => !text.is_empty() && !text.starts_with('-') && text.chars().all(plain),
    }
}

/// An order, and the session to which the order belongs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OrderMessage {
    /// Session of the controller. An agent serves one session at a time.
    pub(super) session: String,
    pub(super) order: AgentOrder,
}

/// An order to an agent. The agent sends one reply to each order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AgentOrder {
    /// Serve this session.
    Join,
    /// Return the current time.
    Clock,
    /// Describe the machine, and return the versions that the commands in `versions` print.
    Machine { versions: BTreeMap<String, String> },
    /// Find or make the sources `names` of the document `text`.
    Sources { text: String, names: Vec<String> },
    /// Deploy the places and links of one run that are assigned to this agent.
    Deploy(Box<DeployOrder>),
    /// Start a function and reply when it is healthy.
    Function { name: String },
    /// Run these sinks as a warm-up, without measuring.
    WarmUp { sinks: Vec<String> },
    /// Run these sinks concurrently and return the measurement. The sinks start when the agent's
    /// clock shows `at_ns`.
    Measure { sinks: Vec<String>, at_ns: u64 },
    /// Check that the functions are still running.
    Look,
    /// Stop and remove everything that was deployed.
    TakeAway,
    /// End the session, so that the agent is free again.
    Leave,
}

/// One run, and the agent's share of the run.
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
    /// Time of the agent's clock, in nanoseconds since 1970.
    Clock(u64),
    Machine(Box<MachineDescription>),
    /// The measurement, and the delay from the planned start to the actual start, in nanoseconds.
    PartMeasurements(Box<PartMeasurements>, u64),
    /// Activity of the machine since the deployment.
    MachineNoise(MachineNoise),
    /// The agent serves another session, or still cleans up after an earlier session.
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
pub(super) fn unix_time_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_whose_address_is_no_host_is_ignored() {
        for (address, accepted) in [
            ("10.0.0.7", true),
            ("fd00::1", true),
            ("[fd00::1]", true),
            ("load-1.lab_net.example", true),
            ("", false),
            ("-v", false),
            ("a b", false),
            ("a;id", false),
            ("$(id)", false),
            ("[10.0.0.7]", false),
            ("fd00::1;id", false),
        ] {
            let who = AgentIdentity {
                id: "id".into(),
                name: "name".into(),
                labels: Vec::new(),
                address: address.into(),
                version: "1".into(),
            };
            let decoded = decode_agent_identity(&encode_message(&who).unwrap());
            assert_eq!(decoded.is_some(), accepted, "{address}");
        }
    }

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
