//! Checks the rules that a schema cannot express. Identifiers must be unique, names must resolve,
//! ports must be connected, and every cycle needs a `breakable` connection.
//!
//! All elements are looked up by name in maps and sets. The time of the checks therefore grows
//! nearly linearly with the size of a description. This limits the load that an untrusted client
//! can cause.

mod cycles;
mod elements;

use super::json_path::{JsonPath, NbmpFault};
use super::text_syntax_checks::{format_first_names, shorten_text};
use super::{DescriptionKind, ValidationStrictness};
use elements::{
    ConnectionEnd, GraphConnection, GraphFunction, StreamNames, collect_graph_functions,
    descriptor_items, list_connections, text_member,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Reports duplicate identifiers, unresolved names, unconnected ports and cycles. In a function
/// description, checks only the stream identifiers.
pub(super) fn check_graph(
    document: &Value,
    kind: DescriptionKind,
    level: ValidationStrictness,
    known: &[&str],
    found: &mut Vec<NbmpFault>,
) {
    let root = JsonPath::root();
    let streams = StreamNames::from_description(document, level, &root, found);
    if kind == DescriptionKind::Function {
        return;
    }
    let functions = collect_graph_functions(document, &root, found);
    let connections = list_connections(document, &root, found);
    let graph = WorkflowGraph {
        level,
        known,
        has_repository: descriptor_items(document, "repository", "location")
            .next()
            .is_some(),
        streams,
        functions,
        joined: ConnectedPorts::from_connections(&connections),
        connections,
    };
    graph.check_bindings(document.get("general"), &root.at("general"), None, found);
    graph.check_connection_ends(found);
    let at = root.at("processing").at("function-restrictions");
    for (n, function) in descriptor_items(document, "processing", "function-restrictions") {
        let name = text_member(function, "instance").unwrap_or_default();
        let at = at.element(n).at("general");
        graph.check_bindings(function.get("general"), &at, Some(name), found);
    }
    cycles::check_cycles(&graph.connections, found);
}

/// Ports that connections use, as pairs of an instance and a port name.
struct ConnectedPorts<'a> {
    inputs: BTreeSet<(&'a str, Option<&'a str>)>,
    outputs: BTreeSet<(&'a str, Option<&'a str>)>,
}

impl<'a> ConnectedPorts<'a> {
    fn from_connections(connections: &[GraphConnection<'a>]) -> ConnectedPorts<'a> {
        let port = |end: &ConnectionEnd<'a>| Some((end.instance?, end.port));
        ConnectedPorts {
            inputs: connections.iter().filter_map(|one| port(&one.to)).collect(),
            outputs: connections
                .iter()
                .filter_map(|one| port(&one.from))
                .collect(),
        }
    }
}

struct WorkflowGraph<'a> {
    level: ValidationStrictness,
    known: &'a [&'a str],
    /// Whether the description names a repository, which can define functions that are unknown
    /// here.
    has_repository: bool,
    streams: StreamNames<'a>,
    functions: BTreeMap<&'a str, GraphFunction<'a>>,
    joined: ConnectedPorts<'a>,
    connections: Vec<GraphConnection<'a>>,
}

/// The input ports or the output ports of a function.
#[derive(Clone, Copy)]
enum PortSide {
    Inputs,
    Outputs,
}

impl PortSide {
    fn field_name(self) -> &'static str {
        match self {
            PortSide::Inputs => "input-ports",
            PortSide::Outputs => "output-ports",
        }
    }
}

impl WorkflowGraph<'_> {
    /// Checks that the instances at both ends of every connection exist and have the ports that the
    /// connection names.
    fn check_connection_ends(&self, found: &mut Vec<NbmpFault>) {
        let at = JsonPath::root().at("processing").at("connection-map");
        for connection in &self.connections {
            let at = at.element(connection.number);
            self.check_connection_end(connection.from, PortSide::Outputs, &at.at("from"), found);
            self.check_connection_end(connection.to, PortSide::Inputs, &at.at("to"), found);
            if connection.from == connection.to && connection.from.instance.is_some() {
                let what = "the connection joins a port to itself; name another port";
                found.push(at.at("to").fault_here(what));
            }
        }
    }

    fn check_connection_end(
        &self,
        end: ConnectionEnd<'_>,
        side: PortSide,
        at: &JsonPath,
        found: &mut Vec<NbmpFault>,
    ) {
        let Some(instance) = end.instance else {
            return self.check_stream_exists(end.id, side, at, found);
        };
        let Some(function) = self.functions.get(instance) else {
            if !self.may_be_described_elsewhere(end.id) {
                let what = format!(
                    "no function-restrictions has the instance {:?}, and the function {:?} is unknown; \
                     describe it, or name a repository",
                    shorten_text(instance),
                    shorten_text(end.id)
                );
                found.push(at.at("instance").fault_here(what));
            }
            return;
        };
        if self.level == ValidationStrictness::Strict
            && let Some(id) = function.id.filter(|id| *id != end.id)
        {
            let what = format!(
                "the instance {:?} belongs to another function; write {:?}",
                shorten_text(instance),
                shorten_text(id)
            );
            found.push(at.at("id").fault_here(what));
        }
        let ports = match side {
            PortSide::Inputs => &function.inputs,
            PortSide::Outputs => &function.outputs,
        };
        if let (Some(port), Some(ports)) = (end.port, ports)
            && !ports.known.contains(port)
        {
            let what = format!(
                "unknown port; the {} of {:?} are {}",
                side.field_name(),
                shorten_text(instance),
                format_first_names(&ports.names)
            );
            found.push(at.at("port-name").fault_here(what));
        }
    }

    /// Checks a connection end that names no instance. In many existing workflows, such an end
    /// names a stream.
    fn check_stream_exists(
        &self,
        id: &str,
        side: PortSide,
        at: &JsonPath,
        found: &mut Vec<NbmpFault>,
    ) {
        let streams = match side {
            PortSide::Outputs => &self.streams.inputs,
            PortSide::Inputs => &self.streams.outputs,
        };
        if !streams.contains(id) && !self.may_be_described_elsewhere(id) {
            let what = format!(
                "{:?} is neither a stream of this direction nor a known function; name the instance of a function",
                shorten_text(id)
            );
            found.push(at.at("id").fault_here(what));
        }
    }

    /// Returns whether the function can be described outside the document, in a repository or in
    /// the list of known functions.
    fn may_be_described_elsewhere(&self, id: &str) -> bool {
        self.has_repository || self.known.contains(&id)
    }

    /// Checks that port names are unique, and that each bound port names a stream or is used by a
    /// connection. For the workflow itself (`instance` is `None`), only streams are accepted.
    fn check_bindings(
        &self,
        general: Option<&Value>,
        at: &JsonPath,
        instance: Option<&str>,
        found: &mut Vec<NbmpFault>,
    ) {
        for side in [PortSide::Inputs, PortSide::Outputs] {
            let (streams, joined) = match side {
                PortSide::Inputs => (&self.streams.inputs, &self.joined.inputs),
                PortSide::Outputs => (&self.streams.outputs, &self.joined.outputs),
            };
            let mut seen = BTreeSet::new();
            let ports = general.and_then(|general| general.get(side.field_name())?.as_array());
            for (n, port) in ports.into_iter().flatten().enumerate() {
                let at = || at.at(side.field_name()).element(n);
                let name = text_member(port, "port-name");
                if name.is_some_and(|name| !seen.insert(name)) {
                    let what = "another port has this name; use a unique one";
                    found.push(at().at("port-name").fault_here(what));
                }
                let stream = port
                    .get("bind")
                    .and_then(|bind| text_member(bind, "stream-id"));
                let Some(stream) = stream else {
                    continue;
                };
                let joins = instance.is_some_and(|instance| joined.contains(&(instance, name)));
                if !joins && !streams.contains(stream) {
                    let or = match instance {
                        Some(_) => {
                            ", and no connection uses this port; connect the port, or name a stream"
                        }
                        None => "; name a stream",
                    };
                    let what =
                        format!("no stream {:?} in this direction{or}", shorten_text(stream));
                    found.push(at().at("bind").at("stream-id").fault_here(what));
                }
            }
        }
    }
}
