//! The testbed for reproducible network experiments with video, on one machine or several.
//!
//! [`link`] emulates networks, which consist of namespaces and of links with a rate, a delay, a
//! queue and losses. [`experiment`] runs the experiments that documents describe, and [`report`]
//! presents the records of their runs. `nbmp` (feature `nbmp`) implements NBMP, the second document
//! format. `serve` is the Workflow Manager of NBMP. `agent` (feature `nats`) runs experiments on
//! several hosts. [`commands`] defines the commands of `headwater lab`.
//!
//! This crate does not contain the media servers and players that experiments measure. A function
//! of an experiment is a command line, so that a function can be any server.

#[cfg(feature = "nats")]
mod agent;
mod closest_name;
pub mod commands;
mod document_format;
pub mod experiment;
pub mod link;
#[cfg(feature = "nbmp")]
pub mod nbmp;
pub mod report;
#[cfg(feature = "nbmp")]
mod serve;

pub use commands::{define_lab_command, run_lab_command};
