//! The testbed: reproducible network experiments with video on one machine or several.
//!
//! [`link`] emulates networks: namespaces joined by links with a rate, a delay, a queue and losses.
//! [`experiment`] runs documents over them, and [`report`] presents their records. `nbmp` (feature
//! `nbmp`) implements the second document format, and `serve` is its Workflow Manager. `agent`
//! (feature `nats`) runs experiments on several hosts. [`commands`] defines the commands.
//!
//! This crate contains no server or client of Headwater. A function of an experiment is a command
//! line, so that any server can be a function.

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

pub use commands::{command, run};
