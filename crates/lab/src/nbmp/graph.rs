//! What no schema can say: whether identifiers are there once, names lead somewhere, ports are
//! joined, and nothing waits for itself.
//!
//! Everything is looked up by name, so that the work grows with the document and not with its
//! square: a description may come from anybody.

mod cycles;
mod parts;

use super::path::{Offence, Place};
use super::words::{first, shortened};
use super::{Kind, Level};
use parts::{Connection, End, Function, Streams, connections, functions, items, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Adds what does not meet in a workflow or a task.
pub(super) fn check(
    document: &Value,
    kind: Kind,
    level: Level,
    known: &[&str],
    found: &mut Vec<Offence>,
) {
    let root = Place::root();
    let streams = Streams::of(document, level, &root, found);
    if kind == Kind::Function {
        return;
    }
    let functions = functions(document, &root, found);
    let connections = connections(document, &root, found);
    let graph = Graph {
        level,
        known,
        elsewhere: items(document, "repository", "location").next().is_some(),
        streams,
        functions,
        joined: Joined::of(&connections),
        connections,
    };
    graph.bound(document.get("general"), &root.at("general"), None, found);
    graph.ends(found);
    let at = root.at("processing").at("function-restrictions");
    for (n, function) in items(document, "processing", "function-restrictions") {
        let name = text(function, "instance").unwrap_or_default();
        let at = at.nth(n).at("general");
        graph.bound(function.get("general"), &at, Some(name), found);
    }
    cycles::check(&graph.connections, found);
}

/// The ports that connections lead to and from, by instance.
struct Joined<'a> {
    inputs: BTreeSet<(&'a str, Option<&'a str>)>,
    outputs: BTreeSet<(&'a str, Option<&'a str>)>,
}

impl<'a> Joined<'a> {
    fn of(connections: &[Connection<'a>]) -> Joined<'a> {
        let port = |end: &End<'a>| Some((end.instance?, end.port));
        Joined {
            inputs: connections.iter().filter_map(|one| port(&one.to)).collect(),
            outputs: connections
                .iter()
                .filter_map(|one| port(&one.from))
                .collect(),
        }
    }
}

struct Graph<'a> {
    level: Level,
    known: &'a [&'a str],
    /// A repository is named, which may know functions that are not described.
    elsewhere: bool,
    streams: Streams<'a>,
    functions: BTreeMap<&'a str, Function<'a>>,
    joined: Joined<'a>,
    connections: Vec<Connection<'a>>,
}

/// Which of a function's ports are meant.
#[derive(Clone, Copy)]
enum Side {
    Inputs,
    Outputs,
}

impl Side {
    fn field(self) -> &'static str {
        match self {
            Side::Inputs => "input-ports",
            Side::Outputs => "output-ports",
        }
    }
}

impl Graph<'_> {
    /// Whether both ends of every connection are there, and have these ports.
    fn ends(&self, found: &mut Vec<Offence>) {
        let at = Place::root().at("processing").at("connection-map");
        for connection in &self.connections {
            let at = at.nth(connection.number);
            self.end(connection.from, Side::Outputs, &at.at("from"), found);
            self.end(connection.to, Side::Inputs, &at.at("to"), found);
            if connection.from == connection.to && connection.from.instance.is_some() {
                let what = "it joins a port to itself; name another";
                found.push(at.at("to").offence(what));
            }
        }
    }

    fn end(&self, end: End<'_>, side: Side, at: &Place, found: &mut Vec<Offence>) {
        let Some(instance) = end.instance else {
            return self.stream(end.id, side, at, found);
        };
        let Some(function) = self.functions.get(instance) else {
            if !self.can_be_found(end.id) {
                let what = format!(
                    "no function-restrictions has the instance {:?}, and {:?} is no known function; \
                     describe it, or name a repository",
                    shortened(instance),
                    shortened(end.id)
                );
                found.push(at.at("instance").offence(what));
            }
            return;
        };
        if self.level == Level::Strict
            && let Some(id) = function.id.filter(|id| *id != end.id)
        {
            let what = format!(
                "the instance {:?} is of another function; write {:?}",
                shortened(instance),
                shortened(id)
            );
            found.push(at.at("id").offence(what));
        }
        let ports = match side {
            Side::Inputs => &function.inputs,
            Side::Outputs => &function.outputs,
        };
        if let (Some(port), Some(ports)) = (end.port, ports)
            && !ports.known.contains(port)
        {
            let what = format!(
                "{:?} has no such port; its {} are {}",
                shortened(instance),
                side.field(),
                first(&ports.names)
            );
            found.push(at.at("port-name").offence(what));
        }
    }

    /// The end of a workflow in use may be one of its streams.
    fn stream(&self, id: &str, side: Side, at: &Place, found: &mut Vec<Offence>) {
        let streams = match side {
            Side::Outputs => &self.streams.inputs,
            Side::Inputs => &self.streams.outputs,
        };
        if !streams.contains(id) && !self.can_be_found(id) {
            let what = format!(
                "{:?} is no stream of this side, nor a known function; name the instance of a function",
                shortened(id)
            );
            found.push(at.at("id").offence(what));
        }
    }

    /// Whether a function's description can be had from elsewhere.
    fn can_be_found(&self, id: &str) -> bool {
        self.elsewhere || self.known.contains(&id)
    }

    /// Whether ports lead to a stream or a connection, and have their own names. Of the workflow
    /// itself (`instance` none), connections do not count.
    fn bound(
        &self,
        general: Option<&Value>,
        at: &Place,
        instance: Option<&str>,
        found: &mut Vec<Offence>,
    ) {
        for side in [Side::Inputs, Side::Outputs] {
            let (streams, joined) = match side {
                Side::Inputs => (&self.streams.inputs, &self.joined.inputs),
                Side::Outputs => (&self.streams.outputs, &self.joined.outputs),
            };
            let mut seen = BTreeSet::new();
            let ports = general.and_then(|general| general.get(side.field())?.as_array());
            for (n, port) in ports.into_iter().flatten().enumerate() {
                let at = || at.at(side.field()).nth(n);
                let name = text(port, "port-name");
                if name.is_some_and(|name| !seen.insert(name)) {
                    let what = "another port has this name; each has its own";
                    found.push(at().at("port-name").offence(what));
                }
                let stream = port.get("bind").and_then(|bind| text(bind, "stream-id"));
                let Some(stream) = stream else {
                    continue;
                };
                let joins = instance.is_some_and(|instance| joined.contains(&(instance, name)));
                if !joins && !streams.contains(stream) {
                    let or = match instance {
                        Some(_) => ", and no connection has this port; join it, or name a stream",
                        None => "; name one",
                    };
                    let what = format!("{:?} is no stream of this side{or}", shortened(stream));
                    found.push(at().at("bind").at("stream-id").offence(what));
                }
            }
        }
    }
}
