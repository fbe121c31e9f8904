//! Creates reports of experiments as HTML, as Markdown with SVG plots, and as JSON. Reports are
//! computed from the records of a result folder, so that new questions can be answered without new
//! runs.
//!
//! [`ExperimentReport`] is computed once and then formatted as HTML, Markdown or JSON.
//! [`FolderComparison`] compares several folders. [`Findings`] judges the claims of the source
//! documents. [`index_reports`] lists reports, and [`read_report`] reads a stored report (`report.json` or
//! `report.json.gz`).

mod arms;
mod claims;
mod compare;
mod comparison_plots;
mod experiment_finding;
mod findings;
mod html;
mod json_number;
mod markdown;
mod plots;
mod quantity_names;
mod record_index;
mod report_index;
mod reported_commands;
mod round_to_digits;
mod stored;
mod svg;
mod table;
mod verdict;

pub use arms::{ArmReport, QuantitySummary};
pub use claims::ClaimResult;
pub use compare::{FolderComparison, ResultSet};
pub use experiment_finding::{ExperimentFinding, FindingOutcome};
pub use findings::{CatalogueError, ClaimCatalogue, Findings, FindingsError};
pub use plots::PlotData;
pub use report_index::index_reports;
pub use reported_commands::ReportedCommand;
pub use stored::{ReportFileError, read_report};
pub use table::ReportTable;
pub use verdict::Verdict;

use crate::experiment::{Arm, MachineDescription, RunPlan, RunRecord};
use record_index::RecordIndex;
use serde::{Deserialize, Serialize};

/// Version of the JSON format of reports.
const FORMAT: u32 = 2;

/// The results of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExperimentReport {
    /// Version of the JSON format. In reports of earlier versions, intervals and verdicts were
    /// computed differently.
    pub format: u32,
    /// Title of the document.
    pub name: String,
    /// Question of the document.
    pub question: String,
    /// Finding of the source document in words.
    pub found: String,
    /// Scale of the run.
    pub scale: Option<String>,
    /// The overall result, with the number of claims with each verdict.
    pub finding: ExperimentFinding,
    /// Evaluated expectations.
    pub claims: Vec<ClaimResult>,
    /// Statistics of every arm.
    pub arms: Vec<ArmReport>,
    /// Number of runs that were not discarded.
    pub runs: usize,
    /// Number of rounds with at least one run that was not discarded.
    pub rounds: usize,
    /// Start of the first run that was not discarded, in seconds since 1970.
    pub began_unix_s: f64,
    /// End of the last run that was not discarded, in seconds since 1970.
    pub ended_unix_s: f64,
    /// Discarded runs.
    #[serde(rename = "thrown")]
    pub discarded: Vec<DiscardedRun>,
    /// Highest 99th percentile of the link lateness in any run, in microseconds. Discarded runs are
    /// excluded.
    pub link_late_us: u64,
    /// Highest share of processor time that the hypervisor took in any run. Discarded runs are
    /// excluded.
    pub steal: f64,
    /// Highest load average in any run. The load average is the number of running and runnable
    /// processes. Discarded runs are excluded.
    pub load: f64,
    /// Descriptions of the machines that executed the runs.
    pub machines: Vec<MachineDescription>,
    /// Commands of the runs.
    pub commands: Vec<ReportedCommand>,
    /// Plots.
    pub plots: Vec<PlotData>,
    #[serde(skip)]
    text: String,
}

/// A discarded run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DiscardedRun {
    /// Values of the variables that define the arm.
    pub arm: Arm,
    /// Number of the round, from 0.
    pub round: u32,
    /// Number of the attempt, from 0.
    pub attempt: u32,
    /// Reason.
    pub why: String,
}

impl ExperimentReport {
    /// Computes the report from a plan and the records of its runs. `text` is the experiment
    /// document that was run.
    pub fn new(
        plan: &RunPlan,
        text: &str,
        records: &[RunRecord],
        machines: Vec<MachineDescription>,
    ) -> ExperimentReport {
        let document = &plan.document;
        let runs = RecordIndex::new(plan, records);
        let counted = || {
            records
                .iter()
                .filter(|record| record.discard_reason.is_none())
        };
        let max_of = |of: fn(&RunRecord) -> f64| counted().map(of).fold(0.0, f64::max);
        let claims = claims::evaluate_claims(plan, &runs);
        let late = counted().flat_map(|record| record.link_late_us.values().copied());
        let discarded = records.iter().filter_map(|record| {
            Some(DiscardedRun {
                arm: record.arm.clone(),
                round: record.round,
                attempt: record.attempt,
                why: record.discard_reason.clone()?,
            })
        });
        let arms: Vec<_> = runs
            .arms()
            .map(|arm| ArmReport::from_runs(arm, &runs))
            .collect();
        let rounds: std::collections::BTreeSet<u32> = counted().map(|r| r.round).collect();
        ExperimentReport {
            format: FORMAT,
            name: document.name.clone(),
            question: document.question.clone(),
            found: document.found.clone(),
            scale: plan.scale.clone(),
            finding: ExperimentFinding::new(&claims, &arms),
            arms,
            claims,
            runs: counted().count(),
            rounds: rounds.len(),
            began_unix_s: counted().map(|r| r.unix_s).reduce(f64::min).unwrap_or(0.0),
            ended_unix_s: max_of(|record| record.unix_s + record.took_s),
            discarded: discarded.collect(),
            link_late_us: late.max().unwrap_or(0),
            steal: max_of(|record| record.noise.steal),
            load: max_of(|record| record.noise.load),
            machines,
            commands: reported_commands::list_commands(plan),
            plots: plots::build_plots(plan, &runs),
            text: text.to_owned(),
        }
    }

    /// Returns whether a claim is contradicted or not as expected, or whether an arm could not be
    /// measured.
    pub fn has_failed(&self) -> bool {
        let fails = |claim: &ClaimResult| {
            matches!(
                claim.verdict,
                Verdict::Contradicted | Verdict::NotAsExpected
            )
        };
        self.claims.iter().any(fails) || self.arms.iter().any(|of| of.runs == 0)
    }

    /// Returns the report as JSON with a final line break.
    ///
    /// # Errors
    /// A value cannot be encoded as JSON.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(text + "\n")
    }
}
