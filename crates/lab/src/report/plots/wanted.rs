//! Which plots there are.

use super::super::runs::{Runs, texts};
use crate::experiment::document::{Kind, Plot, names};
use crate::experiment::{Arm, Plan};
use std::collections::BTreeSet;

/// Arms that can still be told apart in one panel.
const TOGETHER_MAX: usize = 8;

/// A plot, with everything said.
pub(super) struct Wanted {
    pub(super) kind: Kind,
    pub(super) title: String,
    pub(super) quantities: Vec<String>,
    pub(super) by: Vec<String>,
    pub(super) x: Vec<String>,
    pub(super) y: String,
    pub(super) of: Arm,
    pub(super) to: Arm,
    pub(super) only: Arm,
    pub(super) knee: bool,
    pub(super) tail: Option<String>,
    pub(super) log: bool,
}

pub(super) fn wanted(plan: &Plan, runs: &Runs<'_>) -> Vec<Wanted> {
    let asked = &plan.document.plot;
    match asked.is_empty() {
        true => suggested(plan, runs),
        false => asked
            .iter()
            .map(|plot| written(plot.get_ref(), plan, runs))
            .collect(),
    }
}

fn written(plot: &Plot, plan: &Plan, runs: &Runs<'_>) -> Wanted {
    let list = |value: &toml::Spanned<toml::Value>| {
        let names = names(value.get_ref()).unwrap_or_default();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let kind = *plot.kind.get_ref();
    let by = match (&plot.by, kind) {
        (Some(by), _) => list(by),
        (None, Kind::Fit) => Vec::new(),
        (None, _) => variables(plan),
    };
    let wanted = Wanted {
        x: plot.x.as_ref().map(list).unwrap_or_default(),
        y: plot
            .y
            .as_ref()
            .map(|y| y.get_ref().clone())
            .unwrap_or_default(),
        of: texts(&plot.of),
        to: texts(&plot.to),
        only: texts(&plot.only),
        knee: plot.knee,
        tail: plot.tail.as_ref().map(|tail| tail.get_ref().clone()),
        log: plot.log,
        ..Wanted::new(kind, list(&plot.quantity), by, runs)
    };
    match &plot.title {
        Some(title) => Wanted {
            title: title.clone(),
            ..wanted
        },
        None => wanted,
    }
}

fn variables(plan: &Plan) -> Vec<String> {
    let sweep = plan.document.sweep.keys();
    sweep.map(|name| name.get_ref().clone()).collect()
}

impl Wanted {
    fn new(kind: Kind, quantities: Vec<String>, by: Vec<String>, runs: &Runs<'_>) -> Wanted {
        let labels: Vec<String> = quantities.iter().map(|name| runs.label(name)).collect();
        let what = labels.join(", ");
        let title = match kind {
            // Some are called so.
            Kind::Time => format!("{} over time", what.trim_end_matches("-over-time")),
            Kind::Bars => what,
            Kind::Box => format!("{what}: every run"),
            Kind::Ecdf => format!("{what}: share of values within a value (ECDF)"),
            Kind::Percentiles => format!("{what} by percentile"),
            Kind::Map => format!("{what}: ratio"),
            Kind::Fit => format!("{what}: straight line"),
        };
        Wanted {
            kind,
            title,
            quantities,
            by,
            x: Vec::new(),
            y: String::new(),
            of: Arm::new(),
            to: Arm::new(),
            only: Arm::new(),
            knee: false,
            tail: None,
            log: false,
        }
    }
}

/// What is compared stands beside each other; every quantity of a sink is shown.
fn suggested(plan: &Plan, runs: &Runs<'_>) -> Vec<Wanted> {
    let by = compared(plan);
    let one = |kind, name: &String| Wanted::new(kind, vec![name.clone()], by.clone(), runs);
    let series = runs.named(|sink| &sink.series);
    let histograms = runs.named(|sink| &sink.histogram);
    let numbers = runs.named(|sink| &sink.measure);
    let claimed: BTreeSet<&String> = plan
        .document
        .expect
        .iter()
        .map(|e| e.get_ref().quantity.get_ref())
        .collect();
    let mut all = maps(plan, &by, runs);
    all.extend(series.iter().map(|name| one(Kind::Time, name)));
    all.extend(histograms.iter().map(|name| one(Kind::Percentiles, name)));
    for name in &numbers {
        all.push(one(Kind::Bars, name));
        if claimed.contains(name) && plan.rounds > 2 {
            all.extend([Kind::Box, Kind::Ecdf].map(|kind| one(kind, name)));
        }
    }
    all
}

/// The variables that expectations compare; where there are none, all, or the first of too many.
fn compared(plan: &Plan) -> Vec<String> {
    let compare = |e: &&crate::experiment::document::Expect| !e.to.is_empty();
    let expect = plan
        .document
        .expect
        .iter()
        .map(|e| e.get_ref())
        .find(compare);
    if let Some(expect) = expect {
        return texts(&expect.of).into_keys().collect();
    }
    let mut all = variables(plan);
    if plan.arms.len() > TOGETHER_MAX {
        all.truncate(1);
    }
    all
}

/// A map for every ratio over two variables with several values.
fn maps(plan: &Plan, by: &[String], runs: &Runs<'_>) -> Vec<Wanted> {
    let several = |name: &String| {
        let values: BTreeSet<_> = plan.arms.iter().filter_map(|arm| arm.get(name)).collect();
        values.len() > 1 && !by.contains(name)
    };
    let across: Vec<String> = variables(plan).into_iter().filter(several).collect();
    let [x, y, ..] = across.as_slice() else {
        return Vec::new();
    };
    let mut seen: Vec<(Arm, Arm, &String)> = Vec::new();
    let mut all = Vec::new();
    for expect in plan
        .document
        .expect
        .iter()
        .map(|e| e.get_ref())
        .filter(|e| !e.to.is_empty())
    {
        let quantity = expect.quantity.get_ref();
        let (of, to) = (texts(&expect.of), texts(&expect.to));
        let same = (of.clone(), to.clone(), quantity);
        if of.contains_key(x) || of.contains_key(y) || seen.contains(&same) {
            continue;
        }
        seen.push(same);
        all.push(Wanted {
            x: vec![x.clone()],
            y: y.clone(),
            of,
            to,
            ..Wanted::new(Kind::Map, vec![quantity.clone()], Vec::new(), runs)
        });
    }
    all
}
