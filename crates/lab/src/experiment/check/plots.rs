//! Whether what is to be drawn is measured.

use super::Faults;
use super::claims::{alike, quantities, variables};
use crate::experiment::document::{Document, Kind, Plot, names};
use std::ops::Range;
use toml::{Spanned, Value};

/// What a document's names stand for.
struct Known {
    numbers: Vec<String>,
    series: Vec<String>,
    histograms: Vec<String>,
    variables: Vec<String>,
}

pub(super) fn check(document: &Document, faults: &mut Faults<'_>) {
    let sinks = || document.sink.values();
    let own = |name: &Spanned<String>| name.get_ref().clone();
    let known = Known {
        numbers: quantities(document),
        series: sinks().flat_map(|s| s.series.keys()).map(own).collect(),
        histograms: sinks().flat_map(|s| s.histogram.keys()).map(own).collect(),
        variables: document.sweep.keys().map(own).collect(),
    };
    let all = [&known.numbers, &known.series, &known.histograms].map(Vec::as_slice);
    for name in document.quantity.keys() {
        let path = format!("quantity.{}", name.get_ref());
        one_of(name.get_ref(), name.span(), &path, &all.concat(), faults);
    }
    for (number, plot) in document.plot.iter().enumerate() {
        let path = format!("plot[{number}]");
        one(document, plot, &path, &known, faults);
    }
}

fn one(
    document: &Document,
    at: &Spanned<Plot>,
    path: &str,
    known: &Known,
    faults: &mut Faults<'_>,
) {
    let (span, plot) = (at.span(), at.get_ref());
    let kind = *plot.kind.get_ref();
    let plain = [known.numbers.as_slice(), &known.series].concat();
    let drawn = match kind {
        Kind::Time => known.series.clone(),
        Kind::Percentiles => known.histograms.clone(),
        Kind::Ecdf => [known.numbers.as_slice(), &known.histograms].concat(),
        Kind::Fit => plain.clone(),
        Kind::Bars | Kind::Box | Kind::Map => known.numbers.clone(),
    };
    several(&plot.quantity, &format!("{path}.quantity"), &drawn, faults);
    if let Some(by) = &plot.by {
        several(by, &format!("{path}.by"), &known.variables, faults);
    }
    variables(document, &format!("{path}.where"), &plot.only, faults);
    variables(document, &format!("{path}.of"), &plot.of, faults);
    variables(document, &format!("{path}.to"), &plot.to, faults);
    let factors = [plain.as_slice(), &known.variables].concat();
    let x = format!("{path}.x");
    match (kind, &plot.x) {
        (Kind::Fit | Kind::Map, None) => {
            faults.add(span.clone(), &x, "say what lies on the x axis")
        }
        (Kind::Fit, Some(factor)) => several(factor, &x, &factors, faults),
        (Kind::Map, Some(across)) => several(across, &x, &known.variables, faults),
        (_, Some(other)) => faults.add(other.span(), &x, "only fit and map have it"),
        (_, None) => {}
    }
    map(plot, kind, span.clone(), path, known, faults);
    if let Some(tail) = &plot.tail {
        let path = format!("{path}.tail");
        one_of(tail.get_ref(), tail.span(), &path, &plain, faults);
    }
    if (plot.knee || plot.tail.is_some()) && kind != Kind::Fit {
        faults.add(span, path, "only a fit has a knee and a tail");
    }
}

fn map(
    plot: &Plot,
    kind: Kind,
    at: Range<usize>,
    path: &str,
    known: &Known,
    faults: &mut Faults<'_>,
) {
    if kind != Kind::Map {
        if plot.y.is_some() || !plot.of.is_empty() || !plot.to.is_empty() {
            faults.add(at, path, "only a map has y, of and to");
        }
        return;
    }
    match &plot.y {
        Some(y) => {
            let path = format!("{path}.y");
            one_of(y.get_ref(), y.span(), &path, &known.variables, faults);
        }
        None => faults.add(
            at.clone(),
            &format!("{path}.y"),
            "say which variable goes down",
        ),
    }
    if plot.to.is_empty() {
        let what = "a map shows a ratio: say of and to";
        faults.add(at, &format!("{path}.to"), what);
    } else {
        alike(&plot.of, &plot.to, at, path, faults);
    }
}

fn several(value: &Spanned<Value>, path: &str, known: &[String], faults: &mut Faults<'_>) {
    match names(value.get_ref()) {
        None => faults.add(value.span(), path, "a name, or a list of names"),
        Some(names) => {
            for name in names {
                one_of(name, value.span(), path, known, faults);
            }
        }
    }
}

fn one_of(name: &str, at: Range<usize>, path: &str, known: &[String], faults: &mut Faults<'_>) {
    if !known.iter().any(|known| known == name) {
        let what = format!("{name} is none of {}", known.join(", "));
        faults.add(at, path, what);
    }
}
