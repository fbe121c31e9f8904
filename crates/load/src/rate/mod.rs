//! The open loop: every request starts when it is due, and waits for no other.
//!
//! A run's journey: [`profile`] and [`arrivals`] say when requests are due, [`target`] what each
//! asks for; each thread (`worker`, `thread`) keeps the `schedule` (`pacer`) and hands requests to
//! `slot`s, each with a connection of its own; what they saw goes into a `tally`, and every second
//! (`watch`) to the `collector`, which adds up a [`Run`](crate::result::Run). A closed loop may
//! `rest`.

pub mod arrivals;
mod collector;
pub mod manifest;
mod pacer;
pub mod profile;
pub mod requests;
mod rest;
mod schedule;
mod slot;
mod tally;
pub mod target;
mod thread;
mod watch;
mod worker;

pub use arrivals::Spacing;
pub use collector::{Sight, run};
pub use profile::Profile;
pub use target::{Kind, Ranges, Target};

use crate::client::{Dialer, h1};
use std::time::Duration;

/// All that a run needs to know.
pub struct Plan {
    /// The offered rate.
    pub profile: Profile,
    /// The offered rate as it was asked for.
    pub offered: String,
    /// How arrivals lie within it.
    pub spacing: Spacing,
    /// What it decides: arrivals, weights, places of random ranges.
    pub seed: u64,
    /// Makes connections.
    pub dialer: Dialer,
    /// What is asked for; at least one.
    pub targets: Vec<Target>,
    /// Connections made before the start; in a closed loop, all there are.
    pub connections: usize,
    /// Most connections.
    pub connections_max: usize,
    /// Streams on one HTTP/2 connection.
    pub streams: usize,
    /// Threads, each with its own connections and its part of the arrivals.
    pub threads: usize,
    /// How long requests that were due are still sent, and waited for, when the profile has ended.
    pub drain: Duration,
}

impl Plan {
    fn prepare(&self) -> Result<target::Targets, crate::client::Failure> {
        let settings = self.dialer.settings();
        let defaults = h1::Defaults {
            user_agent: &settings.user_agent,
            keep_alive: settings.keep_alive,
        };
        target::Targets::new(self.targets.clone(), self.seed, &defaults)
    }
}
