//! Chooses the plots of a report. These are the plots that the document requests, or else a default
//! selection.

use super::super::record_index::{RecordIndex, arm_from_values};
use crate::experiment::document::{PlotKind, PlotSpec, as_name_list};
use crate::experiment::{Arm, RunPlan};
use std::collections::BTreeSet;

/// Maximum number of arms in a panel of a suggested plot.
const PANEL_ARMS_MAX: usize = 8;

/// A plot to draw, with all defaults resolved.
pub(super) struct PlotRequest {
    pub(super) kind: PlotKind,
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

pub(super) fn list_plot_requests(plan: &RunPlan, runs: &RecordIndex<'_>) -> Vec<PlotRequest> {
    let plots = &plan.document.plot;
    match plots.is_empty() {
        true => suggest_plots(plan, runs),
        false => plots
            .iter()
            .map(|plot| resolve_plot_request(plot.get_ref(), plan, runs))
            .collect(),
    }
}

fn resolve_plot_request(plot: &PlotSpec, plan: &RunPlan, runs: &RecordIndex<'_>) -> PlotRequest {
    let list = |value: &toml::Spanned<toml::Value>| {
        let names = as_name_list(value.get_ref()).unwrap_or_default();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let kind = *plot.kind.get_ref();
    let by = match (&plot.by, kind) {
        (Some(by), _) => list(by),
        (None, PlotKind::Fit) => Vec::new(),
        (None, _) => list_variables(plan),
    };
    let wanted = PlotRequest {
        x: plot.x.as_ref().map(list).unwrap_or_default(),
        y: plot
            .y
            .as_ref()
            .map(|y| y.get_ref().clone())
            .unwrap_or_default(),
        of: arm_from_values(&plot.of),
        to: arm_from_values(&plot.to),
        only: arm_from_values(&plot.only),
        knee: plot.knee,
        tail: plot.tail.as_ref().map(|tail| tail.get_ref().clone()),
        log: plot.log,
        ..PlotRequest::new(kind, list(&plot.quantity), by, runs)
    };
    match &plot.title {
        Some(title) => PlotRequest {
            title: title.clone(),
            ..wanted
        },
        None => wanted,
    }
}

fn list_variables(plan: &RunPlan) -> Vec<String> {
    let sweep = plan.document.sweep.keys();
    sweep.map(|name| name.get_ref().clone()).collect()
}

impl PlotRequest {
    fn new(
        kind: PlotKind,
        quantities: Vec<String>,
        by: Vec<String>,
        runs: &RecordIndex<'_>,
    ) -> PlotRequest {
        let labels: Vec<String> = quantities
            .iter()
            .map(|name| runs.quantity_display_name(name))
            .collect();
        let what = labels.join(", ");
        let title = match kind {
            // Removes the suffix from the label first, because some labels already have this
            // suffix.
            PlotKind::Time => format!("{} over time", what.trim_end_matches(" over time")),
            PlotKind::Bars => what,
            PlotKind::Box => format!("{what}: all runs"),
            PlotKind::Ecdf => format!("{what}: distribution (ECDF)"),
            PlotKind::Percentiles => format!("{what} by percentile"),
            PlotKind::Map => format!("{what}: ratio"),
            PlotKind::Fit => format!("{what}: linear fit"),
        };
        PlotRequest {
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

/// Suggests plots for a document that requests none. Arms that the document compares share a panel,
/// and every quantity is shown.
fn suggest_plots(plan: &RunPlan, runs: &RecordIndex<'_>) -> Vec<PlotRequest> {
    let by = compared_variables(plan);
    let one = |kind, name: &String| PlotRequest::new(kind, vec![name.clone()], by.clone(), runs);
    let series = runs.list_measurement_names(|sink| &sink.series);
    let histograms = runs.list_measurement_names(|sink| &sink.histogram);
    let numbers = runs.list_measurement_names(|sink| &sink.measure);
    let claimed: BTreeSet<&String> = plan
        .document
        .expect
        .iter()
        .map(|e| e.get_ref().quantity.get_ref())
        .collect();
    let mut all = suggest_heat_maps(plan, &by, runs);
    all.extend(series.iter().map(|name| one(PlotKind::Time, name)));
    all.extend(
        histograms
            .iter()
            .map(|name| one(PlotKind::Percentiles, name)),
    );
    for name in &numbers {
        all.push(one(PlotKind::Bars, name));
        if claimed.contains(name) && plan.rounds > 2 {
            all.extend([PlotKind::Box, PlotKind::Ecdf].map(|kind| one(kind, name)));
        }
    }
    all
}

/// Returns the variables of the first expectation that compares arms. Without such an expectation,
/// returns all variables, or only the first variable if there are too many arms.
fn compared_variables(plan: &RunPlan) -> Vec<String> {
    let compare = |e: &&crate::experiment::document::Expectation| !e.to.is_empty();
    let expect = plan
        .document
        .expect
        .iter()
        .map(|e| e.get_ref())
        .find(compare);
    if let Some(expect) = expect {
        return arm_from_values(&expect.of).into_keys().collect();
    }
    let mut all = list_variables(plan);
    if plan.arms.len() > PANEL_ARMS_MAX {
        all.truncate(1);
    }
    all
}

/// Suggests a heat map for each expected ratio, over the first two variables that have several
/// values and are not in `by`. Without two such variables, suggests no heat map. Skips ratios whose
/// `of` contains one of these two variables.
fn suggest_heat_maps(plan: &RunPlan, by: &[String], runs: &RecordIndex<'_>) -> Vec<PlotRequest> {
    let several = |name: &String| {
        let values: BTreeSet<_> = plan.arms.iter().filter_map(|arm| arm.get(name)).collect();
        values.len() > 1 && !by.contains(name)
    };
    let across: Vec<String> = list_variables(plan).into_iter().filter(several).collect();
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
        let (of, to) = (arm_from_values(&expect.of), arm_from_values(&expect.to));
        let same = (of.clone(), to.clone(), quantity);
        if of.contains_key(x) || of.contains_key(y) || seen.contains(&same) {
            continue;
        }
        seen.push(same);
        all.push(PlotRequest {
            x: vec![x.clone()],
            y: y.clone(),
            of,
            to,
            ..PlotRequest::new(PlotKind::Map, vec![quantity.clone()], Vec::new(), runs)
        });
    }
    all
}
