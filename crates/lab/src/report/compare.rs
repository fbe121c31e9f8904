//! Runs of one experiment beside each other: two days, two machines, before and after a change.

use super::arms::{Sample, pair, words};
use super::beside::beside;
use super::html::illustrated;
use super::markdown::{line, machine_table};
use super::runs::Runs;
use super::table::{Table, escape, number, range};
use crate::experiment::{Arm, Machine, Plan, Record};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a run's folder holds.
pub struct Folder {
    /// How it is called.
    pub name: String,
    /// Its document, in the size that was run.
    pub plan: Plan,
    /// Its runs.
    pub records: Vec<Record>,
    /// What it ran on.
    pub machines: Vec<Machine>,
}

/// Folders beside each other; each is compared with the first.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The experiment's name.
    pub name: String,
    /// The folders.
    pub folders: Vec<String>,
    /// What is not alike in machines, programs and sizes: of what, and each folder's.
    pub differs: Vec<Differs>,
    /// Every quantity of every arm that two folders have.
    pub rows: Vec<Compared>,
}

/// Something that is not alike.
#[derive(Debug, Clone, Serialize)]
pub struct Differs {
    /// Such as `kernel`.
    pub what: String,
    /// Of each folder.
    pub values: Vec<String>,
}

/// A quantity of an arm.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// The variables' values.
    pub arm: Arm,
    /// What.
    pub quantity: String,
    /// Of each folder; none where it was not measured.
    pub samples: Vec<Option<Sample>>,
    /// Of each folder but the first, to the first.
    pub changes: Vec<Option<Change>>,
}

/// A ratio of means.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// Geometric mean by geometric mean.
    pub ratio: f64,
    /// Its 95 % bootstrap interval over rounds, which are not paired.
    pub interval: Option<[f64; 2]>,
    /// Whether the interval is beside 1.
    pub beyond_noise: bool,
}

impl Comparison {
    /// Of at least one folder.
    pub fn new(folders: &[Folder]) -> Comparison {
        let all: Vec<Runs<'_>> = folders
            .iter()
            .map(|f| Runs::new(&f.plan, &f.records))
            .collect();
        let seed = folders
            .first()
            .map_or(0, |folder| folder.plan.document.seed);
        let mut arms: Vec<&Arm> = Vec::new();
        for arm in all.iter().flat_map(|runs| runs.arms()) {
            if !arms.contains(&arm) {
                arms.push(arm);
            }
        }
        let mut rows = Vec::new();
        for arm in arms {
            let records = all.iter().flat_map(|runs| runs.of(arm));
            let names: BTreeSet<&String> = records.flat_map(|(_, r)| r.values.keys()).collect();
            for quantity in names {
                let values: Vec<Vec<f64>> =
                    all.iter().map(|runs| runs.values(arm, quantity)).collect();
                if values.iter().filter(|values| !values.is_empty()).count() > 1 {
                    rows.push(compared(arm, quantity, &values, seed));
                }
            }
        }
        Comparison {
            name: folders
                .first()
                .map_or(String::new(), |f| f.plan.document.name.clone()),
            folders: folders.iter().map(|folder| folder.name.clone()).collect(),
            differs: differs(folders),
            rows,
        }
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        format!(
            "# {}: {}\n\n{}\n\n## What differs\n{}\n## Quantities\n{}",
            line(&self.name),
            line(&self.folders.join(", ")),
            line(&self.says()),
            self.differs_table().markdown(),
            self.table().markdown()
        )
    }

    /// As a page.
    pub fn html(&self) -> String {
        let before = format!(
            "<header><h1>{}: {}</h1><p>{}</p></header><section><h2>What differs</h2>{}</section>",
            escape(&self.name),
            escape(&self.folders.join(", ")),
            escape(&self.says()),
            self.differs_table().html()
        );
        let after = format!(
            "<section><h2>Quantities</h2>{}</section>",
            self.table().html()
        );
        illustrated(&self.name, &before, &[beside(self)], &after)
    }

    fn says(&self) -> String {
        let changes = || {
            self.rows
                .iter()
                .flat_map(|row| row.changes.iter().flatten())
        };
        let judged = changes().filter(|change| change.interval.is_some()).count();
        let beyond = changes().filter(|change| change.beyond_noise).count();
        format!(
            "{beyond} of {judged} ratios to {} lie beyond the noise of their rounds: their 95 % interval is \
             beside 1. By chance alone some {:.0} would.",
            self.folders.first().map_or("the first", String::as_str),
            judged as f64 * 0.05
        )
    }

    fn differs_table(&self) -> Table {
        let mut table = Table::new([""]);
        table.head.extend(self.folders.iter().cloned());
        let row = |differs: &Differs| {
            let what = [differs.what.clone()];
            what.into_iter()
                .chain(differs.values.iter().cloned())
                .collect()
        };
        table.rows.extend(self.differs.iter().map(row));
        if table.rows.is_empty() {
            let mut row = vec!["nothing that is written down".to_owned()];
            row.resize(table.head.len(), "–".into());
            table.rows.push(row);
        }
        table
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["arm", "quantity"]);
        for (number, folder) in self.folders.iter().enumerate() {
            table.head.extend([folder.clone(), "95 %".into()]);
            if number > 0 {
                table
                    .head
                    .extend(["ratio".into(), "95 %".into(), "beyond noise".into()]);
            }
        }
        for row in &self.rows {
            let mut cells = vec![words(&row.arm), row.quantity.clone()];
            for (place, sample) in row.samples.iter().enumerate() {
                let mean = sample
                    .as_ref()
                    .map_or("–".into(), |sample| number(sample.mean));
                cells.extend([
                    mean,
                    range(sample.as_ref().and_then(|sample| sample.interval)),
                ]);
                let Some(place) = place.checked_sub(1) else {
                    continue;
                };
                let change = row.changes.get(place).and_then(Option::as_ref);
                cells.push(change.map_or("–".into(), |change| number(change.ratio)));
                cells.push(range(change.and_then(|change| change.interval)));
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

fn compared(arm: &Arm, quantity: &str, values: &[Vec<f64>], seed: u64) -> Compared {
    let first = values.first().map_or(&[][..], Vec::as_slice);
    let others = values.get(1..).unwrap_or_default();
    Compared {
        arm: arm.clone(),
        quantity: quantity.to_owned(),
        samples: values
            .iter()
            .map(|values| Sample::of(values, seed))
            .collect(),
        changes: others
            .iter()
            .map(|other| change(first, other, seed))
            .collect(),
    }
}

/// None where a value is not above zero.
fn change(first: &[f64], other: &[f64], seed: u64) -> Option<Change> {
    let (ratio, interval) = stats::unpaired(other, first, seed)?;
    let interval = interval.map(pair);
    Some(Change {
        ratio,
        interval,
        beyond_noise: interval.is_some_and(|[low, high]| low > 1.0 || high < 1.0),
    })
}

/// What was run on at last: the machine of whoever ran it, and each agent's under its name.
fn machines(all: &[Machine]) -> Vec<Vec<String>> {
    let by_agent = all
        .iter()
        .map(|machine| (machine.agent.as_deref(), machine));
    let last: BTreeMap<Option<&str>, &Machine> = by_agent.collect();
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

/// What is not alike: machines with their programs, and the size.
fn differs(folders: &[Folder]) -> Vec<Differs> {
    let tables = folders.iter().map(|folder| {
        let mut rows = machines(&folder.machines);
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
    let each = names.into_iter().map(|name| Differs {
        what: name.clone(),
        values: tables.iter().map(|rows| of(name, rows)).collect(),
    });
    let apart = |differs: &Differs| {
        differs
            .values
            .iter()
            .any(|value| Some(value) != differs.values.first())
    };
    each.filter(apart).collect()
}
