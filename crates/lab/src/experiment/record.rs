//! What a run leaves behind: a line of JSON.

use super::Arm;
use super::noise::Noise;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// One run of one arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// Series, by name: place on the axis, and value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
    /// Distributions, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, Counted>,
    /// 99th percentile of each link's lateness, in microseconds.
    pub link_late_us: BTreeMap<String, u64>,
    /// 99th percentile of the lateness of each sink that says it, in milliseconds; of its parts, the
    /// latest.
    #[serde(default)]
    pub sink_late_ms: BTreeMap<String, f64>,
    /// What else the machine did; of several, the worst.
    pub noise: Noise,
    /// Agents that took part, by name; none where it ran on the machine that was asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Part>,
    /// Why it does not count; none where it does.
    pub thrown: Option<String>,
}

/// A distribution with counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// An HDR histogram: V2, deflated, in base64.
    pub v2: String,
    /// What its values are multiplied by.
    pub times: f64,
}

/// What an agent did in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Places that were there, `here` for that of documents without places.
    pub places: Vec<String>,
    /// Its clock before ours, in microseconds.
    pub clock_us: f64,
    /// How far from the truth that may be.
    pub clock_error_us: f64,
    /// When its sinks were started after the common time, in microseconds of its clock.
    pub began_late_us: f64,
}

impl Record {
    /// Of a run that begins now.
    pub(super) fn new(round: u32, place: usize, attempt: u32, arm: &Arm) -> Record {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Record {
            round,
            place,
            attempt,
            arm: arm.clone(),
            unix_s: since.as_secs_f64(),
            ..Record::default()
        }
    }

    /// All records of a file; none where it is not there. The last line may be cut short, as a
    /// crash leaves it.
    ///
    /// # Errors
    /// The number of a line that is no record.
    pub fn read_all(path: &Path) -> Result<Vec<Record>, String> {
        lines(path)
    }
}

/// What stands in a file, a value a line.
pub(super) fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let lines = text.get(..whole).unwrap_or_default().lines().enumerate();
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| format!("{}:{}: {error}", path.display(), number + 1))
    };
    lines.map(read).collect()
}
