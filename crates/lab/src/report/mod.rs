//! What records show: one page, the same as Markdown, and as JSON; made from what a run's folder
//! holds, never from memory, so that a new question needs no new run.
//!
//! [`Report`] is made once of a plan, its records and its machines; [`Report::html`],
//! [`Report::markdown`] and JSON are three forms of it. [`Comparison`] sets several folders of one
//! experiment beside each other, [`index`](fn@index) lists reports.

mod arms;
mod beside;
mod claims;
mod commands;
mod compare;
mod finding;
mod html;
mod index;
mod markdown;
mod plots;
mod runs;
mod table;

pub use arms::{OfArm, Sample};
pub use claims::{Claim, Verdict};
pub use commands::Command;
pub use compare::{Comparison, Folder};
pub use finding::{Finding, Outcome};
pub use index::index;
pub use plots::Drawn;
pub use table::Table;

use crate::experiment::{Arm, Machine, Plan, Record};
use runs::Runs;
use serde::Serialize;

/// Everything that is said of an experiment.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The document's name.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// What its source found.
    pub found: String,
    /// The document's size that was run.
    pub scale: Option<String>,
    /// Whether the source's finding was repeated.
    pub finding: Finding,
    /// What was expected, cell by cell.
    pub claims: Vec<Claim>,
    /// Every arm's quantities.
    pub arms: Vec<OfArm>,
    /// Runs that count.
    pub runs: usize,
    /// Rounds that they are of.
    pub rounds: usize,
    /// When the first of them began: seconds since 1970.
    pub began_unix_s: f64,
    /// When the last of them was over.
    pub ended_unix_s: f64,
    /// Runs that were thrown away.
    pub thrown: Vec<Thrown>,
    /// The highest of all runs that count: 99th percentile of a link's lateness, in microseconds.
    pub link_late_us: u64,
    /// The highest share of stolen processor time.
    pub steal: f64,
    /// Processes that ran or wanted to, at most.
    pub load: f64,
    /// What it ran on.
    pub machines: Vec<Machine>,
    /// What was run.
    pub commands: Vec<Command>,
    /// What is drawn.
    pub plots: Vec<Drawn>,
    #[serde(skip)]
    text: String,
}

/// A run that does not count.
#[derive(Debug, Clone, Serialize)]
pub struct Thrown {
    /// The variables' values.
    pub arm: Arm,
    /// From 0.
    pub round: u32,
    /// Which try, from 0.
    pub attempt: u32,
    /// Why.
    pub why: String,
}

impl Report {
    /// What the records of a plan say. `text` is the document as it was run.
    pub fn new(plan: &Plan, text: &str, records: &[Record], machines: Vec<Machine>) -> Report {
        let document = &plan.document;
        let runs = Runs::new(plan, records);
        let counted = || records.iter().filter(|record| record.thrown.is_none());
        let most = |of: fn(&Record) -> f64| counted().map(of).fold(0.0, f64::max);
        let claims = claims::claims(plan, &runs);
        let late = counted().flat_map(|record| record.link_late_us.values().copied());
        let thrown = records.iter().filter_map(|record| {
            Some(Thrown {
                arm: record.arm.clone(),
                round: record.round,
                attempt: record.attempt,
                why: record.thrown.clone()?,
            })
        });
        let rounds: std::collections::BTreeSet<u32> = counted().map(|r| r.round).collect();
        Report {
            name: document.name.clone(),
            question: document.question.clone(),
            found: document.found.clone(),
            scale: plan.scale.clone(),
            finding: Finding::of(&claims),
            arms: runs
                .arms()
                .map(|arm| OfArm::of(arm, &runs, document.seed))
                .collect(),
            claims,
            runs: counted().count(),
            rounds: rounds.len(),
            began_unix_s: counted().map(|r| r.unix_s).reduce(f64::min).unwrap_or(0.0),
            ended_unix_s: most(|record| record.unix_s + record.took_s),
            thrown: thrown.collect(),
            link_late_us: late.max().unwrap_or(0),
            steal: most(|record| record.noise.steal),
            load: most(|record| record.noise.load),
            machines,
            commands: commands::commands(plan),
            plots: plots::plots(plan, &runs),
            text: text.to_owned(),
        }
    }

    /// Whether a claim fails, or an arm could not be measured at all.
    pub fn failed(&self) -> bool {
        let fails = |claim: &Claim| claim.verdict == Verdict::Fails;
        self.claims.iter().any(fails) || self.arms.iter().any(|of| of.runs == 0)
    }

    /// As JSON, with its last line ended.
    ///
    /// # Errors
    /// Never, as far as is known: what cannot be written.
    pub fn json(&self) -> Result<String, String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        Ok(text + "\n")
    }
}
