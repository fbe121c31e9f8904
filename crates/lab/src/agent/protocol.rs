//! What agents and whoever runs an experiment say to each other: JSON, bounded.

use crate::experiment::{Arm, Machine, Measured, Noise, Share};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most bytes of a message: what NATS servers take where nobody has changed it.
pub(super) const MESSAGE_MAX: usize = 1 << 20;
/// Most agents of an experiment.
pub(super) const AGENTS_MAX: usize = 256;
/// How often each side says that it lives.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// A side that was not heard for so long is lost.
pub(super) const LOST: Duration = Duration::from_secs(5);

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Who {
    /// What it is spoken to by: never another's.
    pub(super) id: String,
    /// What people call it.
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    /// Where others reach what listens there.
    pub(super) address: String,
    /// Of the program; all are to be the same.
    pub(super) version: String,
}

/// What one who runs an experiment says to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Letter {
    /// Whose it is; an agent serves one at a time.
    pub(super) session: String,
    pub(super) order: Order,
}

/// What an agent is told to do; each is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// To serve this session from now on.
    Join,
    /// To say what time it is.
    Clock,
    /// To say what machine it is on, and what these commands print.
    Machine { versions: BTreeMap<String, String> },
    /// To find or make these sources of a document.
    Sources { text: String, names: Vec<String> },
    /// To deploy its share of one run: places and links.
    Deploy(Box<Deploy>),
    /// To start a function, and to answer when it is healthy.
    Function { name: String },
    /// To run these sinks unmeasured.
    WarmUp { sinks: Vec<String> },
    /// To run these sinks beside each other, from this time of its own clock.
    Measure { sinks: Vec<String>, at_ns: u64 },
    /// To say whether its functions still run.
    Look,
    /// To take away what was deployed.
    TakeAway,
    /// To be free for others.
    Leave,
}

/// One run, and an agent's share of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Deploy {
    pub(super) text: String,
    pub(super) arm: Arm,
    pub(super) round: u32,
    pub(super) seed: u64,
    pub(super) share: Share,
}

/// What it answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Done,
    /// Nanoseconds since 1970 by its own clock.
    Clock(u64),
    Machine(Box<Machine>),
    /// And how long after the time it was told it began.
    Measured(Box<Measured>, u64),
    /// What its machine did since it deployed.
    Noise(Noise),
    /// It serves another session.
    Busy,
    /// Why it could not be done.
    Failed(String),
}

/// As bytes.
///
/// # Errors
/// That they are too many.
pub(super) fn write(what: &impl Serialize) -> Result<Vec<u8>, String> {
    let bytes = serde_json::to_vec(what).map_err(|error| error.to_string())?;
    match bytes.len() <= MESSAGE_MAX {
        true => Ok(bytes),
        false => Err(format!(
            "a message of {} bytes; at most {MESSAGE_MAX}: measure less, or a shorter document",
            bytes.len()
        )),
    }
}

/// From bytes.
///
/// # Errors
/// What is no such message.
pub(super) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    if bytes.len() > MESSAGE_MAX {
        return Err(format!("a message of more than {MESSAGE_MAX} bytes"));
    }
    serde_json::from_slice(bytes).map_err(|error| format!("no message of ours: {error}"))
}

/// Now, in nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_both_ways() {
        let long = Answer::Failed("x".repeat(MESSAGE_MAX));
        assert!(write(&long).unwrap_err().contains("bytes"));
        assert!(read::<Answer>(&vec![b' '; MESSAGE_MAX + 1]).is_err());
        let order = Order::WarmUp {
            sinks: vec!["s".into()],
        };
        let letter = Letter {
            session: "x".into(),
            order,
        };
        let bytes = write(&letter).unwrap();
        assert_eq!(write(&read::<Letter>(&bytes).unwrap()).unwrap(), bytes);
        for wrong in ["", "{}", "null", r#"{"session":"x","order":"burn"}"#] {
            assert!(read::<Letter>(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
