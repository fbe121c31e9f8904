//! Resolves the placeholders in a document's commands.

use super::arms::Arm;
use super::document::{ExperimentDocument, FunctionSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The place of all functions and sinks that are not at the end of a link.
pub(crate) const DEFAULT_PLACE: &str = "here";

/// The context of a command. The context, the document and the arm determine the values of the
/// command's placeholders.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunContext<'a> {
    /// Place of the command as written in the document; `None` if the document gives no place.
    pub(crate) place: Option<&'a str>,
    /// Port of the function; `None` for sinks.
    pub(crate) port: Option<u16>,
    /// Folder of the run.
    pub(crate) folder: PathBuf,
    /// Paths of the sources, by name.
    pub(crate) sources: BTreeMap<String, PathBuf>,
    pub(crate) round: u32,
    pub(crate) seed: u64,
    /// The part of the run that this agent executes; `None` without agents.
    pub(crate) share: Option<AgentShare>,
}

/// The part of a distributed run that one agent executes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentShare {
    /// Places on this agent, each with the part number (from 0) and the number of parts.
    pub(crate) places: BTreeMap<String, (u32, u32)>,
    /// `ADDRESS:PORT` of each function whose place is not the end of a link, as seen from this
    /// agent.
    pub(crate) addresses: BTreeMap<String, String>,
}

impl<'a> RunContext<'a> {
    /// Creates a context without a deployment, for checks and for the commands in reports.
    pub(super) fn before_deployment(place: Option<&'a str>, port: Option<u16>) -> RunContext<'a> {
        RunContext {
            place,
            port,
            ..RunContext::default()
        }
    }

    /// Returns whether a place is on this machine.
    pub(super) fn is_local_place(&self, place: &str) -> bool {
        let share = self.share.as_ref();
        share.is_none_or(|share| share.places.contains_key(place))
    }

    /// Returns the part number (from 0) and the number of parts.
    fn part_number(&self) -> (u32, u32) {
        let place = self.place.unwrap_or(DEFAULT_PLACE);
        let share = self.share.as_ref();
        let part = share.and_then(|share| share.places.get(place).copied());
        part.unwrap_or((0, 1))
    }
}

/// Returns the value of a placeholder; `None` if the placeholder is unknown or has no value here.
pub(super) fn resolve_placeholder(
    name: &str,
    document: &ExperimentDocument,
    arm: &Arm,
    at: &RunContext<'_>,
) -> Option<String> {
    if let Some(value) = arm.get(name) {
        return Some(value.clone());
    }
    if document.source.contains_key(name) {
        let path = at.sources.get(name).cloned().unwrap_or_default();
        return Some(path.display().to_string());
    }
    if let Some(function) = document.function.get(name) {
        let assigned = at
            .share
            .as_ref()
            .and_then(|share| share.addresses.get(name));
        if let (Some(assigned), DEFAULT_PLACE) =
            (assigned, place_or_default_if_unlinked(document, at.place))
        {
            return Some(assigned.clone());
        }
        let address = function_address(document, at.place, function)?;
        return Some(format!("{address}:{}", function.port.get_ref()));
    }
    match name {
        "port" => at.port.map(|port| port.to_string()),
        "folder" => Some(at.folder.display().to_string()),
        "round" => Some(at.round.to_string()),
        "seed" => Some(at.seed.to_string()),
        "part" => Some(at.part_number().0.to_string()),
        "parts" => Some(at.part_number().1.to_string()),
        _ => None,
    }
}

/// Returns a function's address as seen from a place. Returns `None` if the function is at another
/// place and no link joins the two places.
fn function_address(
    document: &ExperimentDocument,
    from: Option<&str>,
    function: &FunctionSpec,
) -> Option<Ipv4Addr> {
    let to = place_or_default_if_unlinked(document, place_name(function.at.as_ref()));
    let from = place_or_default_if_unlinked(document, from);
    if from == to {
        return Some(Ipv4Addr::LOCALHOST);
    }
    let mut numbered = (0u8..).zip(document.link.values());
    numbered.find_map(|(number, link)| {
        let [first, second] = link.between.get_ref();
        match () {
            () if first == from && second == to => Some(Ipv4Addr::new(10, 77, number, 2)),
            () if first == to && second == from => Some(Ipv4Addr::new(10, 77, number, 1)),
            () => None,
        }
    })
}

/// Returns `place` if it is the end of a link, and [`DEFAULT_PLACE`] otherwise.
pub(crate) fn place_or_default_if_unlinked<'a>(
    document: &'a ExperimentDocument,
    place: Option<&str>,
) -> &'a str {
    let mut ends = document
        .link
        .values()
        .flat_map(|link| link.between.get_ref());
    ends.find(|end| Some(end.as_str()) == place)
        .map_or(DEFAULT_PLACE, String::as_str)
}

/// Returns the name of a place as written in the document.
pub(crate) fn place_name(at: Option<&toml::Spanned<String>>) -> Option<&str> {
    at.map(|at| at.get_ref().as_str())
}
