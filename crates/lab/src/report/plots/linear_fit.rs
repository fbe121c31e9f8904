//! Plots linear fits of the points below the knee. The knee is the load at which a server no longer
//! keeps up.

use super::super::record_index::{RecordIndex, arm_has_values};
use super::super::round_to_digits::round_to_digits;
use super::super::table::{ReportTable, format_interval, format_number};
use super::plot_requests::PlotRequest;
use super::{CurveJoin, PanelContent, PlotAxis, PlotCurve, PlotPanel};
use crate::experiment::{Arm, RunRecord};
use stats::LinearFit;
use std::collections::BTreeMap;

/// A point of the fit. It represents one step of a run, or a whole run if the run has no steps.
#[derive(Clone, Copy)]
struct FitPoint {
    round: u32,
    x: f64,
    y: f64,
}

/// Draws each fit in two panels. One panel shows the points and the fitted lines, and the other
/// panel shows the residuals.
pub(super) fn fit_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
) -> (&'static str, Vec<PlotPanel>) {
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        let mut groups: BTreeMap<String, Vec<&Arm>> = BTreeMap::new();
        for arm in runs.arms().filter(|arm| arm_has_values(arm, &wanted.only)) {
            let own = wanted
                .by
                .iter()
                .filter_map(|name| Some(format!("{name} {}", arm.get(name)?)));
            let own: Vec<String> = own.collect();
            groups.entry(own.join(", ")).or_default().push(arm);
        }
        let head = [
            "group",
            "points",
            "slope",
            "95 % interval",
            "intercept",
            "R²",
            "knee",
            "beyond the knee",
        ];
        let mut table = ReportTable::new(head);
        let (mut points, mut residuals) = (Vec::new(), Vec::new());
        for (colour, (name, arms)) in groups.into_iter().enumerate() {
            let name = if name.is_empty() {
                "all".to_owned()
            } else {
                name
            };
            let line = FittedLine::fit_group(wanted, runs, quantity, &arms);
            if let Some(line) = line {
                table.rows.push(line.table_row(&name));
                line.add_curves(&name, colour, &mut points, &mut residuals);
            }
        }
        found.extend(fit_and_residual_panels(
            wanted, runs, quantity, points, residuals, table,
        ));
    }
    (
        "One point per run, or per step of a run. The interval is that of the median slope of single rounds, of at least six.",
        found,
    )
}

/// Returns one panel with the points and the fitted lines, and one panel with the residuals.
fn fit_and_residual_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
    quantity: &str,
    points: Vec<PlotCurve>,
    residuals: Vec<PlotCurve>,
    table: ReportTable,
) -> Vec<PlotPanel> {
    let axis = |label: &str| PlotAxis {
        label: label.to_owned(),
        ..PlotAxis::default()
    };
    let factors: Vec<String> = wanted
        .x
        .iter()
        .map(|name| runs.quantity_axis_title(name))
        .collect();
    let (across, up) = (factors.join(" × "), runs.quantity_axis_title(quantity));
    let panel = |(title, curves, table): (&str, Vec<PlotCurve>, ReportTable)| PlotPanel {
        title: title.into(),
        shape: PanelContent::Curves {
            x: axis(&across),
            y: axis(&up),
            curves,
        },
        table,
    };
    let both = [
        ("measured, and fitted below the knee", points, table),
        (
            "residuals: measured minus fitted",
            residuals,
            ReportTable::default(),
        ),
    ];
    both.into_iter()
        .filter(|(_, curves, _)| !curves.is_empty())
        .map(panel)
        .collect()
}

/// The points of a group of arms, and their linear fit.
struct FittedLine {
    below: Vec<FitPoint>,
    beyond: Vec<FitPoint>,
    fit: Option<LinearFit>,
    slope: Option<[f64; 2]>,
    knee: Option<f64>,
}

impl FittedLine {
    /// Fits a line to the points of a group. Returns `None` if there are no points.
    fn fit_group(
        wanted: &PlotRequest,
        runs: &RecordIndex<'_>,
        quantity: &str,
        arms: &[&Arm],
    ) -> Option<FittedLine> {
        let by_arm = arms
            .iter()
            .map(|arm| arm_steps(wanted, runs, quantity, arm));
        let by_arm: Vec<Vec<RampStep>> = by_arm.collect();
        // If runs have several steps, the steps of each arm form a ramp. Otherwise, the single
        // values of all arms form one ramp together.
        let ramps = match by_arm
            .iter()
            .any(|steps| steps.iter().any(|step| step.number > 0))
        {
            true => by_arm,
            false => vec![by_arm.concat()],
        };
        let (mut below, mut beyond) = (Vec::new(), Vec::new());
        let mut knees = Vec::new();
        for ramp in ramps {
            let knee = if wanted.knee {
                find_ramp_knee(&ramp)
            } else {
                None
            };
            knees.extend(knee);
            for step in ramp {
                let over = knee.is_some_and(|knee| step.x_mean >= knee);
                let side = if over { &mut beyond } else { &mut below };
                side.push(step.point);
            }
        }
        if below.is_empty() && beyond.is_empty() {
            return None;
        }
        let plain = |points: &[FitPoint]| -> Vec<(f64, f64)> {
            points.iter().map(|point| (point.x, point.y)).collect()
        };
        let mut by_round: BTreeMap<u32, Vec<FitPoint>> = BTreeMap::new();
        for point in &below {
            by_round.entry(point.round).or_default().push(*point);
        }
        let slopes: Vec<f64> = by_round
            .values()
            .filter_map(|points| Some(LinearFit::from_points(&plain(points))?.slope))
            .collect();
        Some(FittedLine {
            fit: LinearFit::from_points(&plain(&below)),
            slope: stats::median_interval(&slopes).map(super::super::arms::interval_as_pair),
            // If there are several ramps, this is the knee with the lowest x value.
            knee: knees.into_iter().reduce(f64::min),
            below,
            beyond,
        })
    }

    fn table_row(&self, name: &str) -> Vec<String> {
        let of_fit = |of: fn(&LinearFit) -> f64| {
            self.fit
                .as_ref()
                .map_or("–".into(), |fit| format_number(of(fit)))
        };
        vec![
            name.to_owned(),
            self.below.len().to_string(),
            of_fit(|fit| fit.slope),
            format_interval(self.slope),
            of_fit(|fit| fit.intercept),
            of_fit(|fit| fit.r_squared),
            self.knee.map_or("none".into(), format_number),
            self.beyond.len().to_string(),
        ]
    }

    fn add_curves(
        &self,
        name: &str,
        colour: usize,
        points: &mut Vec<PlotCurve>,
        residuals: &mut Vec<PlotCurve>,
    ) {
        let sorted = |mut points: Vec<[f64; 2]>| -> Vec<[f64; 2]> {
            points.sort_by(|a, b| a[0].total_cmp(&b[0]));
            points
                .into_iter()
                .map(|point| point.map(round_to_digits))
                .collect()
        };
        let dots = |points: &[FitPoint]| sorted(points.iter().map(|p| [p.x, p.y]).collect());
        let curve = |name: String, points, join| PlotCurve {
            name,
            points,
            join,
            colour: Some(colour),
            ..PlotCurve::default()
        };
        let all = [self.below.as_slice(), &self.beyond].concat();
        points.push(curve(name.to_owned(), dots(&all), CurveJoin::Dots));
        if let Some(knee) = self.knee {
            let near = all.iter().filter(|point| point.x >= knee);
            let near = near.min_by(|a, b| a.x.total_cmp(&b.x));
            let mark = near.map(|point| [knee, point.y].map(round_to_digits));
            points.push(curve(
                format!("{name}: knee"),
                mark.into_iter().collect(),
                CurveJoin::Knee,
            ));
        }
        let Some(fit) = &self.fit else {
            return;
        };
        let xs = all.iter().map(|point| point.x);
        let ends = [
            xs.clone().fold(f64::INFINITY, f64::min),
            xs.fold(0.0, f64::max),
        ];
        let ends = ends.map(|x| [x, fit.intercept + fit.slope * x].map(round_to_digits));
        points.push(curve(
            format!("{name}: line"),
            ends.into(),
            CurveJoin::Dashes,
        ));
        let left = self.below.iter().zip(&fit.residuals);
        let left = sorted(left.map(|(point, residual)| [point.x, *residual]).collect());
        residuals.push(curve(name.to_owned(), left, CurveJoin::Dots));
    }
}

/// A step of a run, or the only value of a run without steps. Also contains the means of this step
/// over all rounds.
#[derive(Clone, Copy)]
struct RampStep {
    number: usize,
    point: FitPoint,
    x_mean: f64,
    y_mean: f64,
    tail_mean: f64,
}

/// Returns the steps of an arm in all rounds.
fn arm_steps(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
    quantity: &str,
    arm: &Arm,
) -> Vec<RampStep> {
    let mut all: BTreeMap<usize, Vec<(FitPoint, f64)>> = BTreeMap::new();
    for (round, record) in runs.records_of_arm(arm) {
        let count = record.series.get(quantity).map_or(1, Vec::len);
        for number in 0..count {
            let of = |name: &str| find_step_value(arm, record, name, number);
            let x: Option<f64> = wanted.x.iter().map(|name| of(name)).product();
            let tail = wanted.tail.as_ref().map_or(Some(1.0), |name| of(name));
            if let (Some(x), Some(y), Some(tail)) = (x, of(quantity), tail) {
                let point = FitPoint { round, x, y };
                all.entry(number).or_default().push((point, tail));
            }
        }
    }
    let mut steps = Vec::new();
    for (number, points) in all {
        let mean = |of: fn(&(FitPoint, f64)) -> f64| {
            stats::mean(&points.iter().map(of).collect::<Vec<f64>>())
        };
        let [x_mean, y_mean, tail_mean] = [mean(|p| p.0.x), mean(|p| p.0.y), mean(|p| p.1)];
        steps.extend(points.iter().map(|(point, _)| RampStep {
            number,
            point: *point,
            x_mean,
            y_mean,
            tail_mean,
        }));
    }
    steps
}

/// Returns the value with this name. Searches the step of a series first, then the numbers, and
/// then the variables of the arm.
fn find_step_value(arm: &Arm, record: &RunRecord, name: &str, step: usize) -> Option<f64> {
    let of_series = || Some(record.series.get(name)?.get(step)?[1]);
    let of_numbers = || record.values.get(name).copied();
    let of_arm = || arm.get(name)?.parse().ok();
    of_series().or_else(of_numbers).or_else(of_arm)
}

/// Returns the x value of the knee of a ramp. The knee is determined from the means of each step
/// over all rounds.
fn find_ramp_knee(ramp: &[RampStep]) -> Option<f64> {
    let mut means: Vec<[f64; 3]> = ramp
        .iter()
        .map(|s| [s.x_mean, s.y_mean, s.tail_mean])
        .collect();
    means.sort_by(|a, b| a[0].total_cmp(&b[0]));
    means.dedup();
    let place = stats::find_overload_point(means.iter().map(|[x, y, tail]| (*x, *y, *tail)))?;
    means.get(place).map(|[x, ..]| *x)
}
