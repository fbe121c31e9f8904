//! Checks that expectations refer to measured quantities.

use super::fault_collector::FaultCollector;
use crate::experiment::document::{Expectation, ExperimentDocument, SourceRange};
use crate::experiment::{RunPlan, scalar_text};
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// Quantities that every link measures.
pub(in crate::experiment) const LINK_QUANTITIES: [&str; 4] =
    ["lost", "dropped", "down-bytes", "up-bytes"];

pub(super) type ArmSelector = BTreeMap<Spanned<String>, Spanned<Value>>;

pub(super) fn check_claims(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let known = list_quantities(document);
    for (number, expect) in document.expect.iter().enumerate() {
        let path = format!("expect[{number}]");
        let at = expect.span();
        let expect = expect.get_ref();
        let quantity = &expect.quantity;
        if !known.contains(quantity.get_ref()) {
            let what = format!(
                "no sink or link measures this quantity; the document measures {}",
                known.join(", ")
            );
            faults.add_fault(quantity.span(), &format!("{path}.quantity"), what);
        }
        for (key, values) in [
            ("of", &expect.of),
            ("to", &expect.to),
            ("where", &expect.only),
        ] {
            check_arm_selector(document, &format!("{path}.{key}"), values, faults);
        }
        if !expect.to.is_empty() {
            check_same_variables(&expect.of, &expect.to, at.clone(), &path, faults);
        }
        check_claim_bounds(expect, at.clone(), &path, faults);
        if let Some(what) = find_claim_source_fault(expect) {
            faults.add_fault(at, &path, what);
        }
    }
}

/// Checks that both sides of a comparison name the same variables.
pub(super) fn check_same_variables(
    of: &ArmSelector,
    to: &ArmSelector,
    at: std::ops::Range<usize>,
    path: &str,
    faults: &mut FaultCollector<'_>,
) {
    let names = |values: &ArmSelector| -> Vec<String> {
        values.keys().map(|name| name.get_ref().clone()).collect()
    };
    if names(of) != names(to) {
        let what = "`of` and `to` must name the same variables, with different values";
        faults.add_fault(at, &format!("{path}.to"), what);
    }
}

fn check_claim_bounds(
    expect: &Expectation,
    at: std::ops::Range<usize>,
    path: &str,
    faults: &mut FaultCollector<'_>,
) {
    let (at_least, at_most) = (expect.at_least, expect.at_most);
    if [at_least, at_most]
        .into_iter()
        .flatten()
        .any(|bound| !bound.is_finite())
    {
        faults.add_fault(at, path, "a bound must be a finite number");
    } else if matches!((at_least, at_most), (Some(at_least), Some(at_most)) if at_least > at_most) {
        faults.add_fault(
            at,
            path,
            "at-least exceeds at-most, so no value can satisfy both",
        );
    }
}

/// Returns the fault in an expectation that tests a claim of a source document.
fn find_claim_source_fault(expect: &Expectation) -> Option<&'static str> {
    let has_bounds = expect.at_least.is_some() || expect.at_most.is_some();
    match (&expect.found, expect.source) {
        (Some(_), None) => Some(
            "a claim of the source needs its figure: source = [LOW, HIGH], or \"more\" or \"less\" without a figure",
        ),
        (None, None) if expect.claim.is_some() => {
            Some("`claim` numbers a claim of the source; add `found` and `source`")
        }
        (None, Some(_)) => Some("`source` needs `found`, the finding of the source in words"),
        (_, Some(_)) if has_bounds => {
            Some("the bounds of a source's claim are its `source`; remove at-least and at-most")
        }
        (_, Some(SourceRange::Figures([low, high])))
            if !(low <= high && (low - high).is_finite()) =>
        {
            Some("`source` must be two finite numbers, the smaller one first")
        }
        (_, Some(SourceRange::Direction(_))) if expect.to.is_empty() => {
            Some("a direction compares two arms; add `to`, or write source = [LOW, HIGH]")
        }
        _ => None,
    }
}

/// Lists all quantities of sinks and links that the record of a run can contain.
pub(super) fn list_quantities(document: &ExperimentDocument) -> Vec<String> {
    let sinks = document.sink.values().flat_map(|sink| sink.measure.keys());
    let of_sinks = sinks.map(|name| name.get_ref().clone());
    let of_link =
        |name: &Spanned<String>| LINK_QUANTITIES.map(|what| format!("{}.{what}", name.get_ref()));
    of_sinks
        .chain(document.link.keys().flat_map(of_link))
        .collect()
}

pub(super) fn check_arm_selector(
    document: &ExperimentDocument,
    path: &str,
    values: &ArmSelector,
    faults: &mut FaultCollector<'_>,
) {
    for (name, value) in values {
        let path = format!("{path}.{}", name.get_ref());
        let Some(known) = document.sweep.get(name.get_ref().as_str()) else {
            faults.add_fault(name.span(), &path, "sweep does not define this variable");
            continue;
        };
        let wanted = scalar_text(value.get_ref());
        let in_sweep = known
            .iter()
            .any(|value| scalar_text(value.get_ref()) == wanted);
        let in_arms = |plan: crate::experiment::RunPlan| {
            plan.arms
                .iter()
                .any(|arm| arm.get(name.get_ref()) == wanted.as_ref())
        };
        if !in_sweep && !RunPlan::plan_all_scales(document).any(in_arms) {
            faults.add_fault(value.span(), &path, "the variable has no such value");
        }
    }
}
