//! Experiments on several hosts: agents that communicate through a NATS server.
//!
//! `headwater lab agent` runs an agent (`agent_server.rs` receives orders, `session_worker.rs`
//! executes them). `headwater lab run --nats` controls the agents: `fleet.rs` finds them,
//! `distributed_run.rs` executes one run, and `placement.rs` assigns places to agents.
//! `protocol.rs` defines the messages. The NATS client library is used only in this folder.
//!
//! Every client that may publish on the NATS server can run commands on the agents. Restrict access
//! to that server.

mod agent_server;
mod clock_offset;
mod distributed_run;
mod errors;
mod fleet;
mod nats_connection;
mod placement;
mod protocol;
mod session_worker;

pub(crate) use agent_server::{AgentSettings, serve_agent};
pub(crate) use errors::AgentStartError;
pub(crate) use fleet::AgentFleet;
pub(crate) use nats_connection::NatsSettings;
pub(crate) use protocol::is_host;
