//! Checks that plots refer to measured quantities.

use super::claims::{check_arm_selector, check_same_variables, list_quantities};
use super::fault_collector::FaultCollector;
use crate::experiment::document::{ExperimentDocument, PlotKind, PlotSpec, as_name_list};
use std::ops::Range;
use toml::{Spanned, Value};

/// Names that plots may refer to.
struct PlottableNames {
    numbers: Vec<String>,
    series: Vec<String>,
    histograms: Vec<String>,
    variables: Vec<String>,
}

pub(super) fn check_plots(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let sinks = || document.sink.values();
    let own = |name: &Spanned<String>| name.get_ref().clone();
    let known = PlottableNames {
        numbers: list_quantities(document),
        series: sinks().flat_map(|s| s.series.keys()).map(own).collect(),
        histograms: sinks().flat_map(|s| s.histogram.keys()).map(own).collect(),
        variables: document.sweep.keys().map(own).collect(),
    };
    let all = [&known.numbers, &known.series, &known.histograms].map(Vec::as_slice);
    for name in document.quantity.keys() {
        let path = format!("quantity.{}", name.get_ref());
        check_known_name(name.get_ref(), name.span(), &path, &all.concat(), faults);
    }
    for (number, plot) in document.plot.iter().enumerate() {
        let path = format!("plot[{number}]");
        check_plot(document, plot, &path, &known, faults);
    }
}

fn check_plot(
    document: &ExperimentDocument,
    at: &Spanned<PlotSpec>,
    path: &str,
    known: &PlottableNames,
    faults: &mut FaultCollector<'_>,
) {
    let (span, plot) = (at.span(), at.get_ref());
    let kind = *plot.kind.get_ref();
    let plain = [known.numbers.as_slice(), &known.series].concat();
    let drawn = match kind {
        PlotKind::Time => known.series.clone(),
        PlotKind::Percentiles => known.histograms.clone(),
        PlotKind::Ecdf => [known.numbers.as_slice(), &known.histograms].concat(),
        PlotKind::Fit => plain.clone(),
        PlotKind::Bars | PlotKind::Box | PlotKind::Map => known.numbers.clone(),
    };
    check_known_names(&plot.quantity, &format!("{path}.quantity"), &drawn, faults);
    if let Some(by) = &plot.by {
        check_known_names(by, &format!("{path}.by"), &known.variables, faults);
    }
    check_arm_selector(document, &format!("{path}.where"), &plot.only, faults);
    check_arm_selector(document, &format!("{path}.of"), &plot.of, faults);
    check_arm_selector(document, &format!("{path}.to"), &plot.to, faults);
    let factors = [plain.as_slice(), &known.variables].concat();
    let x = format!("{path}.x");
    match (kind, &plot.x) {
        (PlotKind::Fit | PlotKind::Map, None) => {
            faults.add_fault(span.clone(), &x, "the x axis is missing; write x = NAME")
        }
        (PlotKind::Fit, Some(factor)) => check_known_names(factor, &x, &factors, faults),
        (PlotKind::Map, Some(across)) => check_known_names(across, &x, &known.variables, faults),
        (_, Some(other)) => {
            faults.add_fault(other.span(), &x, "only plots of kind fit or map have an x")
        }
        (_, None) => {}
    }
    check_heat_map(plot, kind, span.clone(), path, known, faults);
    if let Some(tail) = &plot.tail {
        let path = format!("{path}.tail");
        check_known_name(tail.get_ref(), tail.span(), &path, &plain, faults);
    }
    if (plot.knee || plot.tail.is_some()) && kind != PlotKind::Fit {
        faults.add_fault(span, path, "only plots of kind fit have a knee and a tail");
    }
}

fn check_heat_map(
    plot: &PlotSpec,
    kind: PlotKind,
    at: Range<usize>,
    path: &str,
    known: &PlottableNames,
    faults: &mut FaultCollector<'_>,
) {
    if kind != PlotKind::Map {
        if plot.y.is_some() || !plot.of.is_empty() || !plot.to.is_empty() {
            faults.add_fault(at, path, "only plots of kind map have y, of and to");
        }
        return;
    }
    match &plot.y {
        Some(y) => {
            let path = format!("{path}.y");
            check_known_name(y.get_ref(), y.span(), &path, &known.variables, faults);
        }
        None => faults.add_fault(
            at.clone(),
            &format!("{path}.y"),
            "the vertical variable is missing; write y = VARIABLE",
        ),
    }
    if plot.to.is_empty() {
        let what = "a map shows a ratio of arms; write of and to";
        faults.add_fault(at, &format!("{path}.to"), what);
    } else {
        check_same_variables(&plot.of, &plot.to, at, path, faults);
    }
}

fn check_known_names(
    value: &Spanned<Value>,
    path: &str,
    known: &[String],
    faults: &mut FaultCollector<'_>,
) {
    match as_name_list(value.get_ref()) {
        None => faults.add_fault(value.span(), path, "write a name or a list of names"),
        Some(names) => {
            for name in names {
                check_known_name(name, value.span(), path, known, faults);
            }
        }
    }
}

fn check_known_name(
    name: &str,
    at: Range<usize>,
    path: &str,
    known: &[String],
    faults: &mut FaultCollector<'_>,
) {
    if !known.iter().any(|known| known == name) {
        let what = format!("unknown name {name}; use one of {}", known.join(", "));
        faults.add_fault(at, path, what);
    }
}
