//! Plots distributions as empirical cumulative distribution functions (ECDF) and by percentile.

use super::super::record_index::RecordIndex;
use super::super::round_to_digits::round_to_digits;
use super::super::table::{ReportTable, format_number};
use super::panel_arms::{POINTS_MAX, group_arms_by_panel, panel_title};
use super::plot_requests::PlotRequest;
use super::{CurveJoin, PanelContent, PlotAxis, PlotCurve, PlotPanel};
use crate::experiment::{Arm, add_counts, counts};
use hdrhistogram::Histogram;

const QUANTILES: [(&str, f64); 6] = [
    ("50 %", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("max", 1.0),
];

/// Draws the ECDF of each quantity. The quantity is a number or a histogram.
pub(super) fn ecdf_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
) -> (&'static str, Vec<PlotPanel>) {
    let curve = |values: &ArmDistribution| match values {
        ArmDistribution::MergedHistogram(merged) => {
            let points = thin_points(merged);
            let start = points.first().map(|[first, _]| [*first, 0.0]);
            start.into_iter().chain(points).collect()
        }
        ArmDistribution::Numbers(sorted) => {
            let n = sorted.len() as f64;
            let steps = sorted.iter().zip(1u32..);
            let steps = steps.map(|(value, k)| [*value, f64::from(k) / n]);
            let start = sorted.first().map(|first| [*first, 0.0]);
            start.into_iter().chain(steps).collect()
        }
    };
    let axes = |label: String| {
        let x = PlotAxis {
            label,
            log: wanted.log,
            ..PlotAxis::default()
        };
        let y = PlotAxis {
            label: "Share of values (0 to 1)".into(),
            ..PlotAxis::default()
        };
        (x, y)
    };
    let about =
        "Share of values at or below each value. A curve further to the left has smaller values.";
    (
        about,
        distribution_panels(wanted, runs, CurveJoin::Steps, &curve, &axes),
    )
}

/// Draws each histogram by percentile. The percentile axis is logarithmic, so that 90 %, 99 % and
/// 99.9 % are equally far apart.
pub(super) fn percentile_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
) -> (&'static str, Vec<PlotPanel>) {
    let curve = |values: &ArmDistribution| match values {
        ArmDistribution::MergedHistogram(merged) => {
            // Omits the lowest and the highest percentiles, because fewer than ten samples are
            // beyond each of these percentiles.
            let samples = merged.all.len();
            let points = thin_points(merged).into_iter();
            let nines = points.filter(|[_, share]| stats::has_enough_samples(samples, *share));
            nines
                .map(|[value, share]| [-(1.0 - share).log10(), value])
                .collect()
        }
        ArmDistribution::Numbers(_) => Vec::new(),
    };
    let axes = |label: String| {
        let x = PlotAxis {
            label: "Share of values (%)".into(),
            nines: true,
            ..PlotAxis::default()
        };
        let y = PlotAxis {
            label,
            log: wanted.log,
            ..PlotAxis::default()
        };
        (x, y)
    };
    let about = "All rounds merged. Each division to the right leaves a tenth of the values. A curve ends where fewer than ten values are beyond it; the table contains their numbers.";
    (
        about,
        distribution_panels(wanted, runs, CurveJoin::Lines, &curve, &axes),
    )
}

fn distribution_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
    join: CurveJoin,
    curve: &dyn Fn(&ArmDistribution) -> Vec<[f64; 2]>,
    axes: &dyn Fn(String) -> (PlotAxis, PlotAxis),
) -> Vec<PlotPanel> {
    let several = wanted.quantities.len() > 1;
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        for together in group_arms_by_panel(wanted, runs) {
            let of = |(name, arm): (String, &Arm)| {
                (name, ArmDistribution::from_arm(arm, quantity, runs))
            };
            let arms: Vec<(String, ArmDistribution)> = together.arms.into_iter().map(of).collect();
            let curves = arms.iter().map(|(name, values)| PlotCurve {
                name: name.clone(),
                points: curve(values)
                    .into_iter()
                    .map(|point| point.map(round_to_digits))
                    .collect(),
                join,
                ..PlotCurve::default()
            });
            let curves: Vec<PlotCurve> = curves.filter(|curve| curve.points.len() > 1).collect();
            if curves.is_empty() {
                continue;
            }
            let label = runs.quantity_axis_title(quantity);
            let (x, y) = axes(label.clone());
            found.push(PlotPanel {
                title: panel_title(&together.cell, several.then_some(label.as_str())),
                shape: PanelContent::Curves { x, y, curves },
                table: quantile_table(&arms),
            });
        }
    }
    found
}

fn quantile_table(arms: &[(String, ArmDistribution)]) -> ReportTable {
    let mut table = ReportTable::new(["arm", "samples"]);
    table
        .head
        .extend(QUANTILES.map(|(name, _)| name.to_owned()));
    for (name, values) in arms {
        let cells = [name.clone(), values.count().to_string()];
        let figures = QUANTILES.map(|(_, q)| match values.quantile(q) {
            _ if q < 1.0 && !stats::has_enough_samples(values.count(), q) => "–".into(),
            figure if figure.is_finite() => format_number(figure),
            _ => "–".into(),
        });
        table.rows.push(cells.into_iter().chain(figures).collect());
    }
    table
}

/// All values of a quantity in an arm.
enum ArmDistribution {
    MergedHistogram(MergedHistogram),
    /// Sorted numbers.
    Numbers(Vec<f64>),
}

impl ArmDistribution {
    fn from_arm(arm: &Arm, quantity: &str, runs: &RecordIndex<'_>) -> ArmDistribution {
        match merge_round_histograms(arm, quantity, runs) {
            Some(merged) => ArmDistribution::MergedHistogram(merged),
            None => {
                let mut values = runs.values(arm, quantity);
                values.sort_by(f64::total_cmp);
                ArmDistribution::Numbers(values)
            }
        }
    }

    fn count(&self) -> u64 {
        match self {
            ArmDistribution::MergedHistogram(merged) => merged.all.len(),
            ArmDistribution::Numbers(values) => values.len() as u64,
        }
    }

    fn quantile(&self, q: f64) -> f64 {
        match self {
            ArmDistribution::MergedHistogram(merged) => {
                merged.all.value_at_quantile(q) as f64 * merged.times
            }
            ArmDistribution::Numbers(values) => stats::quantile(values, q),
        }
    }
}

/// The merged histogram of all rounds.
struct MergedHistogram {
    all: Histogram<u64>,
    times: f64,
}

/// Merges the histograms of all rounds. Returns `None` if no round has a histogram.
fn merge_round_histograms(
    arm: &Arm,
    quantity: &str,
    runs: &RecordIndex<'_>,
) -> Option<MergedHistogram> {
    let (mut all, mut times) = (None, 1.0);
    for (_, record) in runs.records_of_arm(arm) {
        let Some(counted) = record.histograms.get(quantity) else {
            continue;
        };
        // Skips histograms that cannot be decoded.
        if let Ok(one) = counts(&counted.v2) {
            add_counts(&mut all, one).ok()?;
            times = counted.times;
        }
    }
    let all = all.filter(|all| !all.is_empty())?;
    Some(MergedHistogram { all, times })
}

/// Returns values with their cumulative shares. Keeps all points of the upper tail, and an evenly
/// spaced selection of the other points.
fn thin_points(merged: &MergedHistogram) -> Vec<[f64; 2]> {
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
