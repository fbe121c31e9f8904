//! Commands that a NATS server delivers to all edges of a fleet: purge, warm and reload.
//!
//! The NATS subject of a command is `headwater.edge.COMMAND`. With JetStream, a stream stores the
//! commands. Each edge reads the stream with a durable consumer that is named after the edge. The
//! edge therefore also executes commands that were sent while it was disconnected. Without
//! JetStream, a disconnected edge misses commands.

mod command;
mod executor;
mod listener;
mod nats_connection;
mod publish;
mod recent_ids;

pub(crate) use listener::start_fleet_commands;
pub use publish::{define_fleet_commands, run_fleet_command};

/// Prefix of the subjects of all commands.
const SUBJECT_PREFIX: &str = "headwater.edge.";
/// Subject pattern that matches all commands.
const SUBJECTS: &str = "headwater.edge.*";
/// Name of the JetStream stream that stores the commands.
const STREAM: &str = "HEADWATER_EDGE";
