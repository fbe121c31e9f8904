//! What is counted of requests of one kind in one step.

use super::Times;
use crate::client::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters and distributions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Requests that ended, well or not.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Requests that waited for a free connection, and so were not sent when due.
    pub late: u64,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by kind.
    pub faults: BTreeMap<Fault, u64>,
    /// From when a request was due to its end, failures included.
    pub from_due: Times,
    /// From when it was sent to its answer's end.
    pub from_sent: Times,
    /// From when it was sent to its answer's first byte.
    pub first_byte: Times,
}

impl Cell {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Cell) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.late += other.late;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        self.from_due.add(&other.from_due);
        self.from_sent.add(&other.from_sent);
        self.first_byte.add(&other.first_byte);
    }

    /// Requests that failed, or were answered by a status of 400 or more.
    pub fn errors(&self) -> u64 {
        let statuses = self.statuses.iter().filter(|(status, _)| **status >= 400);
        statuses.map(|(_, count)| count).sum::<u64>() + self.faults.values().sum::<u64>()
    }
}
