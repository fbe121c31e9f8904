//! Distributions: shares of values, and percentiles.

use super::super::runs::Runs;
use super::super::table::{Table, number};
use super::wanted::Wanted;
use super::{Axis, Curve, Join, POINTS_MAX, Panel, Shape, neat, panels, title};
use crate::experiment::{Arm, add_counts, counts};
use hdrhistogram::Histogram;

const QUANTILES: [(&str, f64); 6] = [
    ("50 %", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("greatest", 1.0),
];

/// A panel for each quantity, number or histogram.
pub(super) fn ecdf(wanted: &Wanted, runs: &Runs<'_>) -> (&'static str, Vec<Panel>) {
    let curve = |values: &Values| match values {
        Values::Merged(merged) => {
            let points = thinned(merged);
            let start = points.first().map(|[first, _]| [*first, 0.0]);
            start.into_iter().chain(points).collect()
        }
        Values::Numbers(sorted) => {
            let n = sorted.len() as f64;
            let steps = sorted.iter().zip(1u32..);
            let steps = steps.map(|(value, k)| [*value, f64::from(k) / n]);
            let start = sorted.first().map(|first| [*first, 0.0]);
            start.into_iter().chain(steps).collect()
        }
    };
    let axes = |label: String| {
        let x = Axis {
            label,
            log: wanted.log,
            ..Axis::default()
        };
        let y = Axis {
            label: "share".into(),
            ..Axis::default()
        };
        (x, y)
    };
    let about = "The share of values that are not above a value: higher and further left is less.";
    (
        about,
        distributions(wanted, runs, Join::Steps, &curve, &axes),
    )
}

/// A panel for each histogram, by nines.
pub(super) fn percentiles(wanted: &Wanted, runs: &Runs<'_>) -> (&'static str, Vec<Panel>) {
    let curve = |values: &Values| match values {
        Values::Merged(merged) => {
            let points = thinned(merged).into_iter();
            let nines = points.filter(|[_, share]| *share < 1.0);
            nines
                .map(|[value, share]| [-(1.0 - share).log10(), value])
                .collect()
        }
        Values::Numbers(_) => Vec::new(),
    };
    let axes = |label: String| {
        let x = Axis {
            label: "percentile".into(),
            nines: true,
            ..Axis::default()
        };
        let y = Axis {
            label,
            log: wanted.log,
            ..Axis::default()
        };
        (x, y)
    };
    let about = "All rounds together; each step to the right is a tenth of what is left.";
    (
        about,
        distributions(wanted, runs, Join::Lines, &curve, &axes),
    )
}

fn distributions(
    wanted: &Wanted,
    runs: &Runs<'_>,
    join: Join,
    curve: &dyn Fn(&Values) -> Vec<[f64; 2]>,
    axes: &dyn Fn(String) -> (Axis, Axis),
) -> Vec<Panel> {
    let several = wanted.quantities.len() > 1;
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        for together in panels(wanted, runs) {
            let of = |(name, arm): (String, &Arm)| (name, Values::of(arm, quantity, runs));
            let arms: Vec<(String, Values)> = together.arms.into_iter().map(of).collect();
            let curves = arms.iter().map(|(name, values)| Curve {
                name: name.clone(),
                points: curve(values)
                    .into_iter()
                    .map(|point| point.map(neat))
                    .collect(),
                join,
                ..Curve::default()
            });
            let curves: Vec<Curve> = curves.filter(|curve| curve.points.len() > 1).collect();
            if curves.is_empty() {
                continue;
            }
            let label = runs.with_unit(quantity);
            let (x, y) = axes(label.clone());
            found.push(Panel {
                title: title(&together.cell, several.then_some(label.as_str())),
                shape: Shape::Curves { x, y, curves },
                table: quantiles(&arms),
            });
        }
    }
    found
}

fn quantiles(arms: &[(String, Values)]) -> Table {
    let mut table = Table::new(["arm", "values"]);
    table
        .head
        .extend(QUANTILES.map(|(name, _)| name.to_owned()));
    for (name, values) in arms {
        let cells = [name.clone(), values.count().to_string()];
        let figures = QUANTILES.map(|(_, q)| match values.quantile(q) {
            figure if figure.is_finite() => number(figure),
            _ => "–".into(),
        });
        table.rows.push(cells.into_iter().chain(figures).collect());
    }
    table
}

/// What all rounds of an arm have measured of a quantity.
enum Values {
    Merged(Merged),
    /// In order.
    Numbers(Vec<f64>),
}

impl Values {
    fn of(arm: &Arm, quantity: &str, runs: &Runs<'_>) -> Values {
        match merged(arm, quantity, runs) {
            Some(merged) => Values::Merged(merged),
            None => {
                let mut values = runs.values(arm, quantity);
                values.sort_by(f64::total_cmp);
                Values::Numbers(values)
            }
        }
    }

    fn count(&self) -> u64 {
        match self {
            Values::Merged(merged) => merged.all.len(),
            Values::Numbers(values) => values.len() as u64,
        }
    }

    fn quantile(&self, q: f64) -> f64 {
        match self {
            Values::Merged(merged) => merged.all.value_at_quantile(q) as f64 * merged.times,
            Values::Numbers(values) => stats::quantile(values, q),
        }
    }
}

/// A histogram of all rounds.
struct Merged {
    all: Histogram<u64>,
    times: f64,
}

/// None where no round has one.
fn merged(arm: &Arm, quantity: &str, runs: &Runs<'_>) -> Option<Merged> {
    let (mut all, mut times) = (None, 1.0);
    for (_, record) in runs.of(arm) {
        let Some(counted) = record.histograms.get(quantity) else {
            continue;
        };
        // What this program has written it can read.
        if let Ok(one) = counts(&counted.v2) {
            add_counts(&mut all, one).ok()?;
            times = counted.times;
        }
    }
    let all = all.filter(|all| !all.is_empty())?;
    Some(Merged { all, times })
}

/// Values and the shares within them: all of the tail, and of the rest evenly chosen ones.
fn thinned(merged: &Merged) -> Vec<[f64; 2]> {
    let total = merged.all.len() as f64;
    let mut seen = 0;
    let all = merged.all.iter_recorded().map(|step| {
        seen += step.count_since_last_iteration();
        [
            step.value_iterated_to() as f64 * merged.times,
            seen as f64 / total,
        ]
    });
    let all: Vec<[f64; 2]> = all.collect();
    let keep_from = all.len().saturating_sub(POINTS_MAX / 2);
    let every = keep_from.div_ceil(POINTS_MAX / 2).max(1);
    let kept = all
        .iter()
        .enumerate()
        .filter(|(n, _)| *n >= keep_from || n % every == 0);
    kept.map(|(_, point)| *point).collect()
}
