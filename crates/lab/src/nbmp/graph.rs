//! What no schema can say: whether identifiers are there once, names lead somewhere, ports are
//! joined, and nothing waits for itself.

use super::path::{Offence, Place};
use super::words::{first, shortened};
use super::{Kind, Level};
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
    let graph = Graph {
        document,
        level,
        known,
        streams,
        functions: functions(document, &root, found),
        connections: connections(document, &root, found),
    };
    graph.bound(document.get("general"), &root.at("general"), None, found);
    graph.ends(found);
    let at = root.at("processing").at("function-restrictions");
    for (n, function) in items(document, "processing", "function-restrictions") {
        let name = text(function, "instance").unwrap_or_default();
        let at = at.nth(n).at("general");
        graph.bound(function.get("general"), &at, Some(name), found);
    }
    graph.cycles(found);
}

/// Names of streams.
struct Streams<'a> {
    inputs: BTreeSet<&'a str>,
    outputs: BTreeSet<&'a str>,
}

impl<'a> Streams<'a> {
    fn of(
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
                    let Some(name) = text(stream, "stream-id") else {
                        if level == Level::Lax && stream.get("stream-id").is_none() {
                            let at = root.at(side).at(list).nth(n).at("stream-id");
                            found.push(at.offence("it is missing; add a name of its own"));
                        }
                        continue;
                    };
                    names.insert(name);
                    if !seen.insert(name) {
                        let at = root.at(side).at(list).nth(n).at("stream-id");
                        found.push(
                            at.offence("another stream has this stream-id; each has its own"),
                        );
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

/// One of a connection's two ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End<'a> {
    id: &'a str,
    instance: Option<&'a str>,
    port: Option<&'a str>,
}

struct Connection<'a> {
    from: End<'a>,
    to: End<'a>,
    breakable: bool,
}

struct Graph<'a> {
    document: &'a Value,
    level: Level,
    known: &'a [&'a str],
    streams: Streams<'a>,
    /// The `general` of instances.
    functions: BTreeMap<&'a str, Option<&'a Value>>,
    connections: Vec<(usize, Connection<'a>)>,
}

fn functions<'a>(
    document: &'a Value,
    root: &Place,
    found: &mut Vec<Offence>,
) -> BTreeMap<&'a str, Option<&'a Value>> {
    let mut functions = BTreeMap::new();
    let at = root.at("processing").at("function-restrictions");
    for (n, function) in items(document, "processing", "function-restrictions") {
        if let Some(name) = text(function, "instance")
            && functions.insert(name, function.get("general")).is_some()
        {
            let what = "another function has this instance; each has its own";
            found.push(at.nth(n).at("instance").offence(what));
        }
    }
    functions
}

fn connections<'a>(
    document: &'a Value,
    root: &Place,
    found: &mut Vec<Offence>,
) -> Vec<(usize, Connection<'a>)> {
    let mut seen = BTreeSet::new();
    let mut connections = Vec::new();
    let at = root.at("processing").at("connection-map");
    for (n, connection) in items(document, "processing", "connection-map") {
        if text(connection, "connection-id").is_some_and(|id| !seen.insert(id)) {
            let what = "another connection has this connection-id; each has its own";
            found.push(at.nth(n).at("connection-id").offence(what));
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
        let breakable = breakable.unwrap_or(true);
        connections.push((
            n,
            Connection {
                from,
                to,
                breakable,
            },
        ));
    }
    connections
}

impl Graph<'_> {
    /// Whether both ends of every connection are there, and have these ports.
    fn ends(&self, found: &mut Vec<Offence>) {
        let at = Place::root().at("processing").at("connection-map");
        for (n, connection) in &self.connections {
            let at = at.nth(*n);
            self.end(connection.from, "output-ports", &at.at("from"), found);
            self.end(connection.to, "input-ports", &at.at("to"), found);
            if connection.from == connection.to && connection.from.instance.is_some() {
                let what = "it joins a port to itself; name another";
                found.push(at.at("to").offence(what));
            }
        }
    }

    fn end(&self, end: End<'_>, side: &str, at: &Place, found: &mut Vec<Offence>) {
        let Some(instance) = end.instance else {
            // The end of a workflow in use may be one of its streams.
            let streams = match side {
                "output-ports" => &self.streams.inputs,
                _ => &self.streams.outputs,
            };
            if !streams.contains(end.id) && !self.can_be_found(end.id) {
                let what = format!(
                    "{:?} is no stream of this side, nor a known function; name the instance of a function",
                    shortened(end.id)
                );
                found.push(at.at("id").offence(what));
            }
            return;
        };
        let Some(general) = self.functions.get(instance) else {
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
        let Some(general) = general else {
            return;
        };
        let id = text(general, "id");
        if self.level == Level::Strict && id.is_some_and(|id| id != end.id) {
            let what = format!(
                "the instance {:?} is of another function; write {:?}",
                shortened(instance),
                shortened(id.unwrap_or_default())
            );
            found.push(at.at("id").offence(what));
        }
        let ports = general.get(side).and_then(Value::as_array);
        let (Some(port), Some(ports)) = (end.port, ports) else {
            return;
        };
        let names: Vec<&str> = ports
            .iter()
            .filter_map(|port| text(port, "port-name"))
            .collect();
        if !names.contains(&port) {
            let what = format!(
                "{:?} has no such port; its {side} are {}",
                shortened(instance),
                first(&names)
            );
            found.push(at.at("port-name").offence(what));
        }
    }

    /// Whether a function's description can be had from elsewhere.
    fn can_be_found(&self, id: &str) -> bool {
        let locations = items(self.document, "repository", "location");
        self.known.contains(&id) || !locations.is_empty()
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
        let Some(general) = general else {
            return;
        };
        for (side, streams) in [
            ("input-ports", &self.streams.inputs),
            ("output-ports", &self.streams.outputs),
        ] {
            let mut seen = BTreeSet::new();
            let ports = general.get(side).and_then(Value::as_array);
            for (n, port) in ports.into_iter().flatten().enumerate() {
                let at = at.at(side).nth(n);
                let name = text(port, "port-name");
                if name.is_some_and(|name| !seen.insert(name)) {
                    found.push(
                        at.at("port-name")
                            .offence("another port has this name; each has its own"),
                    );
                }
                let stream = port.get("bind").and_then(|bind| text(bind, "stream-id"));
                let Some(stream) = stream else {
                    continue;
                };
                let joined = self.connections.iter().any(|(_, connection)| {
                    let end = match side {
                        "input-ports" => connection.to,
                        _ => connection.from,
                    };
                    instance.is_some() && end.instance == instance && end.port == name
                });
                if !joined && !streams.contains(stream) {
                    let what = format!(
                        "{:?} is no stream of this side{}",
                        shortened(stream),
                        match instance {
                            Some(_) =>
                                ", and no connection has this port; join it, or name a stream",
                            None => "; name one",
                        }
                    );
                    found.push(at.at("bind").at("stream-id").offence(what));
                }
            }
        }
    }

    /// Whether data goes in a circle that may nowhere be broken.
    fn cycles(&self, found: &mut Vec<Offence>) {
        let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (_, connection) in self.connections.iter().filter(|(_, c)| !c.breakable) {
            if let (Some(from), Some(to)) = (connection.from.instance, connection.to.instance) {
                next.entry(from).or_default().push(to);
            }
        }
        let circling = circling(&next);
        let at = Place::root().at("processing").at("connection-map");
        for (n, connection) in self.connections.iter().filter(|(_, c)| !c.breakable) {
            let ends = (connection.from.instance, connection.to.instance);
            if let (Some(from), Some(to)) = ends
                && circling.contains(from)
                && circling.contains(to)
            {
                let what =
                    "the connections go in a circle; make one of them breakable, or take one away";
                found.push(at.nth(*n).offence(what));
            }
        }
    }
}

/// What lies on circles, or between two of them: all that stays when ends are taken away until
/// there are none (Kahn), from both sides.
fn circling<'a>(next: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let edges: Vec<(&str, &str)> = next
        .iter()
        .flat_map(|(from, to)| to.iter().map(|to| (*from, *to)))
        .collect();
    let turned = edges.iter().map(|(from, to)| (*to, *from)).collect();
    let left = without_ends(edges);
    let right = without_ends(turned);
    left.intersection(&right).copied().collect()
}

/// The nodes that cannot be ordered by these edges.
fn without_ends<'a>(edges: Vec<(&'a str, &'a str)>) -> BTreeSet<&'a str> {
    let mut waits: BTreeMap<&str, usize> = BTreeMap::new();
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        waits.entry(from).or_default();
        *waits.entry(to).or_default() += 1;
        next.entry(from).or_default().push(to);
    }
    let free = |waits: &BTreeMap<&'a str, usize>| -> Vec<&'a str> {
        waits
            .iter()
            .filter(|(_, n)| **n == 0)
            .map(|(name, _)| *name)
            .collect()
    };
    let mut ready = free(&waits);
    while let Some(name) = ready.pop() {
        waits.remove(name);
        for to in next.get(name).into_iter().flatten() {
            if let Some(n) = waits.get_mut(to) {
                *n -= 1;
                if *n == 0 {
                    ready.push(to);
                }
            }
        }
    }
    waits.into_keys().collect()
}

fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}

/// The elements of a descriptor's array, with their numbers.
fn items<'a>(document: &'a Value, descriptor: &str, list: &str) -> Vec<(usize, &'a Value)> {
    let list = document
        .get(descriptor)
        .and_then(|descriptor| descriptor.get(list));
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.enumerate().collect()
}
