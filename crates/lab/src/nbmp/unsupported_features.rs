//! Finds the members of a description that the lab does not support. If the author of a description
//! probably relies on such a member, the description is rejected. Otherwise, the member is reported
//! as ignored.

use super::convert::{is_convertible_assertion, is_place};
use super::json_path::{JsonPath, NbmpFault};
use serde_json::Value;

/// Returns a fault for each member of the workflow or of its functions that the lab must reject.
pub fn find_unsupported_members(description: &Value) -> Vec<NbmpFault> {
    let root = JsonPath::root();
    let mut found = Vec::new();
    if text_at(description, "/repository/mode") == Some("strict") {
        let what = "the lab finds only built-in functions; write available";
        found.push(root.at("repository").at("mode").fault_here(what));
    }
    collect_unsupported_members(description, &root, &mut found);
    for (function, at) in list_elements_with_paths(description, "function-restrictions") {
        collect_unsupported_members(function, &at, &mut found);
    }
    found
}

fn collect_unsupported_members(part: &Value, at: &JsonPath, found: &mut Vec<NbmpFault>) {
    if text_at(part, "/failover/failover-mode") == Some("execute-backup-deployment") {
        let what = "the lab does not support backup deployments; write exit";
        found.push(at.at("failover").at("failover-mode").fault_here(what));
    }
    if part.pointer("/general/is-group").and_then(Value::as_bool) == Some(true) {
        let what = "the lab does not support groups of functions; write false";
        found.push(at.at("general").at("is-group").fault_here(what));
    }
    if matches!(
        text_at(part, "/step/step-mode"),
        Some("stateful" | "stateless")
    ) {
        let what = "the lab does not process media in steps; write stream";
        found.push(at.at("step").at("step-mode").fault_here(what));
    }
    for name in ["security", "scale"] {
        if part.get(name).is_some() {
            let what = "the lab does not support this descriptor; remove it";
            found.push(at.at(name).fault_here(what));
        }
    }
}

/// Members of a workflow that are ignored.
const IGNORED_IN_WORKFLOW: [&[&str]; 11] = [
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

/// Ignored members of a function.
const IGNORED_IN_FUNCTION: [&[&str]; 8] = [
    &["processing"],
    &["requirements"],
    &["client-assistant"],
    &["failover"],
    &["monitoring", "event"],
    &["reporting"],
    &["notification"],
    &["blacklist"],
];

/// Ignored members of a connection that is not a link.
const IGNORED_IN_CONNECTION: [&[&str]; 5] = [
    &["flowcontrol"],
    &["other-parameters"],
    &["co-located"],
    &["from", "output-restrictions"],
    &["to", "input-restrictions"],
];

/// Ignored members of a link. Of `flowcontrol`, the lab uses only the minimum delay and the maximum
/// throughput.
const IGNORED_IN_LINK: [&[&str]; 4] = [
    &["flowcontrol", "typical-delay"],
    &["flowcontrol", "max-delay"],
    &["flowcontrol", "min-throughput"],
    &["flowcontrol", "averaging-window"],
];

/// Returns the JSONPaths of the ignored members.
pub fn find_ignored_members(description: &Value) -> Vec<String> {
    let root = JsonPath::root();
    let mut found = Vec::new();
    collect_ignored_members(description, &IGNORED_IN_WORKFLOW, &root, &mut found);
    for (connection, at) in list_elements_with_paths(description, "connection-map") {
        let members: &[&[&str]] = match connection.get("from").is_some_and(is_place) {
            true => &IGNORED_IN_LINK,
            false => &IGNORED_IN_CONNECTION,
        };
        collect_ignored_members(connection, members, &at, &mut found);
    }
    for (function, at) in list_elements_with_paths(description, "function-restrictions") {
        collect_ignored_members(function, &IGNORED_IN_FUNCTION, &at, &mut found);
    }
    let asserted = description.pointer("/assertion/assertion");
    let asserted = asserted.and_then(Value::as_array).into_iter().flatten();
    for (n, _) in asserted
        .enumerate()
        .filter(|(_, one)| !is_convertible_assertion(one))
    {
        found.push(
            root.at("assertion")
                .at("assertion")
                .element(n)
                .fault_here("")
                .path,
        );
    }
    found
}

fn collect_ignored_members(
    part: &Value,
    members: &[&[&str]],
    at: &JsonPath,
    found: &mut Vec<String>,
) {
    for path in members {
        let step = |value, name: &&str| Value::get(value, *name);
        // Skips a member whose value is `false`, because such a member requests nothing.
        let declared = path.iter().try_fold(part, step);
        if declared.is_some_and(|declared| declared != false) {
            let place = path.iter().fold(at.clone(), |at, name| at.at(name));
            found.push(place.fault_here("").path);
        }
    }
}

/// Returns the elements of a list in `processing`, with their paths.
fn list_elements_with_paths<'a>(
    description: &'a Value,
    list: &'a str,
) -> impl Iterator<Item = (&'a Value, JsonPath)> + use<'a> {
    let all = description.get("processing").and_then(|of| of.get(list));
    let all = all.and_then(Value::as_array).into_iter().flatten();
    let at = JsonPath::root().at("processing").at(list);
    all.enumerate().map(move |(n, one)| (one, at.element(n)))
}

fn text_at<'a>(of: &'a Value, pointer: &str) -> Option<&'a str> {
    of.pointer(pointer)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn functions_are_checked_like_the_workflow() {
        let part = json!({
            "general": {"is-group": true}, "security": {}, "step": {"step-mode": "stateful"},
            "failover": {"failover-mode": "execute-backup-deployment"},
        });
        let mut whole = part.clone();
        whole["repository"] = json!({"mode": "strict"});
        whole["processing"] = json!({"function-restrictions": [{}, part]});
        let paths: Vec<String> = find_unsupported_members(&whole)
            .into_iter()
            .map(|o| o.path)
            .collect();
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
    fn ignored_members_are_listed() {
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
        assert_eq!(find_ignored_members(&whole), wanted);
        assert!(find_unsupported_members(&whole).is_empty());
    }
}
