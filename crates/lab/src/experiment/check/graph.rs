//! Checks that all references resolve and that inputs form no cycle.

use super::fault_collector::FaultCollector;
use crate::experiment::ExperimentDocument;
use crate::experiment::arms::is_name;
use crate::experiment::document::SinkSpec;
use crate::experiment::placeholders::{DEFAULT_PLACE, place_name, place_or_default_if_unlinked};
use crate::experiment::quantity::QuantityLocator;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// Maximum number of agents that run parts of a sink.
const AGENTS_MAX: u32 = 256;

pub(super) fn check_graph(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    if document.sink.is_empty() {
        faults.add_fault(
            0..0,
            "sink",
            "the document has no sink, so nothing is measured; add [sink.NAME]",
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
            let what = "write either media = PATH or make = COMMAND";
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
                "a link must connect two different places",
            );
        }
        if !pairs.insert((a.min(b), a.max(b))) {
            faults.add_fault(
                link.between.span(),
                &path,
                "another link connects these places",
            );
        }
        known.extend([a.as_str(), b.as_str()]);
    }
    if document.link.len() > 200 {
        faults.add_fault(0..0, "link", "too many links; use at most 200");
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
                let what = format!("the place is missing; write at = one of {known:?}");
                faults.add_fault(name.span(), &path, what);
            }
            Some(at) if known.contains(at.get_ref().as_str()) => {}
            Some(at) => {
                let what = "unknown place: no [link.NAME] contains it, and there is no [place.NAME] of that name";
                faults.add_fault(
                    at.span(),
                    &path,
                    format!("{what}; the document defines {known:?}"),
                );
            }
        }
    }
    check_listen_ports(document, faults);
    check_place_tables(document, faults);
}

/// Checks that all functions of a place have different ports. All places that are not the end of a
/// link are treated as one place, because without agents these places share one network namespace.
fn check_listen_ports(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let mut ports = BTreeSet::new();
    for (name, function) in &document.function {
        let place = place_or_default_if_unlinked(document, place_name(function.at.as_ref()));
        let (port, path) = (&function.port, format!("function.{}.port", name.get_ref()));
        if *port.get_ref() == 0 {
            let what =
                "write a port from 1 to 65535; functions at different places may use the same port";
            faults.add_fault(port.span(), &path, what);
        } else if !ports.insert((place, *port.get_ref())) {
            faults.add_fault(
                port.span(),
                &path,
                "another function at this place listens on this port",
            );
        }
    }
}

/// Checks the `[place.NAME]` tables.
fn check_place_tables(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    for (name, place) in &document.place {
        let (text, path) = (name.get_ref().as_str(), format!("place.{}", name.get_ref()));
        if !is_name(text) || text.contains('.') || text == DEFAULT_PLACE {
            let what = "invalid name; use lower-case letters, digits and dashes, starting with a letter, and not `here`";
            faults.add_fault(name.span(), &path, what);
        }
        let Some(agents) = &place.agents else {
            continue;
        };
        let path = format!("{path}.agents");
        let mut function_places = document
            .function
            .values()
            .map(|f| place_name(f.at.as_ref()));
        let number = *agents.get_ref();
        if !(1..=AGENTS_MAX).contains(&number) {
            let what = format!("write 1 to {AGENTS_MAX} agents");
            faults.add_fault(agents.span(), &path, what);
        } else if number > 1 && place_or_default_if_unlinked(document, Some(text)) != DEFAULT_PLACE
        {
            let what = "this place is the end of a link, which must be on one agent; write 1";
            faults.add_fault(agents.span(), &path, what);
        } else if number > 1 && function_places.any(|at| at == Some(text)) {
            let what = "a function at this place runs only once, so the place must be on one agent; write 1";
            faults.add_fault(agents.span(), &path, what);
        } else if number > 1 {
            check_mergeability(document, text, faults);
        }
    }
}

/// Checks that the measurements of several agents can be merged.
fn check_mergeability(document: &ExperimentDocument, place: &str, faults: &mut FaultCollector<'_>) {
    let is_at_place = |sink: &&SinkSpec| place_name(sink.at.as_ref()) == Some(place);
    for (name, text) in document
        .sink
        .values()
        .filter(is_at_place)
        .flat_map(|sink| &sink.measure)
    {
        if QuantityLocator::parse_locator(text.get_ref())
            .is_ok_and(|quantity| !quantity.is_mergeable())
        {
            let what =
                "several agents measure this quantity; write sum, mean, least or most before it";
            faults.add_fault(text.span(), &format!("measure.{}", name.get_ref()), what);
        }
    }
    let sinks = document.sink.values().filter(is_at_place);
    for name in sinks.flat_map(|sink| sink.series.keys()) {
        let what =
            "several agents would measure this series, but series cannot be merged; use one agent";
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
                    format!("no source or function is named {wanted}"),
                );
            }
        }
    }
}

fn check_cycles(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    if starting_order(document).is_none() {
        let waits = |(name, _): &(&Spanned<String>, _)| is_in_cycle(document, name.get_ref());
        for (name, _) in document.function.iter().filter(waits) {
            let path = format!("function.{}.input", name.get_ref());
            faults.add_fault(
                name.span(),
                &path,
                "the inputs form a cycle; remove one of them",
            );
        }
    }
}

fn is_in_cycle(document: &ExperimentDocument, name: &str) -> bool {
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

/// Returns an order in which every function follows its inputs, or `None` if the inputs form a
/// cycle.
pub(crate) fn starting_order(document: &ExperimentDocument) -> Option<Vec<&str>> {
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, function) in &document.function {
        let inputs = function.input.iter().map(|input| input.get_ref().as_str());
        let inputs = inputs.filter(|input| document.function.contains_key(*input));
        waiting.insert(name.get_ref(), inputs.collect());
    }
    let (mut order, mut started) = (Vec::new(), BTreeSet::new());
    while !waiting.is_empty() {
        let ready = |inputs: &Vec<&str>| inputs.iter().all(|input| started.contains(input));
        let next = waiting
            .iter()
            .find(|(_, inputs)| ready(inputs))
            .map(|(name, _)| *name)?;
        waiting.remove(next);
        started.insert(next);
        order.push(next);
    }
    Some(order)
}
