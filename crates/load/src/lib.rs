//! The load tester. It sends requests as viewers do, and measures them without coordinated
//! omission.
//!
//! [`client`] is the HTTP client. It counts bodies instead of storing them, and records when every
//! request was due, was sent and was completed. [`rate`] sends requests on a schedule (open loop),
//! and [`players`] emulates viewers. [`result`] defines the result of a run and writes result
//! files. [`report`] makes reports from results. [`config`] parses command lines and starts runs.
//!
//! The crate contains no serving code, no origin and no store. A tester that shared the server's
//! logic would not be independent of the server.

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
