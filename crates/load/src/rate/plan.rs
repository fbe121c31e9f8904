//! The parameters of a run at a given request rate.

use super::arrival_times::ArrivalSpacing;
use super::rate_profile::RateProfile;
use super::request_target::{RequestTarget, TargetSet};
use super::run_metrics::RunMetrics;
use crate::client::{Dialer, RequestFailure, http1_exchange};
use std::time::Duration;

/// The parameters of a run.
pub struct RateRunPlan {
    /// The offered rate.
    pub profile: RateProfile,
    /// The offered rate as the user typed it.
    pub offered: String,
    /// Spacing of requests within the rate.
    pub spacing: ArrivalSpacing,
    /// Seed of arrival times, weighted choices and random ranges.
    pub seed: u64,
    /// Opens connections.
    pub dialer: Dialer,
    /// Targets to request; never empty.
    pub targets: Vec<RequestTarget>,
    /// Connections opened before the start; a closed loop opens no others.
    pub connections: usize,
    /// Limit of open connections.
    pub connections_max: usize,
    /// Concurrent streams on one HTTP/2 connection.
    pub streams: usize,
    /// Generator threads, each with its own connections and share of the arrivals.
    pub threads: usize,
    /// Time after the profile's end in which overdue requests are still sent and awaited.
    pub drain: Duration,
    /// Metrics that the run updates.
    pub metrics: Option<RunMetrics>,
}

impl RateRunPlan {
    /// Encodes the targets' requests.
    pub(super) fn prepare_targets(&self) -> Result<TargetSet, RequestFailure> {
        let settings = self.dialer.settings();
        let defaults = http1_exchange::DefaultHeaders {
            user_agent: &settings.user_agent,
            keep_alive: settings.keep_alive,
        };
        TargetSet::new(self.targets.clone(), self.seed, &defaults)
    }
}
