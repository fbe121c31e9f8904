//! Plays a population over the network: a thread a core, a task a place, a client a viewer.
//!
//! What is told of a run: requests as the open loop tells them (a `Run`), and how it was to watch
//! (a [`Viewing`]). A viewer's requests follow from what it was answered, so they have no schedule
//! of their own; what can be late is the generator itself, in acting on a timer or an answer. That
//! lateness is measured, and a run that fell behind says so.

mod catalog;
mod collect;
mod session;
mod tally;
mod thread;
mod viewing;

pub use catalog::Catalog;
pub use collect::{Sight, run};
pub use viewing::{LATE_P99_MAX_MS, PlayerRecord, Sample, Trace, Viewing};

use super::consumer::Habit;
use super::population::{Arrivals, Population};
use super::stream::Wish;
use super::viewer::Setup;
use crate::client::Dialer;
use std::sync::Arc;
use std::time::Duration;

/// What kind of player sits in each place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// A viewer with a clock.
    Viewer,
    /// The worker of document 2, asking for one level.
    Sequence,
    /// The consumer of document 3.
    Consumer(Habit),
}

/// All that a run needs to know.
#[derive(Debug)]
pub struct Plan {
    /// Who watches what.
    pub population: Population,
    /// When places are taken.
    pub arrivals: Arrivals,
    /// As it was asked for, in words.
    pub offered: String,
    /// What kind of players.
    pub mode: Mode,
    /// How they play.
    pub setup: Arc<Setup>,
    /// What they want to hear.
    pub wish: Wish,
    /// How long the run lasts.
    pub duration: Duration,
    /// Makes connections.
    pub dialer: Dialer,
    /// Threads.
    pub threads: usize,
}
