//! Collects the streams, functions and connections of a description.

use super::super::ValidationStrictness;
use super::super::json_path::{JsonPath, NbmpFault};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Identifiers (`stream-id`) of the input and output streams.
pub(super) struct StreamNames<'a> {
    pub(super) inputs: BTreeSet<&'a str>,
    pub(super) outputs: BTreeSet<&'a str>,
}

impl<'a> StreamNames<'a> {
    pub(super) fn from_description(
        document: &'a Value,
        level: ValidationStrictness,
        root: &JsonPath,
        found: &mut Vec<NbmpFault>,
    ) -> StreamNames<'a> {
        let mut seen = BTreeSet::new();
        let mut side = |side| {
            let mut names = BTreeSet::new();
            for list in ["media-parameters", "metadata-parameters"] {
                for (n, stream) in descriptor_items(document, side, list) {
                    let at = || root.at(side).at(list).element(n).at("stream-id");
                    let Some(name) = text_member(stream, "stream-id") else {
                        if level == ValidationStrictness::Lenient
                            && stream.get("stream-id").is_none()
                        {
                            found.push(at().fault_here("missing; add a unique name"));
                        }
                        continue;
                    };
                    names.insert(name);
                    if !seen.insert(name) {
                        let what = "another stream has this stream-id; use a unique one";
                        found.push(at().fault_here(what));
                    }
                }
            }
            names
        };
        StreamNames {
            inputs: side("input"),
            outputs: side("output"),
        }
    }
}

/// The properties of an instance that are needed to check connections.
pub(super) struct GraphFunction<'a> {
    /// Identifier of the function that is instantiated.
    pub(super) id: Option<&'a str>,
    pub(super) inputs: Option<PortList<'a>>,
    pub(super) outputs: Option<PortList<'a>>,
}

/// The input ports or the output ports of a function.
pub(super) struct PortList<'a> {
    /// Port names in the order of the document.
    pub(super) names: Vec<&'a str>,
    pub(super) known: BTreeSet<&'a str>,
}

impl<'a> GraphFunction<'a> {
    fn from_general_descriptor(general: Option<&'a Value>) -> GraphFunction<'a> {
        let ports = |side| {
            let ports = general?.get(side)?.as_array()?;
            let names: Vec<&str> = ports
                .iter()
                .filter_map(|p| text_member(p, "port-name"))
                .collect();
            let known = names.iter().copied().collect();
            Some(PortList { names, known })
        };
        GraphFunction {
            id: general.and_then(|general| text_member(general, "id")),
            inputs: ports("input-ports"),
            outputs: ports("output-ports"),
        }
    }
}

/// Returns the instances in `function-restrictions`, by name.
pub(super) fn collect_graph_functions<'a>(
    document: &'a Value,
    root: &JsonPath,
    found: &mut Vec<NbmpFault>,
) -> BTreeMap<&'a str, GraphFunction<'a>> {
    let mut functions = BTreeMap::new();
    let at = root.at("processing").at("function-restrictions");
    for (n, function) in descriptor_items(document, "processing", "function-restrictions") {
        let Some(name) = text_member(function, "instance") else {
            continue;
        };
        let described = GraphFunction::from_general_descriptor(function.get("general"));
        if functions.insert(name, described).is_some() {
            let what = "another function has this instance; use a unique name";
            found.push(at.element(n).at("instance").fault_here(what));
        }
    }
    functions
}

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionEnd<'a> {
    pub(super) id: &'a str,
    pub(super) instance: Option<&'a str>,
    pub(super) port: Option<&'a str>,
}

pub(super) struct GraphConnection<'a> {
    /// Index in the array `connection-map`.
    pub(super) number: usize,
    pub(super) from: ConnectionEnd<'a>,
    pub(super) to: ConnectionEnd<'a>,
    pub(super) breakable: bool,
}

/// Returns all connections that have both ends.
pub(super) fn list_connections<'a>(
    document: &'a Value,
    root: &JsonPath,
    found: &mut Vec<NbmpFault>,
) -> Vec<GraphConnection<'a>> {
    let mut seen = BTreeSet::new();
    let mut connections = Vec::new();
    let at = root.at("processing").at("connection-map");
    for (number, connection) in descriptor_items(document, "processing", "connection-map") {
        if text_member(connection, "connection-id").is_some_and(|id| !seen.insert(id)) {
            let what = "another connection has this connection-id; use a unique one";
            found.push(at.element(number).at("connection-id").fault_here(what));
        }
        let end = |name| {
            let end = connection.get(name)?;
            Some(ConnectionEnd {
                id: text_member(end, "id")?,
                instance: text_member(end, "instance"),
                port: text_member(end, "port-name"),
            })
        };
        let (Some(from), Some(to)) = (end("from"), end("to")) else {
            continue;
        };
        let breakable = connection.get("breakable").and_then(Value::as_bool);
        connections.push(GraphConnection {
            number,
            from,
            to,
            breakable: breakable.unwrap_or(true),
        });
    }
    connections
}

pub(super) fn text_member<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}

/// Returns the elements of a descriptor's array with their indexes.
pub(super) fn descriptor_items<'a>(
    document: &'a Value,
    descriptor: &str,
    list: &str,
) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    let list = document.get(descriptor).and_then(|of| of.get(list));
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.enumerate()
}
