//! Series over time, and distributions.

use super::super::runs::Runs;
use super::super::table::{Table, number};
use super::wanted::Wanted;
use super::{Axis, Curve, Join, Panel, Shape, Together, neat, panels, title};
use crate::experiment::{Arm, add_counts, counts};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Most points of a curve; more cannot be seen.
const POINTS_MAX: usize = 200;
const QUANTILES: [(&str, f64); 6] = [
    ("50 %", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("greatest", 1.0),
];

/// A panel for each series: the mean of rounds, and how far they lie apart.
pub(super) fn time(wanted: &Wanted, runs: &Runs<'_>) -> (&'static str, Vec<Panel>) {
    let several = wanted.quantities.len() > 1;
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        for together in panels(wanted, runs) {
            let mut table = Table::new([
                "arm", "rounds", "points", "first", "mean", "last", "greatest",
            ]);
            let curves = together.arms.iter().filter_map(|(name, arm)| {
                let all = runs.of(arm);
                let rounds: Vec<&[[f64; 2]]> = all
                    .filter_map(|(_, r)| r.series.get(quantity).map(Vec::as_slice))
                    .collect();
                let (points, band) = over_rounds(&rounds);
                let values: Vec<f64> = points.iter().map(|[_, value]| *value).collect();
                let (first, last) = (*values.first()?, *values.last()?);
                table.rows.push(vec![
                    name.clone(),
                    rounds.len().to_string(),
                    rounds
                        .iter()
                        .map(|round| round.len())
                        .sum::<usize>()
                        .to_string(),
                    number(first),
                    number(stats::mean(&values)),
                    number(last),
                    number(band.iter().map(|[_, high]| *high).fold(f64::MIN, f64::max)),
                ]);
                Some(Curve {
                    name: name.clone(),
                    points,
                    band,
                    ..Curve::default()
                })
            });
            let curves: Vec<Curve> = curves.collect();
            let label = runs.with_unit(quantity);
            if !curves.is_empty() {
                found.push(Panel {
                    title: title(&together.cell, several.then_some(label.as_str())),
                    shape: Shape::Curves {
                        x: Axis {
                            label: "time or step".into(),
                            ..Axis::default()
                        },
                        y: Axis {
                            label,
                            log: wanted.log,
                            ..Axis::default()
                        },
                        curves,
                    },
                    table,
                });
            }
        }
    }
    (
        "The mean of the rounds; behind it, from the least to the greatest round.",
        found,
    )
}

/// A place on the axis: where its points lie, and each round's values.
type Place = (Vec<f64>, BTreeMap<usize, Vec<f64>>);

/// Means, and least and greatest, at each place on the axis; of places in bins, where rounds have
/// different ones or too many.
fn over_rounds(rounds: &[&[[f64; 2]]]) -> (Vec<[f64; 2]>, Vec<[f64; 2]>) {
    let all = || rounds.iter().flat_map(|round| round.iter().copied());
    let low = all().map(|[t, _]| t).fold(f64::INFINITY, f64::min);
    let high = all().map(|[t, _]| t).fold(f64::NEG_INFINITY, f64::max);
    let same = |round: &&[[f64; 2]]| {
        let first = rounds.first().copied().unwrap_or_default();
        round.len() == first.len() && round.iter().zip(first).all(|(a, b)| a[0] == b[0])
    };
    let longest = rounds.iter().map(|round| round.len()).max().unwrap_or(0);
    let exact = longest <= POINTS_MAX && rounds.iter().all(same);
    let bins = longest.clamp(1, POINTS_MAX);
    let width = ((high - low) / bins as f64).max(f64::MIN_POSITIVE);
    let bin = |number: usize, t: f64| match exact {
        true => number,
        false => (((t - low) / width) as usize).min(bins - 1),
    };
    let mut places: BTreeMap<usize, Place> = BTreeMap::new();
    for (round, points) in rounds.iter().enumerate() {
        for (number, [t, value]) in points.iter().enumerate() {
            let place = places.entry(bin(number, *t)).or_default();
            place.0.push(*t);
            place.1.entry(round).or_default().push(*value);
        }
    }
    let each = places.into_values().map(|(ts, by_round)| {
        let means: Vec<f64> = by_round
            .values()
            .map(|values| stats::mean(values))
            .collect();
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let point = [stats::mean(&ts), stats::mean(&means)];
        (point.map(neat), [least, most].map(neat))
    });
    each.unzip()
}

/// A panel for each quantity, number or histogram.
pub(super) fn ecdf(wanted: &Wanted, runs: &Runs<'_>) -> (&'static str, Vec<Panel>) {
    let curve = |arm: &Arm, quantity: &str| {
        if let Some(merged) = merged(arm, quantity, runs) {
            let mut points = thinned(&merged);
            if let Some([first, _]) = points.first().copied() {
                points.insert(0, [first, 0.0]);
            }
            return points;
        }
        let mut values = runs.values(arm, quantity);
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let steps = values
            .iter()
            .zip(1u32..)
            .map(|(value, k)| [*value, f64::from(k) / n]);
        let start = values.first().map(|first| [*first, 0.0]);
        start.into_iter().chain(steps).collect()
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
    let curve = |arm: &Arm, quantity: &str| {
        let points = merged(arm, quantity, runs).map(|merged| thinned(&merged));
        let nines = points.unwrap_or_default().into_iter();
        let nines = nines.filter(|[_, share]| *share < 1.0);
        nines
            .map(|[value, share]| [-(1.0 - share).log10(), value])
            .collect()
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
    curve: &dyn Fn(&Arm, &str) -> Vec<[f64; 2]>,
    axes: &dyn Fn(String) -> (Axis, Axis),
) -> Vec<Panel> {
    let several = wanted.quantities.len() > 1;
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        for together in panels(wanted, runs) {
            let curves = together.arms.iter().map(|(name, arm)| Curve {
                name: name.clone(),
                points: curve(arm, quantity)
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
                table: quantiles(&together, quantity, runs),
            });
        }
    }
    found
}

fn quantiles(together: &Together<'_>, quantity: &str, runs: &Runs<'_>) -> Table {
    let mut table = Table::new(["arm", "values"]);
    table
        .head
        .extend(QUANTILES.map(|(name, _)| name.to_owned()));
    for (name, arm) in &together.arms {
        let (count, figures) = match merged(arm, quantity, runs) {
            Some(merged) => (merged.all.len(), QUANTILES.map(|(_, q)| merged.quantile(q))),
            None => {
                let values = runs.values(arm, quantity);
                (
                    values.len() as u64,
                    QUANTILES.map(|(_, q)| stats::quantile(&values, q)),
                )
            }
        };
        let cells = [name.clone(), count.to_string()];
        let figures = figures.map(|figure| {
            if figure.is_finite() {
                number(figure)
            } else {
                "–".into()
            }
        });
        table.rows.push(cells.into_iter().chain(figures).collect());
    }
    table
}

/// A histogram of all rounds.
struct Merged {
    all: Histogram<u64>,
    times: f64,
}

impl Merged {
    fn quantile(&self, q: f64) -> f64 {
        self.all.value_at_quantile(q) as f64 * self.times
    }
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
