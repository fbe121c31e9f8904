//! A command line as it is told, with nothing of where this machine keeps its files.

use super::arms::{Arm, fill};
use super::document::Document;
use super::names::{Where, place_of, stands_for};
use std::path::PathBuf;

/// The place and the command of a `function` or a `sink` in an arm: variables, addresses and ports
/// filled in; sources, the folder, the round, the seed and the part as they are written. None where there is
/// no such part.
pub(crate) fn command_line(
    document: &Document,
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
    let at = Where {
        folder: written("folder"),
        sources: sources
            .map(|name| (name.get_ref().clone(), written(name.get_ref())))
            .collect(),
        ..Where::unbuilt(place_of(at.as_ref()), port)
    };
    let known = |name: &str| match name {
        "round" | "seed" | "part" | "parts" => Some(format!("{{{name}}}")),
        name => stands_for(name, document, arm, &at),
    };
    let filled = fill(run.get_ref(), &known).ok()?;
    Some((at.place.map(str::to_owned), filled))
}
