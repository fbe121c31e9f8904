//! The parameters of a run at a given request rate.

use super::arrival_times::ArrivalSpacing;
use super::rate_profile::RateProfile;
use super::request_target::{RequestTarget, TargetSet};
use super::run_metrics::RunMetrics;
use crate::client::{Dialer, RequestFailure, http1_exchange};
use std::time::Duration;

/// The parameters of a run.
pub struct RateRunPlan {
    /// The offered rate over time.
    pub profile: RateProfile,
    /// The offered rate as the user typed it.
    pub offered: String,
    /// The distribution of requests over time, at the offered rate.
    pub spacing: ArrivalSpacing,
    /// Seed for arrival times, the choice of weighted targets, and random ranges.
    pub seed: u64,
    /// Opens connections.
    pub dialer: Dialer,
    /// Targets that are requested; never empty.
    pub targets: Vec<RequestTarget>,
    /// Number of connections that are opened before the start. A closed loop uses no further
    /// connections.
    pub connections: usize,
    /// Maximum number of open connections.
    pub connections_max: usize,
    /// Maximum number of concurrent streams on one HTTP/2 connection.
    pub streams: usize,
    /// Number of generator threads. Each thread has its own connections, and its own share of the
    /// requests.
    pub threads: usize,
    /// Time after the end of the profile. In this time, queued requests are still sent, and
    /// responses are awaited.
    pub drain: Duration,
    /// Metrics that the run updates.
    pub metrics: Option<RunMetrics>,
}

impl RateRunPlan {
    /// Encodes the requests of all targets.
    pub(super) fn prepare_targets(&self) -> Result<TargetSet, RequestFailure> {
        let settings = self.dialer.settings();
        let defaults = http1_exchange::DefaultHeaders {
            user_agent: &settings.user_agent,
            keep_alive: settings.keep_alive,
        };
        TargetSet::new(self.targets.clone(), self.seed, &defaults)
    }
}
