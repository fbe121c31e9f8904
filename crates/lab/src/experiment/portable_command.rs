//! Command lines for reports. They contain no paths of this machine.

use super::arms::{Arm, fill_placeholders};
use super::document::ExperimentDocument;
use super::placeholders::{RunContext, place_name, resolve_placeholder};
use std::path::PathBuf;

/// Returns the place and the command of a component in an arm. `kind` is `function` or `sink`.
/// Fills in variables, addresses and ports, but keeps sources, folder, round, seed and part as
/// placeholders. Returns `None` if there is no such component.
pub(crate) fn portable_command_line(
    document: &ExperimentDocument,
    arm: &Arm,
    kind: &str,
    name: &str,
) -> Option<(Option<String>, String)> {
    let (run, at, port) = match kind {
        "function" => {
            let function = document.function.get(name)?;
            (&function.run, &function.at, Some(*function.port.get_ref()))
        }
        _ => {
            let sink = document.sink.get(name)?;
            (&sink.run, &sink.at, None)
        }
    };
    let written = |name: &str| PathBuf::from(format!("{{{name}}}"));
    let sources = document.source.keys();
    let at = RunContext {
        folder: written("folder"),
        sources: sources
            .map(|name| (name.get_ref().clone(), written(name.get_ref())))
            .collect(),
        ..RunContext::before_deployment(place_name(at.as_ref()), port)
    };
    let known = |name: &str| match name {
        "round" | "seed" | "part" | "parts" => Some(format!("{{{name}}}")),
        name => resolve_placeholder(name, document, arm, &at),
    };
    let filled = fill_placeholders(run.get_ref(), &known).ok()?;
    Some((at.place.map(str::to_owned), filled))
}
