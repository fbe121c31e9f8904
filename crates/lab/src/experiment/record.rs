//! The record of a run, which is one line of JSON.

use super::Arm;
use super::file_error::FileError;
use super::machine_noise::MachineNoise;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// One run of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Round, from 0.
    pub round: u32,
    /// Position of the run within the round, from 0.
    pub place: usize,
    /// Attempt, from 0.
    pub attempt: u32,
    /// Values of the variables.
    pub arm: Arm,
    /// Start of the run, in seconds since 1970.
    pub unix_s: f64,
    /// Duration in seconds, including the deployment.
    pub took_s: f64,
    /// Quantities, by name.
    pub values: BTreeMap<String, f64>,
    /// Points (position and value) of each series, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
    /// Distributions, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, HistogramRecord>,
    /// 99th percentile of each link's lateness, in microseconds.
    pub link_late_us: BTreeMap<String, u64>,
    /// 99th percentile of the lateness that each sink reports, in milliseconds. With several
    /// agents, each value is the maximum of all agents.
    #[serde(default)]
    pub sink_late_ms: BTreeMap<String, f64>,
    /// Other activity of the machine. With several agents, each value is the maximum of all agents.
    pub noise: MachineNoise,
    /// Agents that took part, by name. Empty if the run was local.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentRecord>,
    /// Fingerprints of the document's claims. A fingerprint includes the bounds of the claim, and
    /// so shows which bounds were fixed before the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// Reason why the results of the run are not used; `None` if the run succeeded.
    #[serde(rename = "thrown")]
    pub discard_reason: Option<String>,
    /// Whether a discarded run failed. `false` if a bound was exceeded, or if an agent did not execute
    /// the run. `None` for runs that were not discarded, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
}

/// A file of records that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordFileError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line of the file is not a valid record.
    #[error("{}:{line}: invalid record: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// A record cannot be encoded as JSON.
    #[error("cannot encode a record: {0}")]
    Encode(serde_json::Error),
}

/// A distribution, stored as a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistogramRecord {
    /// An HDR histogram (V2, deflated, in base64).
    pub v2: String,
    /// Factor by which the histogram's values are multiplied.
    pub times: f64,
}

/// One agent's share of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Places on the agent; `here` for documents without places.
    pub places: Vec<String>,
    /// Time of the agent's clock minus time of the controlling machine's clock, in microseconds.
    pub clock_us: f64,
    /// Upper bound of the error of `clock_us`, in microseconds.
    pub clock_error_us: f64,
    /// Time between the planned common start and the actual start of the agent's sinks, in
    /// microseconds.
    pub began_late_us: f64,
}

impl RunRecord {
    /// Creates the record of a run that starts now.
    pub(super) fn new(round: u32, place: usize, attempt: u32, arm: &Arm) -> RunRecord {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        RunRecord {
            round,
            place,
            attempt,
            arm: arm.clone(),
            unix_s: since.as_secs_f64(),
            ..RunRecord::default()
        }
    }

    /// Returns whether this is a discarded run that failed. Such a run may have failed because of the
    /// arm, and its repetition hides the failure.
    pub(crate) fn is_failed_attempt(&self) -> bool {
        let Some(reason) = &self.discard_reason else {
            return false;
        };
        // Records of earlier versions contain only the reason. The text is that of `BoundExceeded`.
        let is_failure = || self.agents.is_empty() && !reason.contains("; the bound is ");
        self.failed.unwrap_or_else(is_failure)
    }

    /// Reads all records of a file. Returns an empty list if the file does not exist. Ignores an
    /// incomplete last line, which a crash can leave.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not a record.
    pub fn read_record_file(path: &Path) -> Result<Vec<RunRecord>, RecordFileError> {
        read_json_lines(path)
    }
}

/// Reads a file with one JSON value per line. Returns an empty list if the file does not exist.
pub(super) fn read_json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RecordFileError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::new(path, error).into()),
    };
    parse_json_lines(path, &text)
}

/// Parses the complete lines of a file's text.
pub(super) fn parse_json_lines<T: DeserializeOwned>(
    path: &Path,
    text: &str,
) -> Result<Vec<T>, RecordFileError> {
    let complete_len = text.rfind('\n').map_or(0, |at| at + 1);
    let lines = text
        .get(..complete_len)
        .unwrap_or_default()
        .lines()
        .enumerate();
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|source| RecordFileError::Line {
            path: path.to_owned(),
            line: number + 1,
            source,
        })
    };
    lines.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::super::disturbance_bounds::BoundExceeded;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_run_beyond_a_bound_did_not_fail() {
        let (name, bound) = (String::from("x"), Duration::from_millis(2));
        let bounds = [
            BoundExceeded::LinkLateness {
                name: name.clone(),
                late_us: 3000,
                bound,
            },
            BoundExceeded::SinkLateness {
                name,
                late_ms: 3.0,
                bound,
            },
            BoundExceeded::Steal {
                percent: 9.0,
                bound_percent: 5.0,
            },
        ];
        let discarded = |reason: String| RunRecord {
            discard_reason: Some(reason),
            ..RunRecord::default()
        };
        for bound in bounds {
            assert!(!discarded(bound.to_string()).is_failed_attempt());
        }
        assert!(discarded("sink x: exit status: 1".into()).is_failed_attempt());
        assert!(!RunRecord::default().is_failed_attempt());
    }
}
