//! A straight line through what was measured, below the knee.

use super::super::runs::{Runs, has};
use super::super::table::{Table, number, range};
use super::wanted::Wanted;
use super::{Axis, Curve, Join, Panel, Shape, neat};
use crate::experiment::{Arm, Record};
use stats::Fit;
use std::collections::BTreeMap;

/// A run's step, or a run.
#[derive(Clone, Copy)]
struct Point {
    round: u32,
    x: f64,
    y: f64,
}

/// What is fitted: a panel of points and lines, and one of residuals.
pub(super) fn fit(wanted: &Wanted, runs: &Runs<'_>, seed: u64) -> (&'static str, Vec<Panel>) {
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        let mut groups: BTreeMap<String, Vec<&Arm>> = BTreeMap::new();
        for arm in runs.arms().filter(|arm| has(arm, &wanted.only)) {
            let own = wanted
                .by
                .iter()
                .filter_map(|name| Some(format!("{name} {}", arm.get(name)?)));
            let own: Vec<String> = own.collect();
            groups.entry(own.join(", ")).or_default().push(arm);
        }
        let head = [
            "of",
            "points",
            "slope",
            "95 %",
            "intercept",
            "R²",
            "knee at",
            "beyond it",
        ];
        let mut table = Table::new(head);
        let (mut points, mut residuals) = (Vec::new(), Vec::new());
        for (colour, (name, arms)) in groups.into_iter().enumerate() {
            let name = if name.is_empty() {
                "all".to_owned()
            } else {
                name
            };
            let line = Line::of(wanted, runs, quantity, &arms, seed);
            if let Some(line) = line {
                table.rows.push(line.row(&name));
                line.draw(&name, colour, &mut points, &mut residuals);
            }
        }
        found.extend(drawn(wanted, runs, quantity, points, residuals, table));
    }
    (
        "A point for each run (or step of one); slopes with their 95 % interval over rounds.",
        found,
    )
}

/// The panels of points and lines, and of residuals.
fn drawn(
    wanted: &Wanted,
    runs: &Runs<'_>,
    quantity: &str,
    points: Vec<Curve>,
    residuals: Vec<Curve>,
    table: Table,
) -> Vec<Panel> {
    let axis = |label: &str| Axis {
        label: label.to_owned(),
        ..Axis::default()
    };
    let factors: Vec<String> = wanted.x.iter().map(|name| runs.label(name)).collect();
    let (across, up) = (factors.join(" × "), runs.with_unit(quantity));
    let panel = |(title, curves, table): (&str, Vec<Curve>, Table)| Panel {
        title: title.into(),
        shape: Shape::Curves {
            x: axis(&across),
            y: axis(&up),
            curves,
        },
        table,
    };
    let both = [
        ("measured, and fitted below the knee", points, table),
        (
            "residuals: measured less the line",
            residuals,
            Table::default(),
        ),
    ];
    both.into_iter()
        .filter(|(_, curves, _)| !curves.is_empty())
        .map(panel)
        .collect()
}

/// A group's points and what is found in them.
struct Line {
    below: Vec<Point>,
    beyond: Vec<Point>,
    fit: Option<Fit>,
    slope: Option<[f64; 2]>,
    knee: Option<f64>,
}

impl Line {
    /// None without points.
    fn of(
        wanted: &Wanted,
        runs: &Runs<'_>,
        quantity: &str,
        arms: &[&Arm],
        seed: u64,
    ) -> Option<Line> {
        let by_arm = arms.iter().map(|arm| steps(wanted, runs, quantity, arm));
        let by_arm: Vec<Vec<Step>> = by_arm.collect();
        // Steps of one run are a ramp by themselves; single numbers of many arms are one together.
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
            let knee = if wanted.knee { knee(&ramp) } else { None };
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
        let plain = |points: &[Point]| -> Vec<(f64, f64)> {
            points.iter().map(|point| (point.x, point.y)).collect()
        };
        let mut by_round: BTreeMap<u32, Vec<Point>> = BTreeMap::new();
        for point in &below {
            by_round.entry(point.round).or_default().push(*point);
        }
        let rounds: Vec<f64> = by_round.keys().map(|round| f64::from(*round)).collect();
        let slope = stats::interval(
            &rounds,
            |drawn| {
                let points = drawn
                    .iter()
                    .filter_map(|round| by_round.get(&(*round as u32)));
                let points: Vec<Point> = points.flatten().copied().collect();
                Fit::of(&plain(&points)).map_or(f64::NAN, |fit| fit.slope)
            },
            seed,
        );
        Some(Line {
            fit: Fit::of(&plain(&below)),
            slope: slope
                .map(super::super::arms::pair)
                .filter(|pair| pair.iter().all(|end| end.is_finite())),
            // Of several ramps, the one that came first.
            knee: knees.into_iter().reduce(f64::min),
            below,
            beyond,
        })
    }

    fn row(&self, name: &str) -> Vec<String> {
        let of_fit =
            |of: fn(&Fit) -> f64| self.fit.as_ref().map_or("–".into(), |fit| number(of(fit)));
        vec![
            name.to_owned(),
            self.below.len().to_string(),
            of_fit(|fit| fit.slope),
            range(self.slope),
            of_fit(|fit| fit.intercept),
            of_fit(|fit| fit.r_squared),
            self.knee.map_or("none".into(), number),
            self.beyond.len().to_string(),
        ]
    }

    fn draw(&self, name: &str, colour: usize, points: &mut Vec<Curve>, residuals: &mut Vec<Curve>) {
        let sorted = |mut points: Vec<[f64; 2]>| -> Vec<[f64; 2]> {
            points.sort_by(|a, b| a[0].total_cmp(&b[0]));
            points.into_iter().map(|point| point.map(neat)).collect()
        };
        let dots = |points: &[Point]| sorted(points.iter().map(|p| [p.x, p.y]).collect());
        let curve = |name: String, points, join| Curve {
            name,
            points,
            join,
            colour: Some(colour),
            ..Curve::default()
        };
        let all = [self.below.as_slice(), &self.beyond].concat();
        points.push(curve(name.to_owned(), dots(&all), Join::Dots));
        if let Some(knee) = self.knee {
            let near = all.iter().filter(|point| point.x >= knee);
            let near = near.min_by(|a, b| a.x.total_cmp(&b.x));
            let mark = near.map(|point| [knee, point.y].map(neat));
            points.push(curve(
                format!("{name}: knee"),
                mark.into_iter().collect(),
                Join::Knee,
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
        let ends = ends.map(|x| [x, fit.intercept + fit.slope * x].map(neat));
        points.push(curve(format!("{name}: line"), ends.into(), Join::Dashes));
        let left = self.below.iter().zip(&fit.residuals);
        let left = sorted(left.map(|(point, residual)| [point.x, *residual]).collect());
        residuals.push(curve(name.to_owned(), left, Join::Dots));
    }
}

/// A step of a run (the only one, of a single number), with the means of its rounds.
#[derive(Clone, Copy)]
struct Step {
    number: usize,
    point: Point,
    x_mean: f64,
    y_mean: f64,
    tail_mean: f64,
}

/// An arm's steps in all rounds.
fn steps(wanted: &Wanted, runs: &Runs<'_>, quantity: &str, arm: &Arm) -> Vec<Step> {
    let mut all: BTreeMap<usize, Vec<(Point, f64)>> = BTreeMap::new();
    for (round, record) in runs.of(arm) {
        let count = record.series.get(quantity).map_or(1, Vec::len);
        for number in 0..count {
            let of = |name: &str| at(arm, record, name, number);
            let x: Option<f64> = wanted.x.iter().map(|name| of(name)).product();
            let tail = wanted.tail.as_ref().map_or(Some(1.0), |name| of(name));
            if let (Some(x), Some(y), Some(tail)) = (x, of(quantity), tail) {
                let point = Point { round, x, y };
                all.entry(number).or_default().push((point, tail));
            }
        }
    }
    let mut steps = Vec::new();
    for (number, points) in all {
        let mean = |of: fn(&(Point, f64)) -> f64| {
            stats::mean(&points.iter().map(of).collect::<Vec<f64>>())
        };
        let [x_mean, y_mean, tail_mean] = [mean(|p| p.0.x), mean(|p| p.0.y), mean(|p| p.1)];
        steps.extend(points.iter().map(|(point, _)| Step {
            number,
            point: *point,
            x_mean,
            y_mean,
            tail_mean,
        }));
    }
    steps
}

/// A name's value: a step of a series, a number, or a variable's.
fn at(arm: &Arm, record: &Record, name: &str, step: usize) -> Option<f64> {
    let of_series = || Some(record.series.get(name)?.get(step)?[1]);
    let of_numbers = || record.values.get(name).copied();
    let of_arm = || arm.get(name)?.parse().ok();
    of_series().or_else(of_numbers).or_else(of_arm)
}

/// Where a ramp's means stop keeping up.
fn knee(ramp: &[Step]) -> Option<f64> {
    let mut means: Vec<[f64; 3]> = ramp
        .iter()
        .map(|s| [s.x_mean, s.y_mean, s.tail_mean])
        .collect();
    means.sort_by(|a, b| a[0].total_cmp(&b[0]));
    means.dedup();
    let place = stats::knee(means.iter().map(|[x, y, tail]| (*x, *y, *tail)))?;
    means.get(place).map(|[x, ..]| *x)
}
