//! Plots series over time.

use super::super::record_index::RecordIndex;
use super::super::round_to_digits::round_to_digits;
use super::super::table::{ReportTable, format_number};
use super::panel_arms::{POINTS_MAX, group_arms_by_panel, panel_title};
use super::plot_requests::PlotRequest;
use super::{PanelContent, PlotAxis, PlotCurve, PlotPanel};
use std::collections::BTreeMap;

/// Draws each series as the mean of all rounds, with a band from the smallest to the largest value
/// of the rounds.
pub(super) fn time_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
) -> (&'static str, Vec<PlotPanel>) {
    let several = wanted.quantities.len() > 1;
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        for together in group_arms_by_panel(wanted, runs) {
            let mut table =
                ReportTable::new(["arm", "rounds", "points", "first", "mean", "last", "max"]);
            let curves = together.arms.iter().filter_map(|(name, arm)| {
                let all = runs.records_of_arm(arm);
                let rounds: Vec<&[[f64; 2]]> = all
                    .filter_map(|(_, r)| r.series.get(quantity).map(Vec::as_slice))
                    .collect();
                let (points, band) = average_rounds(&rounds);
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
                    format_number(first),
                    format_number(stats::mean(&values)),
                    format_number(last),
                    format_number(band.iter().map(|[_, high]| *high).fold(f64::MIN, f64::max)),
                ]);
                Some(PlotCurve {
                    name: name.clone(),
                    points,
                    band,
                    ..PlotCurve::default()
                })
            });
            let curves: Vec<PlotCurve> = curves.collect();
            let label = runs.quantity_axis_title(quantity);
            if !curves.is_empty() {
                found.push(PlotPanel {
                    title: panel_title(&together.cell, several.then_some(label.as_str())),
                    shape: PanelContent::Curves {
                        x: PlotAxis {
                            label: "Time (s), or number of the step".into(),
                            ..PlotAxis::default()
                        },
                        y: PlotAxis {
                            label,
                            log: wanted.log,
                            ..PlotAxis::default()
                        },
                        curves,
                    },
                    table,
                });
            }
        }
    }
    (
        "Mean of the rounds. The band spans the smallest and the largest round.",
        found,
    )
}

/// A position on the time axis. Contains the times of all points at this position, and the values
/// of each round.
type BinnedPoint = (Vec<f64>, BTreeMap<usize, Vec<f64>>);

/// Returns the mean of the rounds at each position, and the smallest and the largest value of the
/// rounds. If there are too many positions, or if the positions differ between rounds, neighboring
/// positions are combined into bins.
fn average_rounds(rounds: &[&[[f64; 2]]]) -> (Vec<[f64; 2]>, Vec<[f64; 2]>) {
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
    let mut places: BTreeMap<usize, BinnedPoint> = BTreeMap::new();
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
        (
            point.map(round_to_digits),
            [least, most].map(round_to_digits),
        )
    });
    each.unzip()
}
