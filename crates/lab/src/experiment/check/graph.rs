//! Checks that all references resolve and that inputs form no cycle.

use super::FaultCollector;
use crate::experiment::ExperimentDocument;
use crate::experiment::arms::is_name;
use crate::experiment::document::SinkSpec;
use crate::experiment::placeholders::{ONLY, link_end, place_of};
use crate::experiment::quantity::QuantityExpression;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// Maximum number of agents that run parts of a sink.
const AGENTS_MAX: u32 = 256;

pub(super) fn check_graph(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    if document.sink.is_empty() {
        faults.add_fault(
            0..0,
            "sink",
            "without a sink nothing is measured: add [sink.NAME]",
        );
    }
    check_sources(document, faults);
    check_places(document, faults);
    check_inputs(document, faults);
    check_cycles(document, faults);
}

fn check_sources(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    for (name, source) in &document.source {
        if source.media.is_some() == source.make.is_some() {
            let path = format!("source.{}", name.get_ref());
            let what = "a source has either media = PATH or make = COMMAND";
            faults.add_fault(name.span(), &path, what);
        }
    }
}

fn check_places(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let mut known = BTreeSet::new();
    let mut pairs = BTreeSet::new();
    for (name, link) in &document.link {
        let path = format!("link.{}.between", name.get_ref());
        let [a, b] = link.between.get_ref();
        if a == b {
            faults.add_fault(
                link.between.span(),
                &path,
                "a link joins two different places",
            );
        }
        if !pairs.insert((a.min(b), a.max(b))) {
            faults.add_fault(
                link.between.span(),
                &path,
                "another link joins these places",
            );
        }
        known.extend([a.as_str(), b.as_str()]);
    }
    if document.link.len() > 200 {
        faults.add_fault(0..0, "link", "at most 200 links");
    }
    known.extend(document.place.keys().map(|name| name.get_ref().as_str()));
    let functions = document.function.iter();
    let functions = functions.map(|(n, f)| ("function", n, &f.at));
    let sinks = document.sink.iter().map(|(n, s)| ("sink", n, &s.at));
    for (kind, name, at) in functions.chain(sinks) {
        let path = format!("{kind}.{}.at", name.get_ref());
        match at {
            None if known.is_empty() => {}
            None => {
                let what = format!("say where it runs: one of {known:?}");
                faults.add_fault(name.span(), &path, what);
            }
            Some(at) if known.contains(at.get_ref().as_str()) => {}
            Some(at) => {
                let what =
                    "no [link.NAME] has this place, and there is no [place.NAME] of that name";
                faults.add_fault(at.span(), &path, format!("{what}; there are {known:?}"));
            }
        }
    }
    check_ports(document, faults);
    check_place_tables(document, faults);
}

/// Checks that ports are free. Without agents, all places that no link joins share their ports.
fn check_ports(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let mut ports = BTreeSet::new();
    for (name, function) in &document.function {
        let place = link_end(document, place_of(function.at.as_ref()));
        let (port, path) = (&function.port, format!("function.{}.port", name.get_ref()));
        if *port.get_ref() == 0 {
            let what = "a port is from 1; places have ports of their own";
            faults.add_fault(port.span(), &path, what);
        } else if !ports.insert((place, *port.get_ref())) {
            faults.add_fault(port.span(), &path, "another function listens there");
        }
    }
}

/// Checks the tables of places.
fn check_place_tables(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    for (name, place) in &document.place {
        let (text, path) = (name.get_ref().as_str(), format!("place.{}", name.get_ref()));
        if !is_name(text) || text.contains('.') || text == ONLY {
            let what =
                "a place is lower case letters, digits and dashes, a letter first; not `here`";
            faults.add_fault(name.span(), &path, what);
        }
        let Some(agents) = &place.agents else {
            continue;
        };
        let path = format!("{path}.agents");
        let mut there = document.function.values().map(|f| place_of(f.at.as_ref()));
        let number = *agents.get_ref();
        if !(1..=AGENTS_MAX).contains(&number) {
            let what = format!("from 1 to {AGENTS_MAX} agents");
            faults.add_fault(agents.span(), &path, what);
        } else if number > 1 && link_end(document, Some(text)) != ONLY {
            let what = "a link has its ends on one machine: such a place is on one agent";
            faults.add_fault(agents.span(), &path, what);
        } else if number > 1 && there.any(|at| at == Some(text)) {
            let what = "a function runs once: only sinks can be in parts";
            faults.add_fault(agents.span(), &path, what);
        } else if number > 1 {
            check_parts(document, text, faults);
        }
    }
}

/// Checks that measurements of several parts can be merged.
fn check_parts(document: &ExperimentDocument, place: &str, faults: &mut FaultCollector<'_>) {
    let there = |sink: &&SinkSpec| place_of(sink.at.as_ref()) == Some(place);
    for (name, text) in document
        .sink
        .values()
        .filter(there)
        .flat_map(|sink| &sink.measure)
    {
        if QuantityExpression::parse_expression(text.get_ref())
            .is_ok_and(|quantity| !quantity.adds_up())
        {
            let what = "it is measured in parts: write sum, mean, least or most before it";
            faults.add_fault(text.span(), &format!("measure.{}", name.get_ref()), what);
        }
    }
    let sinks = document.sink.values().filter(there);
    for name in sinks.flat_map(|sink| sink.series.keys()) {
        let what = "it is measured in parts: series of several cannot be put together";
        faults.add_fault(name.span(), &format!("series.{}", name.get_ref()), what);
    }
}

fn check_inputs(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let functions = document
        .function
        .iter()
        .map(|(n, f)| ("function", n, &f.input));
    let sinks = document.sink.iter().map(|(n, s)| ("sink", n, &s.input));
    for (kind, name, inputs) in functions.chain(sinks) {
        for input in inputs {
            let wanted = input.get_ref().as_str();
            if !document.source.contains_key(wanted) && !document.function.contains_key(wanted) {
                let path = format!("{kind}.{}.input", name.get_ref());
                faults.add_fault(
                    input.span(),
                    &path,
                    format!("there is no source or function {wanted}"),
                );
            }
        }
    }
}

fn check_cycles(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    if starting_order(document).is_none() {
        let waits = |(name, _): &(&Spanned<String>, _)| waits_for_itself(document, name.get_ref());
        for (name, _) in document.function.iter().filter(waits) {
            let path = format!("function.{}.input", name.get_ref());
            faults.add_fault(
                name.span(),
                &path,
                "it waits for itself: inputs go in a circle",
            );
        }
    }
}

fn waits_for_itself(document: &ExperimentDocument, name: &str) -> bool {
    let mut reached = BTreeSet::new();
    let mut next = vec![name];
    while let Some(at) = next.pop() {
        let inputs = document.function.get(at).map(|function| &function.input);
        for input in inputs.into_iter().flatten() {
            if reached.insert(input.get_ref().as_str()) {
                next.push(input.get_ref());
            }
        }
    }
    reached.contains(name)
}

/// Orders the functions after their inputs; `None` if the inputs form a cycle.
pub(crate) fn starting_order(document: &ExperimentDocument) -> Option<Vec<&str>> {
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, function) in &document.function {
        let inputs = function.input.iter().map(|input| input.get_ref().as_str());
        let inputs = inputs.filter(|input| document.function.contains_key(*input));
        waiting.insert(name.get_ref(), inputs.collect());
    }
    let mut order: Vec<&str> = Vec::new();
    while !waiting.is_empty() {
        let ready = |inputs: &Vec<&str>| inputs.iter().all(|input| order.contains(input));
        let next = waiting
            .iter()
            .find(|(_, inputs)| ready(inputs))
            .map(|(name, _)| *name)?;
        waiting.remove(next);
        order.push(next);
    }
    Some(order)
}
