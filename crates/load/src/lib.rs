//! The load tester: sends requests as viewers do and measures them without coordinated omission.
//!
//! [`client`] is the HTTP client: it counts bodies instead of storing them, and records when every
//! request was due, was sent and was completed. [`rate`] is the open loop, [`players`] the emulated viewers.
//! [`result`] holds the files that a run writes, [`report`] the reports made from them. [`config`]
//! parses command lines and starts runs.
//!
//! The crate contains no serving code, no origin and no store. A tester that shared the server's
//! logic would measure itself.

pub mod client;
pub mod config;
mod generator_threads;
pub mod players;
pub mod rate;
pub mod report;
pub mod result;

pub use config::{command, run};
pub use generator_threads::GeneratorError;
pub use stats::random;
