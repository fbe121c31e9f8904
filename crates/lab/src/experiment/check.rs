//! Finds the faults of a document before anything is started.

mod arm_texts;
mod claims;
mod fault_collector;
mod graph;
mod plots;

pub(super) use arm_texts::find_link_setting;
pub(super) use claims::LINK_QUANTITIES;
pub(crate) use graph::starting_order;

use super::scalar_text;
use super::{DocumentFault, ExperimentDocument};
use fault_collector::FaultCollector;

/// Maximum number of arms at one scale.
const ARMS_MAX: usize = 1000;
/// Maximum number of scales. The texts of all arms of all scales are checked.
const SCALES_MAX: usize = 100;
/// Maximum number of names that a document defines.
const NAMES_MAX: usize = 1000;
const ROUNDS_MAX: u32 = 10_000;
/// Maximum number of concurrent runs. Each run has its own threads and sockets.
const PARALLEL_MAX: u32 = 64;

/// Returns all faults, sorted by their positions in the text.
pub fn check_document(text: &str, document: &ExperimentDocument) -> Vec<DocumentFault> {
    let mut faults = FaultCollector {
        text,
        found: Vec::new(),
    };
    // The time of the following checks grows faster than these numbers.
    check_sizes(document, &mut faults);
    if !faults.found.is_empty() {
        return faults.found;
    }
    check_names(document, &mut faults);
    check_rounds_and_sweeps(document, &mut faults);
    graph::check_graph(document, &mut faults);
    // The remaining checks look up names. After a fault in the previous checks, the remaining
    // checks would only report the same fault again.
    if faults.found.is_empty() {
        arm_texts::check_arm_texts(document, &mut faults);
        claims::check_claims(document, &mut faults);
        plots::check_plots(document, &mut faults);
    }
    let mut found = faults.found;
    found.sort_by_key(|fault| (fault.line, fault.column));
    found.dedup();
    found
}

/// Checks the numbers of names, scales and values of variables.
fn check_sizes(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let sinks = document.sink.values();
    let measured = sinks.map(|sink| sink.measure.len() + sink.series.len() + sink.histogram.len());
    let names = [
        document.source.len(),
        document.function.len(),
        document.place.len(),
        document.link.len(),
        document.sink.len(),
        document.sweep.len(),
    ];
    let names = names.into_iter().chain(measured).sum::<usize>();
    if names > NAMES_MAX {
        faults.add_fault(0..0, "", format!("{names} names; at most {NAMES_MAX}"));
    }
    let scales = document.scale.len();
    if scales > SCALES_MAX {
        faults.add_fault(
            0..0,
            "scale",
            format!("{scales} scales; at most {SCALES_MAX}"),
        );
    }
    let scaled = document.scale.values().flat_map(|scale| &scale.sweep);
    for (name, values) in document.sweep.iter().chain(scaled) {
        let count = values.len();
        if count > ARMS_MAX {
            let path = format!("sweep.{}", name.get_ref());
            faults.add_fault(
                name.span(),
                &path,
                format!("{count} values; at most {ARMS_MAX}"),
            );
        }
    }
}

fn check_names(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let mut all: Vec<(&str, &toml::Spanned<String>)> = Vec::new();
    all.extend(document.source.keys().map(|name| ("source", name)));
    all.extend(document.function.keys().map(|name| ("function", name)));
    all.extend(document.link.keys().map(|name| ("link", name)));
    all.extend(document.sink.keys().map(|name| ("sink", name)));
    all.extend(document.sweep.keys().map(|name| ("sweep", name)));
    for sink in document.sink.values() {
        all.extend(sink.measure.keys().map(|name| ("measure", name)));
        all.extend(sink.series.keys().map(|name| ("series", name)));
        all.extend(sink.histogram.keys().map(|name| ("histogram", name)));
    }
    let mut seen: Vec<&str> = vec!["port", "folder", "round", "seed", "part", "parts"];
    for (kind, name) in all {
        let (text, path) = (
            name.get_ref().as_str(),
            format!("{kind}.{}", name.get_ref()),
        );
        if !super::arms::is_name(text) || text.contains('.') {
            let what =
                "invalid name; use lower-case letters, digits and dashes, starting with a letter";
            faults.add_fault(name.span(), &path, what);
        } else if seen.contains(&text) {
            faults.add_fault(
                name.span(),
                &path,
                "this name is already used; choose another",
            );
        }
        seen.push(text);
    }
}

fn check_rounds_and_sweeps(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let scaled = document
        .scale
        .iter()
        .map(|(name, scale)| (format!("scale.{name}."), scale));
    let rounds = scaled
        .clone()
        .filter_map(|(at, scale)| Some((at, scale.rounds.as_ref()?)));
    for (at, rounds) in rounds.chain([(String::new(), &document.rounds)]) {
        if !(1..=ROUNDS_MAX).contains(rounds.get_ref()) {
            let what = format!("write 1 to {ROUNDS_MAX} rounds");
            faults.add_fault(rounds.span(), &format!("{at}rounds"), what);
        }
    }
    let parallel = scaled
        .clone()
        .map(|(at, scale)| (at, scale.parallel.as_ref()));
    let whole = (String::new(), document.parallel.as_ref());
    for (at, parallel) in parallel.chain([whole]) {
        let wrong = parallel.filter(|n| !(1..=PARALLEL_MAX).contains(n.get_ref()));
        if let Some(wrong) = wrong {
            let what = format!("write 1 to {PARALLEL_MAX} concurrent runs");
            faults.add_fault(wrong.span(), &format!("{at}parallel"), what);
        }
    }
    for (at, scale) in scaled {
        for name in scale.sweep.keys() {
            if !document.sweep.contains_key(name.get_ref().as_str()) {
                let path = format!("{at}sweep.{}", name.get_ref());
                faults.add_fault(name.span(), &path, "sweep does not define this variable");
            }
        }
    }
    let all = document.scale.values().flat_map(|scale| &scale.sweep);
    for (name, values) in document.sweep.iter().chain(all) {
        let path = format!("sweep.{}", name.get_ref());
        if values.is_empty() {
            faults.add_fault(name.span(), &path, "a variable needs at least one value");
        }
        let mut seen = Vec::new();
        for value in values {
            match scalar_text(value.get_ref()) {
                None => faults.add_fault(
                    value.span(),
                    &path,
                    "a value must be a string, a number, true or false",
                ),
                Some(text) if seen.contains(&text) => {
                    faults.add_fault(value.span(), &path, "duplicate value; remove one");
                }
                Some(text) => seen.push(text),
            }
        }
    }
    check_arm_count(document, faults);
}

/// Counts the arms of each scale without creating them, because a document may describe more arms
/// than fit into memory.
fn check_arm_count(document: &ExperimentDocument, faults: &mut FaultCollector<'_>) {
    let own = document.scale.iter();
    let own = own.filter(|(_, scale)| !scale.sweep.is_empty());
    let own = own.map(|(name, scale)| (format!("scale.{name}.sweep"), &scale.sweep));
    for (path, sweep) in own.chain([("sweep".to_owned(), &document.sweep)]) {
        let values = document.sweep.iter().map(|(name, values)| {
            let instead = sweep.get(name.get_ref().as_str());
            instead.unwrap_or(values).len()
        });
        let arms = values.fold(1usize, usize::saturating_mul);
        if arms > ARMS_MAX {
            let span = sweep.keys().next().map_or(0..0, toml::Spanned::span);
            faults.add_fault(span, &path, format!("{arms} arms; at most {ARMS_MAX}"));
        }
    }
}
