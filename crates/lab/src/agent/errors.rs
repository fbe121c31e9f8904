//! Errors of agents and of the program that controls the agents.

use super::protocol::{AGENTS_MAX, MESSAGE_MAX};
use crate::experiment::distributed::SourceError;
use crate::experiment::{DocumentFault, FileError, RunError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why the NATS server cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BusError {
    #[error(
        "--nats: cannot connect to {url}: {source}; use nats://HOST:PORT, and check that the server runs"
    )]
    Connect {
        url: String,
        source: async_nats::ConnectError,
    },
    #[error("--nats-creds {}: {source}", path.display())]
    Credentials { path: PathBuf, source: io::Error },
    #[error("cannot subscribe to {subject}: {source}")]
    Subscribe {
        subject: String,
        source: async_nats::SubscribeError,
    },
    #[error("cannot publish: {0}")]
    Publish(#[from] async_nats::PublishError),
    #[error("cannot flush: {0}")]
    Flush(#[from] async_nats::client::FlushError),
    #[error("cannot start a runtime: {0}")]
    Runtime(io::Error),
}

/// The reason why a message cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    #[error(
        "message of {0} bytes, the limit is {MESSAGE_MAX} bytes; measure less, or shorten the document"
    )]
    TooLong(usize),
    #[error("cannot encode the message: {0}")]
    Encode(serde_json::Error),
    #[error("invalid message: {0}")]
    Decode(serde_json::Error),
}

/// The reason why an agent did not execute an order.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    /// The agent was silent for too long.
    #[error("agent {0} was lost")]
    Lost(String),
    #[error("agent {agent}: {reason}")]
    Failed { agent: String, reason: String },
    #[error("agent {agent}: no response within {within:?}")]
    Timeout { agent: String, within: Duration },
    #[error("agent {agent}: {source}")]
    Message { agent: String, source: MessageError },
    #[error("stopped")]
    Stopped,
}

/// The reason why the agents cannot execute a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FleetError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("two agents are named {0}; give one of them another --name")]
    DuplicateName(String),
    #[error(
        "agent {agent} has version {theirs}, this program has {ours}; install the same version"
    )]
    Version {
        agent: String,
        theirs: String,
        ours: &'static str,
    },
    #[error(
        "{required} agents are required; available: {available:?}, busy or lost: {unavailable:?}; start \
         more agents, or give a smaller --agents"
    )]
    TooFew {
        required: usize,
        /// Names of the agents that joined.
        available: Vec<String>,
        /// Names of the agents that responded to the roll call but did not join.
        unavailable: Vec<String>,
    },
    #[error("more than {AGENTS_MAX} agents responded; use another --fleet for some of them")]
    TooMany,
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Order(#[from] OrderError),
}

/// The reason why the places of a document cannot be assigned to agents.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlacementError {
    #[error("no agent has the name or label {wanted:?}; available agents: {available:?}")]
    NoAgent {
        wanted: String,
        available: Vec<String>,
    },
    #[error("links join {0:?}, which name different agents; write the same `on`")]
    Conflict(Vec<String>),
}

/// The reason why an agent cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentStartError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Folder(#[from] FileError),
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
}

/// The reason why an agent cannot execute an order.
#[derive(Debug, thiserror::Error)]
pub(super) enum OrderExecutionError {
    #[error("{0}")]
    Document(DocumentFault),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("no run is deployed here")]
    NotDeployed,
    #[error("a run is already deployed here")]
    AlreadyDeployed,
    #[error("the start is {ahead:?} ahead, the limit is {limit:?}; check the clocks")]
    StartTooFar { ahead: Duration, limit: Duration },
}
