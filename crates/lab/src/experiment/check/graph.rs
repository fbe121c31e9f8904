//! Whether everything named is there, and nothing waits for itself.

use super::Faults;
use crate::experiment::Document;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// Where things run when there is no link.
const ONLY: &str = "here";

pub(super) fn check(document: &Document, faults: &mut Faults<'_>) {
    if document.sink.is_empty() {
        faults.add(
            0..0,
            "sink",
            "without a sink nothing is measured: add [sink.NAME]",
        );
    }
    sources(document, faults);
    places(document, faults);
    inputs(document, faults);
    cycles(document, faults);
}

fn sources(document: &Document, faults: &mut Faults<'_>) {
    for (name, source) in &document.source {
        if source.media.is_some() == source.make.is_some() {
            let path = format!("source.{}", name.get_ref());
            let what = "a source has either media = PATH or make = COMMAND";
            faults.add(name.span(), &path, what);
        }
    }
}

fn places(document: &Document, faults: &mut Faults<'_>) {
    let mut known = BTreeSet::new();
    let mut pairs = BTreeSet::new();
    for (name, link) in &document.link {
        let path = format!("link.{}.between", name.get_ref());
        let [a, b] = link.between.get_ref();
        if a == b {
            faults.add(
                link.between.span(),
                &path,
                "a link joins two different places",
            );
        }
        if !pairs.insert((a.min(b), a.max(b))) {
            faults.add(
                link.between.span(),
                &path,
                "another link joins these places",
            );
        }
        known.extend([a.as_str(), b.as_str()]);
    }
    if document.link.len() > 200 {
        faults.add(0..0, "link", "at most 200 links");
    }
    let functions = document
        .function
        .iter()
        .map(|(n, f)| ("function", n, &f.at));
    let sinks = document.sink.iter().map(|(n, s)| ("sink", n, &s.at));
    for (kind, name, at) in functions.chain(sinks) {
        let path = format!("{kind}.{}.at", name.get_ref());
        match at {
            None if known.is_empty() => {}
            None => faults.add(
                name.span(),
                &path,
                format!("say where it runs: one of {known:?}"),
            ),
            Some(at) if known.contains(at.get_ref().as_str()) => {}
            Some(at) if known.is_empty() => {
                faults.add(
                    at.span(),
                    &path,
                    "without links there are no places: leave it out",
                );
            }
            Some(at) => {
                faults.add(
                    at.span(),
                    &path,
                    format!("no link has this place; there are {known:?}"),
                );
            }
        }
    }
    let mut ports = BTreeSet::new();
    for (name, function) in &document.function {
        let place = function.at.as_ref().map_or(ONLY, |at| at.get_ref());
        let (port, path) = (&function.port, format!("function.{}.port", name.get_ref()));
        if *port.get_ref() == 0 {
            faults.add(
                port.span(),
                &path,
                "a port is from 1; places have ports of their own",
            );
        } else if !ports.insert((place, *port.get_ref())) {
            faults.add(port.span(), &path, "another function listens there");
        }
    }
}

fn inputs(document: &Document, faults: &mut Faults<'_>) {
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
                faults.add(
                    input.span(),
                    &path,
                    format!("there is no source or function {wanted}"),
                );
            }
        }
    }
}

fn cycles(document: &Document, faults: &mut Faults<'_>) {
    if starting_order(document).is_none() {
        let waits = |(name, _): &(&Spanned<String>, _)| waits_for_itself(document, name.get_ref());
        for (name, _) in document.function.iter().filter(waits) {
            let path = format!("function.{}.input", name.get_ref());
            faults.add(
                name.span(),
                &path,
                "it waits for itself: inputs go in a circle",
            );
        }
    }
}

fn waits_for_itself(document: &Document, name: &str) -> bool {
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

/// The functions so that each comes after its inputs; none where they go in a circle.
pub(in crate::experiment) fn starting_order(document: &Document) -> Option<Vec<&str>> {
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
