//! Finds the JSONPaths of an experiment's keys in a workflow description.

use super::super::json_path::JsonPath;
use super::EXPERIMENT;
use serde_json::Value;

/// Returns the JSONPath of the member that corresponds to a key such as `link.access.rate` or
/// `expect[0].of.loss`. If this member does not exist, returns the path of its closest existing
/// parent, or the root.
pub fn json_path_of_key(workflow: &Value, key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let place = match parts.as_slice() {
        ["name"] => Some(JsonPath::root().at("general").at("name")),
        ["question"] => Some(JsonPath::root().at("general").at("description")),
        ["source", name, ..] => source_json_path(workflow, name),
        ["function" | "sink", name, rest @ ..] => function_json_path(workflow, name, rest),
        ["link", name, rest @ ..] => link_json_path(workflow, name, rest),
        ["bounds", name] => {
            assertion_json_path(workflow, "computational", |_, found| found == *name)
        }
        [first, ..] => match first
            .strip_prefix("expect[")
            .and_then(|n| n.strip_suffix(']'))
        {
            Some(number) => {
                let number = number.parse().unwrap_or(usize::MAX);
                assertion_json_path(workflow, "quality", |n, _| n == number)
            }
            None => function_json_path(workflow, EXPERIMENT, &parts),
        },
        [] => None,
    };
    place.unwrap_or_else(JsonPath::root).fault_here("").path
}

fn enumerate_nested_elements<'a>(
    of: &'a Value,
    first: &str,
    second: &str,
) -> impl Iterator<Item = (usize, &'a Value)> {
    let list = of.get(first).and_then(|of| of.get(second));
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
}

fn field_equals(value: &Value, field: &str, text: &str) -> bool {
    value.get(field).and_then(Value::as_str) == Some(text)
}

fn source_json_path(workflow: &Value, name: &str) -> Option<JsonPath> {
    let mut streams = enumerate_nested_elements(workflow, "input", "media-parameters");
    let (n, _) = streams.find(|(_, stream)| field_equals(stream, "stream-id", name))?;
    let at = JsonPath::root()
        .at("input")
        .at("media-parameters")
        .element(n);
    Some(at.at("caching-server-url"))
}

fn function_json_path(workflow: &Value, name: &str, rest: &[&str]) -> Option<JsonPath> {
    let mut all = enumerate_nested_elements(workflow, "processing", "function-restrictions");
    let (n, found) = all.find(|(_, function)| field_equals(function, "instance", name))?;
    let at = JsonPath::root()
        .at("processing")
        .at("function-restrictions")
        .element(n);
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
            parameter_path(parameters, &within, rest).unwrap_or(at)
        }
    })
}

/// Returns the path of the first parameter whose name is `key` or starts with `key` and a dot. If
/// there is no such parameter, searches in the same way for the parents of `key`, the closest
/// parent first.
fn parameter_path(parameters: Option<&Value>, at: &JsonPath, key: &[&str]) -> Option<JsonPath> {
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
        Some(at.element(n))
    })
}

fn link_json_path(workflow: &Value, name: &str, rest: &[&str]) -> Option<JsonPath> {
    let mut all = enumerate_nested_elements(workflow, "processing", "connection-map");
    let (n, found) = all.find(|(_, connection)| field_equals(connection, "connection-id", name))?;
    let at = JsonPath::root()
        .at("processing")
        .at("connection-map")
        .element(n);
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
    Some(parameter_path(found.get("other-parameters"), &within, rest).unwrap_or(at))
}

fn assertion_json_path(
    workflow: &Value,
    of: &str,
    wanted: impl Fn(usize, &str) -> bool,
) -> Option<JsonPath> {
    let condition = |asserted: &Value| {
        let predicate = asserted.get("value-predicate");
        predicate.is_some_and(|predicate| field_equals(predicate, "evaluation-condition", of))
    };
    let mut all = enumerate_nested_elements(workflow, "assertion", "assertion")
        .filter(|(_, asserted)| condition(asserted));
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
    let at = JsonPath::root()
        .at("assertion")
        .at("assertion")
        .element(found);
    Some(at.at("value-predicate").at("check-value"))
}
