//! Compares several result folders of one experiment. The folders can come from different days or
//! machines, or from before and after a change.

use super::arms::{QuantitySummary, describe_arm, interval_as_pair};
use super::comparison_plots::plot_comparison;
use super::html::{render_page_with_plots, write_section};
use super::markdown::{escape_line, machine_table};
use super::record_index::RecordIndex;
use super::table::{ReportTable, escape_html, format_interval, format_number};
use crate::experiment::{Arm, MachineDescription, RunPlan, RunRecord};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a result folder.
pub struct ResultSet {
    /// Name of the folder.
    pub name: String,
    /// The experiment document at the scale of the runs.
    pub plan: RunPlan,
    /// Records of the runs.
    pub records: Vec<RunRecord>,
    /// Descriptions of the machines that executed the runs.
    pub machines: Vec<MachineDescription>,
}

/// The comparison of each result folder with the first folder.
#[derive(Debug, Clone, Serialize)]
pub struct FolderComparison {
    /// The experiment's name.
    pub name: String,
    /// The folders.
    pub folders: Vec<String>,
    /// Differences between the machines, programs and scales of the folders.
    pub differs: Vec<EnvironmentDifference>,
    /// Every quantity that at least two folders contain for the same arm.
    pub rows: Vec<ComparedQuantity>,
}

/// A property of the environment that differs between folders.
#[derive(Debug, Clone, Serialize)]
pub struct EnvironmentDifference {
    /// The property, such as `kernel`.
    pub what: String,
    /// Value in each folder.
    pub values: Vec<String>,
}

/// A quantity of an arm in all folders.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedQuantity {
    /// Values of the variables that define the arm.
    pub arm: Arm,
    /// The quantity.
    pub quantity: String,
    /// Statistics in each folder. `None` if a folder does not contain the quantity.
    pub samples: Vec<Option<QuantitySummary>>,
    /// Change in each further folder, relative to the first folder.
    pub changes: Vec<Option<RatioToFirstFolder>>,
}

/// The factor by which a quantity differs between two folders.
#[derive(Debug, Clone, Serialize)]
pub struct RatioToFirstFolder {
    /// Median of the ratios of the values in this folder to the values in the first folder. Every
    /// round of one folder is compared with every round of the other folder, because the rounds are
    /// not paired.
    #[serde(with = "super::json_number")]
    pub ratio: f64,
    /// 95 % confidence interval of the ratio. `None` if either folder has fewer than six rounds.
    #[serde(with = "super::json_number")]
    pub interval: Option<[f64; 2]>,
    /// Whether the interval excludes 1.
    pub beyond_noise: bool,
}

impl FolderComparison {
    /// Compares one or more folders.
    pub fn new(folders: &[ResultSet]) -> FolderComparison {
        let all: Vec<RecordIndex<'_>> = folders
            .iter()
            .map(|f| RecordIndex::new(&f.plan, &f.records))
            .collect();
        let mut arms: Vec<&Arm> = Vec::new();
        for arm in all.iter().flat_map(|runs| runs.arms()) {
            if !arms.contains(&arm) {
                arms.push(arm);
            }
        }
        let mut rows = Vec::new();
        for arm in arms {
            let records = all.iter().flat_map(|runs| runs.records_of_arm(arm));
            let names: BTreeSet<&String> = records.flat_map(|(_, r)| r.values.keys()).collect();
            for quantity in names {
                let values: Vec<Vec<f64>> =
                    all.iter().map(|runs| runs.values(arm, quantity)).collect();
                if values.iter().filter(|values| !values.is_empty()).count() > 1 {
                    rows.push(compare_quantity(arm, quantity, &values));
                }
            }
        }
        FolderComparison {
            name: folders
                .first()
                .map_or(String::new(), |f| f.plan.document.name.clone()),
            folders: folders.iter().map(|folder| folder.name.clone()).collect(),
            differs: find_differences(folders),
            rows,
        }
    }

    /// Returns the comparison as Markdown.
    pub fn markdown(&self) -> String {
        format!(
            "# {}: {}\n\n{}\n\n## Differences\n{}\n## Quantities\n{}",
            escape_line(&self.name),
            escape_line(&self.folders.join(", ")),
            escape_line(&self.summarize()),
            self.environment_table().markdown(),
            self.quantity_table().markdown()
        )
    }

    /// Returns the comparison as an HTML page.
    pub fn html(&self) -> String {
        let before = format!(
            "<header><h1>{}: {}</h1><div class=\"finding\"><p>{}</p></div></header>",
            escape_html(&self.name),
            escape_html(&self.folders.join(", ")),
            escape_html(&self.summarize()),
        );
        let mut after = String::new();
        let sections = [
            ("Quantities", self.quantity_table()),
            (
                "Differences of machines and programs",
                self.environment_table(),
            ),
        ];
        for (title, table) in sections {
            // Writing to a string cannot fail.
            let _ = write_section(&mut after, title, &table.html());
        }
        render_page_with_plots(&self.name, &before, &[plot_comparison(self)], &after)
    }

    fn summarize(&self) -> String {
        let changes = || {
            self.rows
                .iter()
                .flat_map(|row| row.changes.iter().flatten())
        };
        let judged = changes().filter(|change| change.interval.is_some()).count();
        let beyond = changes().filter(|change| change.beyond_noise).count();
        format!(
            "{beyond} of {judged} ratios to {} exceed the noise of their rounds: their 95 % interval excludes 1. \
             By chance alone, at most about {:.0} would. A ratio needs six rounds of both folders.",
            self.folders.first().map_or("the first", String::as_str),
            judged as f64 * 0.05
        )
    }

    fn environment_table(&self) -> ReportTable {
        let mut table = ReportTable::new([""]);
        table.head.extend(self.folders.iter().cloned());
        let row = |differs: &EnvironmentDifference| {
            let what = [differs.what.clone()];
            what.into_iter()
                .chain(differs.values.iter().cloned())
                .collect()
        };
        table.rows.extend(self.differs.iter().map(row));
        if table.rows.is_empty() {
            let mut row = vec!["no recorded property".to_owned()];
            row.resize(table.head.len(), "–".into());
            table.rows.push(row);
        }
        table
    }

    fn quantity_table(&self) -> ReportTable {
        let mut table = ReportTable::new(["arm", "quantity"]);
        for (number, folder) in self.folders.iter().enumerate() {
            table
                .head
                .extend([format!("{folder}: median"), "95 % interval".into()]);
            if number > 0 {
                table.head.extend([
                    "ratio".into(),
                    "95 % interval".into(),
                    "beyond noise".into(),
                ]);
            }
        }
        for row in &self.rows {
            let mut cells = vec![describe_arm(&row.arm), row.quantity.clone()];
            for (place, sample) in row.samples.iter().enumerate() {
                let of =
                    |text: fn(&QuantitySummary) -> String| sample.as_ref().map_or("–".into(), text);
                cells.push(of(|sample| format_number(sample.median)));
                cells.push(of(QuantitySummary::format_interval));
                let Some(place) = place.checked_sub(1) else {
                    continue;
                };
                let change = row.changes.get(place).and_then(Option::as_ref);
                cells.push(change.map_or("–".into(), |change| format_number(change.ratio)));
                cells.push(format_interval(change.and_then(|change| change.interval)));
                let word = match change {
                    Some(change) if change.beyond_noise && change.ratio > 1.0 => "more",
                    Some(change) if change.beyond_noise => "less",
                    _ => "–",
                };
                cells.push(word.into());
            }
            table.rows.push(cells);
        }
        table
    }
}

fn compare_quantity(arm: &Arm, quantity: &str, values: &[Vec<f64>]) -> ComparedQuantity {
    let first = values.first().map_or(&[][..], Vec::as_slice);
    let others = values.get(1..).unwrap_or_default();
    ComparedQuantity {
        arm: arm.clone(),
        quantity: quantity.to_owned(),
        samples: values
            .iter()
            .map(|values| QuantitySummary::from_values(values))
            .collect(),
        changes: others
            .iter()
            .map(|other| change_between(first, other))
            .collect(),
    }
}

/// Returns the change from `first` to `other`. Returns `None` if `first` or `other` is empty, if a
/// value is negative or not finite, or if both contain zero.
fn change_between(first: &[f64], other: &[f64]) -> Option<RatioToFirstFolder> {
    let (ratio, interval) = stats::unpaired_ratio(other, first)?;
    let interval = interval.map(interval_as_pair);
    Some(RatioToFirstFolder {
        ratio,
        interval,
        beyond_noise: interval.is_some_and(|[low, high]| low > 1.0 || high < 1.0),
    })
}

/// Returns the table rows of the controller's machine, and then the rows of the agents' machines,
/// sorted by the name of the agent. If a machine was described several times, uses the last
/// description.
fn machine_rows(all: &[MachineDescription]) -> Vec<Vec<String>> {
    let by_agent = all
        .iter()
        .map(|machine| (machine.agent.as_deref(), machine));
    let last: BTreeMap<Option<&str>, &MachineDescription> = by_agent.collect();
    let rows = last.into_iter().flat_map(|(agent, machine)| {
        let mut rows = machine_table(machine).rows;
        if let Some(agent) = agent {
            rows.remove(0);
            for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
                *name = format!("{agent}: {name}");
            }
        }
        rows
    });
    rows.collect()
}

/// Finds the properties of machines, programs and scales that differ between folders.
fn find_differences(folders: &[ResultSet]) -> Vec<EnvironmentDifference> {
    let tables = folders.iter().map(|folder| {
        let mut rows = machine_rows(&folder.machines);
        rows.push(vec![
            "scale".into(),
            folder.plan.scale.clone().unwrap_or("as written".into()),
        ]);
        rows
    });
    let tables: Vec<Vec<Vec<String>>> = tables.collect();
    let mut names: Vec<&String> = Vec::new();
    for name in tables.iter().flatten().filter_map(|row| row.first()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |name: &String, rows: &[Vec<String>]| {
        let found = rows.iter().find(|row| row.first() == Some(name));
        found
            .and_then(|row| row.get(1))
            .cloned()
            .unwrap_or("–".into())
    };
    let each = names.into_iter().map(|name| EnvironmentDifference {
        what: name.clone(),
        values: tables.iter().map(|rows| of(name, rows)).collect(),
    });
    let apart = |differs: &EnvironmentDifference| {
        differs
            .values
            .iter()
            .any(|value| Some(value) != differs.values.first())
    };
    each.filter(apart).collect()
}
