//! Reports of experiments: HTML, Markdown with SVG plots, and JSON. They are made from the records
//! of a result folder, so that a new question needs no new run.
//!
//! [`ExperimentReport`] is computed once; HTML, Markdown and JSON are three forms of it.
//! [`Comparison`] compares several folders, [`Findings`] judges the claims of the source documents, [`index_reports`] lists reports, and [`read_report`]
//! reads a stored report (`report.json` or `report.json.gz`).

mod arms;
mod claims;
mod commands;
mod compare;
mod comparison_plots;
mod finding;
mod findings;
mod html;
mod index;
mod json_number;
mod markdown;
mod plots;
mod quantity_words;
mod round_to_digits;
mod runs;
mod stored;
mod svg;
mod table;
mod verdict;

pub use arms::{ArmReport, QuantitySummary};
pub use claims::ClaimResult;
pub use commands::ReportedCommand;
pub use compare::{Comparison, ResultSet};
pub use finding::{FindingOutcome, SourceFinding};
pub use findings::{CatalogueError, ClaimCatalogue, Findings, FindingsError};
pub use index::index_reports;
pub use plots::ReportPlot;
pub use stored::{ReportFileError, read_report};
pub use table::ReportTable;
pub use verdict::Verdict;

use crate::experiment::{Arm, MachineDescription, RunPlan, RunRecord};
use runs::RunIndex;
use serde::{Deserialize, Serialize};

/// Version of the format.
const FORMAT: u32 = 2;

/// The results of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExperimentReport {
    /// Format version; earlier versions had other intervals and verdicts.
    pub format: u32,
    /// Title of the document.
    pub name: String,
    /// Question of the document.
    pub question: String,
    /// Finding of the source.
    pub found: String,
    /// Scale of the run.
    pub scale: Option<String>,
    /// The number of claims with each verdict.
    pub finding: SourceFinding,
    /// Evaluated expectations.
    pub claims: Vec<ClaimResult>,
    /// Statistics of every arm.
    pub arms: Vec<ArmReport>,
    /// Runs that count.
    pub runs: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Start of the first run: seconds since 1970.
    pub began_unix_s: f64,
    /// End of the last run.
    pub ended_unix_s: f64,
    /// Discarded runs.
    #[serde(rename = "thrown")]
    pub discarded: Vec<DiscardedRun>,
    /// Maximum over counted runs of the 99th percentile of link lateness, in microseconds.
    pub link_late_us: u64,
    /// Largest share of stolen processor time that a counted run had.
    pub steal: f64,
    /// Maximum number of running and runnable processes.
    pub load: f64,
    /// Machines of the runs.
    pub machines: Vec<MachineDescription>,
    /// Commands of the runs.
    pub commands: Vec<ReportedCommand>,
    /// Plots.
    pub plots: Vec<ReportPlot>,
    #[serde(skip)]
    text: String,
}

/// A discarded run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DiscardedRun {
    /// Values of the variables.
    pub arm: Arm,
    /// Round, from 0.
    pub round: u32,
    /// Attempt, from 0.
    pub attempt: u32,
    /// Reason.
    pub why: String,
}

impl ExperimentReport {
    /// Computes the report of a plan's records. `text` is the document as it was run.
    pub fn new(
        plan: &RunPlan,
        text: &str,
        records: &[RunRecord],
        machines: Vec<MachineDescription>,
    ) -> ExperimentReport {
        let document = &plan.document;
        let runs = RunIndex::new(plan, records);
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
            finding: SourceFinding::new(&claims, &arms),
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
            commands: commands::list_commands(plan),
            plots: plots::draw_plots(plan, &runs),
            text: text.to_owned(),
        }
    }

    /// Returns whether a claim is contradicted, or not as expected, or an arm could not be measured.
    pub fn failed(&self) -> bool {
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
