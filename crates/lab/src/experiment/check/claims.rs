//! Whether what is expected speaks of what is measured.

use super::{Faults, plans};
use crate::experiment::arms::plain;
use crate::experiment::document::{Document, Expect};
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// What is measured of every link.
pub(in crate::experiment) const OF_LINKS: [&str; 4] = ["lost", "dropped", "down-bytes", "up-bytes"];

pub(super) type Values = BTreeMap<Spanned<String>, Spanned<Value>>;

pub(super) fn check(document: &Document, faults: &mut Faults<'_>) {
    let known = quantities(document);
    for (number, expect) in document.expect.iter().enumerate() {
        let path = format!("expect[{number}]");
        let at = expect.span();
        let expect = expect.get_ref();
        let quantity = &expect.quantity;
        if !known.contains(quantity.get_ref()) {
            let what = format!("nothing measures this; there are {}", known.join(", "));
            faults.add(quantity.span(), &format!("{path}.quantity"), what);
        }
        for (key, values) in [
            ("of", &expect.of),
            ("to", &expect.to),
            ("where", &expect.only),
        ] {
            variables(document, &format!("{path}.{key}"), values, faults);
        }
        if !expect.to.is_empty() {
            alike(&expect.of, &expect.to, at.clone(), &path, faults);
        }
        bounds(expect, at, &path, faults);
    }
}

/// What is compared differs in these variables.
pub(super) fn alike(
    of: &Values,
    to: &Values,
    at: std::ops::Range<usize>,
    path: &str,
    faults: &mut Faults<'_>,
) {
    let names = |values: &Values| -> Vec<String> {
        values.keys().map(|name| name.get_ref().clone()).collect()
    };
    if names(of) != names(to) {
        let what = "of and to name the same variables, with other values";
        faults.add(at, &format!("{path}.to"), what);
    }
}

fn bounds(expect: &Expect, at: std::ops::Range<usize>, path: &str, faults: &mut Faults<'_>) {
    let (least, most) = (expect.at_least, expect.at_most);
    if [least, most]
        .into_iter()
        .flatten()
        .any(|bound| !bound.is_finite())
    {
        faults.add(at, path, "bounds are numbers");
    } else if matches!((least, most), (Some(least), Some(most)) if least > most) {
        faults.add(at, path, "at-least is above at-most: nothing could hold");
    }
}

/// All that a run's record will have.
pub(super) fn quantities(document: &Document) -> Vec<String> {
    let sinks = document.sink.values().flat_map(|sink| sink.measure.keys());
    let of_sinks = sinks.map(|name| name.get_ref().clone());
    let of_link =
        |name: &Spanned<String>| OF_LINKS.map(|what| format!("{}.{what}", name.get_ref()));
    of_sinks
        .chain(document.link.keys().flat_map(of_link))
        .collect()
}

pub(super) fn variables(document: &Document, path: &str, values: &Values, faults: &mut Faults<'_>) {
    for (name, value) in values {
        let path = format!("{path}.{}", name.get_ref());
        let Some(known) = document.sweep.get(name.get_ref().as_str()) else {
            faults.add(name.span(), &path, "there is no such variable in sweep");
            continue;
        };
        let wanted = plain(value.get_ref());
        let in_sweep = known.iter().any(|value| plain(value.get_ref()) == wanted);
        let in_arms = |plan: crate::experiment::Plan| {
            plan.arms
                .iter()
                .any(|arm| arm.get(name.get_ref()) == wanted.as_ref())
        };
        if !in_sweep && !plans(document).into_iter().any(in_arms) {
            faults.add(value.span(), &path, "the variable never has this value");
        }
    }
}
