//! The load tester: asks as people do, measures as physicists do.
//!
//! [`client`] is the HTTP client that everything here asks with: it counts bodies instead of keeping
//! them, and says of every request when it was due, sent, and answered. [`rate`] is the open loop.
//! [`result`] is what a run leaves behind, [`report`] what is said of it. [`config`] turns words
//! into runs.
//!
//! What is *not* here: no serving code, no origin, no store. A tester that shared the server's logic
//! would measure itself.

pub mod client;
pub mod config;
mod generator;
pub mod players;
pub mod rate;
pub mod report;
pub mod result;

pub use config::{command, run};
pub use stats::random;
