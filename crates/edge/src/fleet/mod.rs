//! Commands to all edges of a fleet through a NATS server: purge, warm and reload.
//!
//! The subject is `headwater.edge.COMMAND`. With JetStream, a stream stores the commands. Each edge
//! reads them with a durable consumer that is named after the edge, so it also executes commands
//! that were sent while it was away. Without JetStream, an edge that is away misses them.

mod command;
mod executor;
mod listener;
mod nats_connection;
mod publish;
mod recent_ids;

pub(crate) use listener::start_fleet_commands;
pub use publish::{define_cli_commands, publish_command};

/// All commands begin with this subject.
const SUBJECT_PREFIX: &str = "headwater.edge.";
/// The subjects of all commands.
const SUBJECTS: &str = "headwater.edge.*";
/// The stream that stores the commands.
const STREAM: &str = "HEADWATER_EDGE";
