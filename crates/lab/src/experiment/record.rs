//! What a run leaves behind: a line of JSON.

use super::Arm;
use super::noise::Noise;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// From 0.
    pub round: u32,
    /// Which of the round's runs it was, from 0.
    pub place: usize,
    /// Which try of it, from 0.
    pub attempt: u32,
    /// The variables' values.
    pub arm: Arm,
    /// When it began: seconds since 1970.
    pub unix_s: f64,
    /// How long all of it took, deployment included.
    pub took_s: f64,
    /// Quantities, by name.
    pub values: BTreeMap<String, f64>,
    /// 99th percentile of each link's lateness, in microseconds.
    pub link_late_us: BTreeMap<String, u64>,
    /// What else the machine did.
    pub noise: Noise,
    /// Why it does not count; none where it does.
    pub thrown: Option<String>,
}
