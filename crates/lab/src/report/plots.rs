//! What is drawn: every plot as panels, each with what a script draws and the table behind it.

mod bars;
mod distributions;
mod fit;
mod map;
mod series;
mod wanted;

use super::arms::words;
use super::runs::{Runs, has};
use super::table::Table;
use crate::experiment::document::Kind;
use crate::experiment::{Arm, Plan};
use serde::Serialize;
use wanted::Wanted;

/// Most panels of a plot.
pub(super) const PANELS_MAX: usize = 12;
/// Most points of a curve; more cannot be seen.
const POINTS_MAX: usize = 200;

/// A plot.
#[derive(Debug, Clone, Serialize)]
pub struct Drawn {
    /// Above it.
    pub title: String,
    /// How it is read.
    pub about: String,
    /// Beside or below each other.
    pub panels: Vec<Panel>,
}

/// A part of a plot with axes of its own.
#[derive(Debug, Clone, Serialize)]
pub struct Panel {
    /// The values of variables that it is of.
    pub title: String,
    /// What is drawn.
    pub shape: Shape,
    /// The same in numbers.
    pub table: Table,
}

/// What is drawn.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// Points, joined or not.
    Curves {
        /// Across.
        x: Axis,
        /// Up.
        y: Axis,
        /// The curves.
        curves: Vec<Curve>,
    },
    /// Bars with whiskers.
    Bars {
        /// Up.
        y: Axis,
        /// Across.
        names: Vec<String>,
        /// One colour each.
        groups: Vec<Group>,
    },
    /// Boxes with every value.
    Boxes {
        /// Up.
        y: Axis,
        /// Across.
        boxes: Vec<OneBox>,
    },
    /// Ratios by two variables.
    Cells {
        /// The variable across.
        x: String,
        /// The variable down.
        y: String,
        /// Its values.
        columns: Vec<String>,
        /// A row for each value of the variable down.
        rows: Vec<Row>,
    },
}

/// An axis.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axis {
    /// Beside it.
    pub label: String,
    /// Logarithmic.
    pub log: bool,
    /// Values are powers of ten of 1 / (1 - share).
    pub nines: bool,
}

/// Points in order.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// x, y.
    pub points: Vec<[f64; 2]>,
    /// The least and greatest y of each point.
    pub band: Vec<[f64; 2]>,
    /// How points are joined.
    pub join: Join,
    /// The number of its colour, where it is not its own number.
    pub colour: Option<usize>,
}

/// How points are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// By lines.
    #[default]
    Lines,
    /// By steps.
    Steps,
    /// Not at all.
    Dots,
    /// By a thin broken line.
    Dashes,
    /// Marked as the knee.
    Knee,
}

/// Bars of one colour.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// In the legend.
    pub name: String,
    /// For each name: mean, and its interval or twice the mean.
    pub values: Vec<Option<[f64; 3]>>,
}

/// A box.
#[derive(Debug, Clone, Serialize)]
pub struct OneBox {
    /// Below it.
    pub name: String,
    /// Every value, by round.
    pub values: Vec<f64>,
    /// Least, quartiles, greatest.
    pub quartiles: [f64; 5],
}

/// A row of cells.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The value of the variable down.
    pub name: String,
    /// None where nothing was measured.
    pub cells: Vec<Option<Cell>>,
}

/// A ratio.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Geometric mean.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Rounds.
    pub n: usize,
}

/// What the document asks for, or else what its quantities suggest.
pub(super) fn plots(plan: &Plan, runs: &Runs<'_>) -> Vec<Drawn> {
    let all = wanted::wanted(plan, runs);
    let drawn = all
        .iter()
        .map(|wanted| drawn(wanted, runs, plan.document.seed));
    drawn.filter(|drawn| !drawn.panels.is_empty()).collect()
}

fn drawn(wanted: &Wanted, runs: &Runs<'_>, seed: u64) -> Drawn {
    let (about, mut panels) = match wanted.kind {
        Kind::Time => series::time(wanted, runs),
        Kind::Ecdf => distributions::ecdf(wanted, runs),
        Kind::Percentiles => distributions::percentiles(wanted, runs),
        Kind::Bars => bars::bars(wanted, runs, seed),
        Kind::Box => bars::boxes(wanted, runs),
        Kind::Map => map::map(wanted, runs),
        Kind::Fit => fit::fit(wanted, runs, seed),
    };
    let mut about = about.to_owned();
    if panels.len() > PANELS_MAX {
        let more = panels.len() - PANELS_MAX;
        about += &format!(" {more} more panels are left out; `where` and `by` choose others.");
        panels.truncate(PANELS_MAX);
    }
    Drawn {
        title: wanted.title.clone(),
        about,
        panels,
    }
}

/// Arms that stand in one panel, each with its name there.
struct Together<'a> {
    /// The values that they share.
    cell: Arm,
    arms: Vec<(String, &'a Arm)>,
}

/// The arms that a plot is of, by the values of all variables but `by`.
fn panels<'a>(wanted: &Wanted, runs: &'a Runs<'_>) -> Vec<Together<'a>> {
    let mut found: Vec<Together<'a>> = Vec::new();
    for arm in runs.arms().filter(|arm| has(arm, &wanted.only)) {
        let (mut cell, mut own) = (arm.clone(), arm.clone());
        cell.retain(|name, _| !wanted.by.contains(name));
        own.retain(|name, _| wanted.by.contains(name));
        let name = match own.len() {
            1 => own.values().cloned().collect(),
            _ => words(&own),
        };
        match found.iter_mut().find(|panel| panel.cell == cell) {
            Some(panel) => panel.arms.push((name, arm)),
            None => found.push(Together {
                cell,
                arms: vec![(name, arm)],
            }),
        }
    }
    found
}

/// A panel's title: what its arms share, and the quantity where there are several.
fn title(cell: &Arm, quantity: Option<&str>) -> String {
    let shared = if cell.is_empty() {
        String::new()
    } else {
        words(cell)
    };
    match quantity {
        Some(quantity) if shared.is_empty() => quantity.to_owned(),
        Some(quantity) => format!("{quantity} · {shared}"),
        None => shared,
    }
}

/// Five digits: more cannot be seen.
pub(super) fn neat(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let factor = 10f64.powf(4.0 - value.abs().log10().floor());
    match factor.is_finite() && factor > 0.0 {
        true => (value * factor).round() / factor,
        false => value,
    }
}
