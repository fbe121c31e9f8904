//! The testbed: what a network does to video, on one machine, repeatably.
//!
//! [`link`] is the emulated network: namespaces joined by links with a rate, a delay, a queue and
//! losses. [`experiment`] runs documents over it, [`report`] says what their records show, [`nbmp`]
//! is the documents' other language, `serve` the Workflow Manager that takes them over HTTP.
//! [`config`] turns words into runs.
//!
//! What is *not* here: no program of ours. A function of an experiment is a command line, so that
//! any server can be one.

pub mod agent;
pub mod config;
pub mod experiment;
pub mod link;
pub mod nbmp;
pub mod report;
mod serve;

pub use config::{command, run};
