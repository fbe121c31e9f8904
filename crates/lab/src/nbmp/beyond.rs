//! What a description asks for beyond what the lab does: refused where its maker would count on it,
//! and else named, never taken in silence.

use super::convert::{is_place, is_understood};
use super::path::{Offence, Place};
use serde_json::Value;

/// What must not be taken without doing it, of the whole or of one of its functions.
pub fn undone(description: &Value) -> Vec<Offence> {
    let root = Place::root();
    let mut found = Vec::new();
    if text(description, "/repository/mode") == Some("strict") {
        let what = "only functions that are built in are found here; write available";
        found.push(root.at("repository").at("mode").offence(what));
    }
    refuse(description, &root, &mut found);
    for (function, at) in elements(description, "function-restrictions") {
        refuse(function, &at, &mut found);
    }
    found
}

fn refuse(part: &Value, at: &Place, found: &mut Vec<Offence>) {
    if text(part, "/failover/failover-mode") == Some("execute-backup-deployment") {
        let what = "there are no backups here; write exit";
        found.push(at.at("failover").at("failover-mode").offence(what));
    }
    if part.pointer("/general/is-group").and_then(Value::as_bool) == Some(true) {
        let what = "groups of functions are not run; write false";
        found.push(at.at("general").at("is-group").offence(what));
    }
    if matches!(
        text(part, "/step/step-mode"),
        Some("stateful" | "stateless")
    ) {
        let what = "media are not cut into steps; write stream";
        found.push(at.at("step").at("step-mode").offence(what));
    }
    for name in ["security", "scale"] {
        if part.get(name).is_some() {
            let what = "this cannot be done here; leave it out";
            found.push(at.at(name).offence(what));
        }
    }
}

/// Members of a description that are not acted on.
const OF_ALL: [&[&str]; 11] = [
    &["schedule"],
    &["notification"],
    &["client-assistant"],
    &["failover"],
    &["processing", "start-time"],
    &["requirement", "flowcontrol"],
    &["requirement", "hardware"],
    &["requirement", "security"],
    &["requirement", "workflow-task"],
    &["requirement", "resource-estimators"],
    &["reporting", "report-start-time"],
];

/// The same of a function.
const OF_A_FUNCTION: [&[&str]; 8] = [
    &["processing"],
    &["requirements"],
    &["client-assistant"],
    &["failover"],
    &["monitoring", "event"],
    &["reporting"],
    &["notification"],
    &["blacklist"],
];

/// The same of a connection that is no link.
const OF_A_CONNECTION: [&[&str]; 5] = [
    &["flowcontrol"],
    &["other-parameters"],
    &["co-located"],
    &["from", "output-restrictions"],
    &["to", "input-restrictions"],
];

/// The same of a link: its delay and its rate are.
const OF_A_LINK: [&[&str]; 4] = [
    &["flowcontrol", "typical-delay"],
    &["flowcontrol", "max-delay"],
    &["flowcontrol", "min-throughput"],
    &["flowcontrol", "averaging-window"],
];

/// What is carried along without effect, as JSONPaths.
pub fn without_effect(description: &Value) -> Vec<String> {
    let root = Place::root();
    let mut found = Vec::new();
    idle(description, &OF_ALL, &root, &mut found);
    for (connection, at) in elements(description, "connection-map") {
        let members: &[&[&str]] = match connection.get("from").is_some_and(is_place) {
            true => &OF_A_LINK,
            false => &OF_A_CONNECTION,
        };
        idle(connection, members, &at, &mut found);
    }
    for (function, at) in elements(description, "function-restrictions") {
        idle(function, &OF_A_FUNCTION, &at, &mut found);
    }
    let asserted = description.pointer("/assertion/assertion");
    let asserted = asserted.and_then(Value::as_array).into_iter().flatten();
    for (n, _) in asserted.enumerate().filter(|(_, one)| !is_understood(one)) {
        found.push(root.at("assertion").at("assertion").nth(n).offence("").path);
    }
    found
}

fn idle(part: &Value, members: &[&[&str]], at: &Place, found: &mut Vec<String>) {
    for path in members {
        let step = |value, name: &&str| Value::get(value, *name);
        // What is false asks for nothing.
        let there = path.iter().try_fold(part, step);
        if there.is_some_and(|there| there != false) {
            let place = path.iter().fold(at.clone(), |at, name| at.at(name));
            found.push(place.offence("").path);
        }
    }
}

/// The elements of a list of `processing`, with their places.
fn elements<'a>(
    description: &'a Value,
    list: &'a str,
) -> impl Iterator<Item = (&'a Value, Place)> + use<'a> {
    let all = description.get("processing").and_then(|of| of.get(list));
    let all = all.and_then(Value::as_array).into_iter().flatten();
    let at = Place::root().at("processing").at(list);
    all.enumerate().map(move |(n, one)| (one, at.nth(n)))
}

fn text<'a>(of: &'a Value, pointer: &str) -> Option<&'a str> {
    of.pointer(pointer)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn functions_are_asked_as_the_whole_is() {
        let part = json!({
            "general": {"is-group": true}, "security": {}, "step": {"step-mode": "stateful"},
            "failover": {"failover-mode": "execute-backup-deployment"},
        });
        let mut whole = part.clone();
        whole["repository"] = json!({"mode": "strict"});
        whole["processing"] = json!({"function-restrictions": [{}, part]});
        let paths: Vec<String> = undone(&whole).into_iter().map(|o| o.path).collect();
        let own = [
            "failover['failover-mode']",
            "general['is-group']",
            "step['step-mode']",
            "security",
        ];
        let mut wanted = vec!["$.repository.mode".to_owned()];
        for at in ["$", "$.processing['function-restrictions'][1]"] {
            wanted.extend(own.iter().map(|own| format!("{at}.{own}")));
        }
        assert_eq!(paths, wanted);
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let link =
            |id| json!({"from": {"id": id}, "flowcontrol": {"min-delay": 1, "max-delay": 2}});
        let whole = json!({
            "failover": {"failover-mode": "exit"}, "requirement": {"hardware": {"vcpu": 2}},
            "processing": {
                "connection-map": [link("place"), link("cache"), {"co-located": false}],
                "function-restrictions": [{"requirements": {}, "monitoring": {"variable": []}}],
            },
            "assertion": {"assertion": [{"name": "x", "value-predicate": {"evaluation-condition": "computational", "check-value": {"at-most": "1"}}}, {}]},
        });
        let wanted = [
            "$.failover",
            "$.requirement.hardware",
            "$.processing['connection-map'][0].flowcontrol['max-delay']",
            "$.processing['connection-map'][1].flowcontrol",
            "$.processing['function-restrictions'][0].requirements",
            "$.assertion.assertion[1]",
        ];
        assert_eq!(without_effect(&whole), wanted);
        assert!(undone(&whole).is_empty());
    }
}
