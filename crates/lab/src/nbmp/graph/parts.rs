//! A description's streams, functions and connections, by name.

use super::super::Level;
use super::super::path::{Offence, Place};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Names of streams.
pub(super) struct Streams<'a> {
    pub(super) inputs: BTreeSet<&'a str>,
    pub(super) outputs: BTreeSet<&'a str>,
}

impl<'a> Streams<'a> {
    pub(super) fn of(
        document: &'a Value,
        level: Level,
        root: &Place,
        found: &mut Vec<Offence>,
    ) -> Streams<'a> {
        let mut seen = BTreeSet::new();
        let mut side = |side| {
            let mut names = BTreeSet::new();
            for list in ["media-parameters", "metadata-parameters"] {
                for (n, stream) in items(document, side, list) {
                    let at = || root.at(side).at(list).nth(n).at("stream-id");
                    let Some(name) = text(stream, "stream-id") else {
                        if level == Level::Lax && stream.get("stream-id").is_none() {
                            found.push(at().offence("it is missing; add a name of its own"));
                        }
                        continue;
                    };
                    names.insert(name);
                    if !seen.insert(name) {
                        let what = "another stream has this stream-id; each has its own";
                        found.push(at().offence(what));
                    }
                }
            }
            names
        };
        Streams {
            inputs: side("input"),
            outputs: side("output"),
        }
    }
}

/// What connections can know of an instance.
pub(super) struct Function<'a> {
    /// Whose instance it is.
    pub(super) id: Option<&'a str>,
    pub(super) inputs: Option<Ports<'a>>,
    pub(super) outputs: Option<Ports<'a>>,
}

/// The ports of one side.
pub(super) struct Ports<'a> {
    /// In the document's order.
    pub(super) names: Vec<&'a str>,
    pub(super) known: BTreeSet<&'a str>,
}

impl<'a> Function<'a> {
    fn of(general: Option<&'a Value>) -> Function<'a> {
        let ports = |side| {
            let ports = general?.get(side)?.as_array()?;
            let names: Vec<&str> = ports.iter().filter_map(|p| text(p, "port-name")).collect();
            let known = names.iter().copied().collect();
            Some(Ports { names, known })
        };
        Function {
            id: general.and_then(|general| text(general, "id")),
            inputs: ports("input-ports"),
            outputs: ports("output-ports"),
        }
    }
}

/// All instances that are described.
pub(super) fn functions<'a>(
    document: &'a Value,
    root: &Place,
    found: &mut Vec<Offence>,
) -> BTreeMap<&'a str, Function<'a>> {
    let mut functions = BTreeMap::new();
    let at = root.at("processing").at("function-restrictions");
    for (n, function) in items(document, "processing", "function-restrictions") {
        let Some(name) = text(function, "instance") else {
            continue;
        };
        let described = Function::of(function.get("general"));
        if functions.insert(name, described).is_some() {
            let what = "another function has this instance; each has its own";
            found.push(at.nth(n).at("instance").offence(what));
        }
    }
    functions
}

/// One of a connection's two ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct End<'a> {
    pub(super) id: &'a str,
    pub(super) instance: Option<&'a str>,
    pub(super) port: Option<&'a str>,
}

pub(super) struct Connection<'a> {
    /// Its place in the map.
    pub(super) number: usize,
    pub(super) from: End<'a>,
    pub(super) to: End<'a>,
    pub(super) breakable: bool,
}

/// All connections that have two ends.
pub(super) fn connections<'a>(
    document: &'a Value,
    root: &Place,
    found: &mut Vec<Offence>,
) -> Vec<Connection<'a>> {
    let mut seen = BTreeSet::new();
    let mut connections = Vec::new();
    let at = root.at("processing").at("connection-map");
    for (number, connection) in items(document, "processing", "connection-map") {
        if text(connection, "connection-id").is_some_and(|id| !seen.insert(id)) {
            let what = "another connection has this connection-id; each has its own";
            found.push(at.nth(number).at("connection-id").offence(what));
        }
        let end = |name| {
            let end = connection.get(name)?;
            Some(End {
                id: text(end, "id")?,
                instance: text(end, "instance"),
                port: text(end, "port-name"),
            })
        };
        let (Some(from), Some(to)) = (end("from"), end("to")) else {
            continue;
        };
        let breakable = connection.get("breakable").and_then(Value::as_bool);
        connections.push(Connection {
            number,
            from,
            to,
            breakable: breakable.unwrap_or(true),
        });
    }
    connections
}

pub(super) fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}

/// The elements of a descriptor's array, with their numbers.
pub(super) fn items<'a>(
    document: &'a Value,
    descriptor: &str,
    list: &str,
) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    let list = document.get(descriptor).and_then(|of| of.get(list));
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.enumerate()
}
