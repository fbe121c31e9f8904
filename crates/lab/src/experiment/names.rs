//! What `{name}` stands for in a document's commands.

use super::arms::Arm;
use super::document::{Document, Function};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Where things run that no link joins.
pub(crate) const ONLY: &str = "here";

/// What a text's names depend on besides the document and the arm.
#[derive(Debug, Clone, Default)]
pub(crate) struct Where<'a> {
    /// The place, among those of links.
    pub(crate) place: Option<&'a str>,
    /// The function's own port.
    pub(crate) port: Option<u16>,
    /// The run's folder.
    pub(crate) folder: PathBuf,
    /// Where sources lie.
    pub(crate) sources: BTreeMap<String, PathBuf>,
    pub(crate) round: u32,
    pub(crate) seed: u64,
    /// Which of an experiment's agents this is; none where it is alone.
    pub(crate) share: Option<Share>,
}

/// What one of several agents has to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// Places that are here, and which part of how many of its sinks each runs.
    pub(crate) places: BTreeMap<String, (u32, u32)>,
    /// `ADDRESS:PORT` of functions that no link reaches, as they are reached from here.
    pub(crate) addresses: BTreeMap<String, String>,
}

impl<'a> Where<'a> {
    /// Before anything stands: names stand for something, whatever it will be.
    pub(super) fn unbuilt(place: Option<&'a str>, port: Option<u16>) -> Where<'a> {
        Where {
            place,
            port,
            ..Where::default()
        }
    }

    /// Whether a place is here.
    pub(super) fn holds(&self, place: &str) -> bool {
        let share = self.share.as_ref();
        share.is_none_or(|share| share.places.contains_key(place))
    }

    /// From 0, and of how many.
    fn part(&self) -> (u32, u32) {
        let place = self.place.unwrap_or(ONLY);
        let share = self.share.as_ref();
        let part = share.and_then(|share| share.places.get(place).copied());
        part.unwrap_or((0, 1))
    }
}

/// What `{name}` stands for in a command.
pub(super) fn stands_for(
    name: &str,
    document: &Document,
    arm: &Arm,
    at: &Where<'_>,
) -> Option<String> {
    if let Some(value) = arm.get(name) {
        return Some(value.clone());
    }
    if document.source.contains_key(name) {
        let path = at.sources.get(name).cloned().unwrap_or_default();
        return Some(path.display().to_string());
    }
    if let Some(function) = document.function.get(name) {
        let told = at
            .share
            .as_ref()
            .and_then(|share| share.addresses.get(name));
        if let (Some(told), ONLY) = (told, joined(document, at.place)) {
            return Some(told.clone());
        }
        let address = reached(document, at.place, function)?;
        return Some(format!("{address}:{}", function.port.get_ref()));
    }
    match name {
        "port" => at.port.map(|port| port.to_string()),
        "folder" => Some(at.folder.display().to_string()),
        "round" => Some(at.round.to_string()),
        "seed" => Some(at.seed.to_string()),
        "part" => Some(at.part().0.to_string()),
        "parts" => Some(at.part().1.to_string()),
        _ => None,
    }
}

/// A function's address as seen from a place; none where no link joins them.
fn reached(document: &Document, from: Option<&str>, function: &Function) -> Option<Ipv4Addr> {
    let to = joined(document, place_of(function.at.as_ref()));
    let from = joined(document, from);
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

/// A place, if it is the end of a link; all others are one.
pub(crate) fn joined<'a>(document: &'a Document, place: Option<&str>) -> &'a str {
    let mut ends = document
        .link
        .values()
        .flat_map(|link| link.between.get_ref());
    ends.find(|end| Some(end.as_str()) == place)
        .map_or(ONLY, String::as_str)
}

/// A place's name as it is written.
pub(crate) fn place_of(at: Option<&toml::Spanned<String>>) -> Option<&str> {
    at.map(|at| at.get_ref().as_str())
}
