//! Statistics of requests of one kind in one step.

use super::LatencyHistogram;
use crate::client::FailureKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters of requests and distributions of latencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestStats {
    /// Requests that completed or failed.
    pub requests: u64,
    /// Received bytes of bodies.
    pub bytes: u64,
    /// Requests that waited for a free connection and were sent late.
    pub late: u64,
    /// Number of responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Number of failures by kind.
    pub faults: BTreeMap<FailureKind, u64>,
    /// Latency from the due time to the end of the response or to the failure.
    pub from_due: LatencyHistogram,
    /// Latency from sending to the end of the response or to the failure.
    pub from_sent: LatencyHistogram,
    /// Latency from sending to the first response byte.
    pub first_byte: LatencyHistogram,
}

impl RequestStats {
    /// Adds the counts and distributions in `other`.
    pub fn merge(&mut self, other: &RequestStats) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.late += other.late;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        self.from_due.merge(&other.from_due);
        self.from_sent.merge(&other.from_sent);
        self.first_byte.merge(&other.first_byte);
    }

    /// Returns the number of errors, which are failures and responses with a status of 400 or more.
    pub fn error_count(&self) -> u64 {
        let statuses = self.statuses.iter().filter(|(status, _)| **status >= 400);
        statuses.map(|(_, count)| count).sum::<u64>() + self.faults.values().sum::<u64>()
    }
}
