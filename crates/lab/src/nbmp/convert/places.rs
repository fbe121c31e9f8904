//! Where a workflow description says what a key of an experiment does.

use super::super::path::Place;
use super::EXPERIMENT;
use serde_json::Value;

/// The JSONPath of what becomes this key, such as `link.access.rate` or `expect[0].of.loss`; as
/// near to it as the workflow has a word, and its root where it has none.
pub fn place_of(workflow: &Value, key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let place = match parts.as_slice() {
        ["name"] => Some(Place::root().at("general").at("name")),
        ["question"] => Some(Place::root().at("general").at("description")),
        ["source", name, ..] => source(workflow, name),
        ["function" | "sink", name, rest @ ..] => function(workflow, name, rest),
        ["link", name, rest @ ..] => link(workflow, name, rest),
        ["bounds", name] => assertion(workflow, "computational", |_, found| found == *name),
        [first, ..] => match first
            .strip_prefix("expect[")
            .and_then(|n| n.strip_suffix(']'))
        {
            Some(number) => {
                let number = number.parse().unwrap_or(usize::MAX);
                assertion(workflow, "quality", |n, _| n == number)
            }
            None => function(workflow, EXPERIMENT, &parts),
        },
        [] => None,
    };
    place.unwrap_or_else(Place::root).offence("").path
}

fn list<'a>(of: &'a Value, first: &str, second: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    let list = of.get(first).and_then(|of| of.get(second));
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
}

fn is(value: &Value, field: &str, text: &str) -> bool {
    value.get(field).and_then(Value::as_str) == Some(text)
}

fn source(workflow: &Value, name: &str) -> Option<Place> {
    let mut streams = list(workflow, "input", "media-parameters");
    let (n, _) = streams.find(|(_, stream)| is(stream, "stream-id", name))?;
    let at = Place::root().at("input").at("media-parameters").nth(n);
    Some(at.at("caching-server-url"))
}

fn function(workflow: &Value, name: &str, rest: &[&str]) -> Option<Place> {
    let mut all = list(workflow, "processing", "function-restrictions");
    let (n, found) = all.find(|(_, function)| is(function, "instance", name))?;
    let at = Place::root()
        .at("processing")
        .at("function-restrictions")
        .nth(n);
    let Some(first) = rest.first() else {
        return Some(at);
    };
    Some(match *first {
        "input" => at.at("general").at("input-ports"),
        "measure" => at.at("monitoring").at("variable"),
        "use" => at.at("general").at("id"),
        _ => {
            let parameters = found.get("configuration").and_then(|c| c.get("parameters"));
            let within = at.at("configuration").at("parameters");
            parameter(parameters, &within, rest).unwrap_or(at)
        }
    })
}

/// The parameter of this name, or the first whose name begins with it.
fn parameter(parameters: Option<&Value>, at: &Place, key: &[&str]) -> Option<Place> {
    let all = parameters.and_then(Value::as_array)?;
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<String> = all
        .iter()
        .map(|one| name(one).unwrap_or_default())
        .collect();
    (1..=key.len()).rev().find_map(|length| {
        let wanted = key.get(..length)?.join(".");
        let within = format!("{wanted}.");
        let n = names
            .iter()
            .position(|name| *name == wanted || name.starts_with(&within))?;
        Some(at.nth(n))
    })
}

fn link(workflow: &Value, name: &str, rest: &[&str]) -> Option<Place> {
    let mut all = list(workflow, "processing", "connection-map");
    let (n, found) = all.find(|(_, connection)| is(connection, "connection-id", name))?;
    let at = Place::root().at("processing").at("connection-map").nth(n);
    let flow = found.get("flowcontrol");
    let field = match rest.first() {
        Some(&"delay") => "min-delay",
        Some(&"rate") => "max-throughput",
        _ => "",
    };
    if flow.is_some_and(|flow| flow.get(field).is_some()) {
        return Some(at.at("flowcontrol").at(field));
    }
    let within = at.at("other-parameters");
    Some(parameter(found.get("other-parameters"), &within, rest).unwrap_or(at))
}

fn assertion(workflow: &Value, of: &str, wanted: impl Fn(usize, &str) -> bool) -> Option<Place> {
    let condition = |asserted: &Value| {
        let predicate = asserted.get("value-predicate");
        predicate.is_some_and(|predicate| is(predicate, "evaluation-condition", of))
    };
    let mut all =
        list(workflow, "assertion", "assertion").filter(|(_, asserted)| condition(asserted));
    let found = all
        .by_ref()
        .enumerate()
        .find_map(|(number, (n, asserted))| {
            let name = asserted
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            wanted(number, name).then_some(n)
        })?;
    let at = Place::root().at("assertion").at("assertion").nth(found);
    Some(at.at("value-predicate").at("check-value"))
}
