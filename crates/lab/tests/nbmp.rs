//! Tests the validation of NBMP descriptions. Valid descriptions are accepted, and every fault is
//! reported with its path.

#![cfg(feature = "nbmp")]
#![allow(clippy::unwrap_used)]

use lab::nbmp::{
    DescriptionKind, NbmpFault, ValidationStrictness, parse_bounded_json, validate_description,
};
use serde_json::{Value, json};

#[path = "nbmp/wrongs.rs"]
mod wrongs;

/// A description that is valid at the strict level and contains every member of the standard.
const PREMIERE: &str = include_str!("nbmp/premiere.wdd.json");
/// A description that is valid only at the lenient level, like documents of other projects.
const TERSE: &str = include_str!("nbmp/terse.wdd.json");

fn validate_at(document: &Value, level: ValidationStrictness) -> Vec<NbmpFault> {
    validate_description(document, DescriptionKind::Workflow, level, &[])
}

fn read_premiere() -> Value {
    parse_bounded_json(PREMIERE.as_bytes()).unwrap()
}

#[test]
fn valid_descriptions_are_accepted() {
    for level in [ValidationStrictness::Strict, ValidationStrictness::Lenient] {
        assert_eq!(validate_at(&read_premiere(), level), []);
    }
    let terse = parse_bounded_json(TERSE.as_bytes()).unwrap();
    assert_eq!(validate_at(&terse, ValidationStrictness::Lenient), []);
    assert!(validate_at(&terse, ValidationStrictness::Strict).len() > 20);
}

/// Adds the place of every value of a document to `all`, as a JSON Pointer (RFC 6901) and as a
/// JSONPath.
fn list_places(value: &Value, pointer: &str, path: &str, all: &mut Vec<(String, String)>) {
    all.push((pointer.to_owned(), path.to_owned()));
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let path = match name.contains('-') {
                    true => format!("{path}['{name}']"),
                    false => format!("{path}.{name}"),
                };
                list_places(value, &format!("{pointer}/{name}"), &path, all);
            }
        }
        Value::Array(list) => {
            for (n, value) in list.iter().enumerate() {
                list_places(
                    value,
                    &format!("{pointer}/{n}"),
                    &format!("{path}[{n}]"),
                    all,
                );
            }
        }
        _ => {}
    }
}

/// Members that may have arbitrary contents.
const FREE: [&str; 5] = [
    "patch-script/",
    "information/",
    "check-value/",
    "measurement-collection-list/",
    "schema/",
];

fn every_place() -> Vec<(String, String)> {
    let mut all = Vec::new();
    list_places(&read_premiere(), "", "$", &mut all);
    all.retain(|(pointer, _)| !FREE.iter().any(|free| pointer.contains(free)));
    all
}

fn assert_refused(document: &Value, path: &str, how: &str) {
    let found = validate_at(document, ValidationStrictness::Strict);
    let right = found
        .iter()
        .any(|offence| offence.path == path && !offence.what.is_empty());
    assert!(right, "{how} {path}: {found:#?}");
}

#[test]
fn a_value_of_another_type_is_refused_everywhere() {
    let (mut tried, all) = (0, every_place());
    for (pointer, path) in &all {
        for other in [
            json!(null),
            json!([[7]]),
            json!({"x": {}}),
            json!(-2.5),
            json!(true),
            json!(""),
        ] {
            let mut document = read_premiere();
            let place = document.pointer_mut(pointer).unwrap();
            let same = std::mem::discriminant(place) == std::mem::discriminant(&other);
            if same {
                continue;
            }
            *place = other;
            tried += 1;
            assert_refused(&document, path, "another type at");
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn an_unknown_field_is_refused_everywhere() {
    let mut tried = 0;
    for (pointer, path) in every_place() {
        let mut document = read_premiere();
        let Some(Value::Object(map)) = document.pointer_mut(&pointer) else {
            continue;
        };
        if [
            "patch-script",
            "information",
            "check-value",
            "measurement-collection-list",
        ]
        .iter()
        .any(|free| pointer.ends_with(free))
        {
            continue;
        }
        map.insert("unheard-of".into(), json!(1));
        tried += 1;
        assert_refused(&document, &format!("{path}['unheard-of']"), "added");
    }
    assert!(tried > 80, "{tried}");
}

/// Names of optional members. Each name with a colon is a parent, and the following names are its
/// optional members. The root of the document has no name.
const OPTIONAL: &str = "
    : scheme repository step client-assistant failover monitoring assertion reporting notification
      acknowledge security scale schedule
    general: rank nbmp-brand published-time priority location task-group is-group nonessential
    task-group: group-type group-mode net-zero
    bind: keywords
    repository: mode
    input: media-parameters metadata-parameters
    output: metadata-parameters
    output-restrictions: media-parameters
    input-restrictions: metadata-parameters
    media-parameters: video-format mode throughput buffersize availability-duration timeout codec-type completion-timeout
    metadata-parameters: mode max-size min-interval timeout scheme-uri caching-server-url
    processing: start-time connection-map function-restrictions
    image: is-dynamic static-image-info dynamic-image-info
    static-image-info: patch-url patch-script
    from: output-restrictions
    to: input-restrictions
    connection-map: flowcontrol co-located breakable other-parameters
    flowcontrol: typical-delay min-delay max-delay min-throughput max-throughput averaging-window
    restrictions: min-value max-value increment
    function-restrictions: general requirements configuration failover monitoring blacklist
    parameters: description values conditions exclusions schema
    video-format: values
    other-parameters: values
    requirements: hardware
    requirement: flowcontrol hardware security workflow-task resource-estimators
    hardware: vcpu vgpu ram disk placement
    security: tls ipsec cenc scope auth-token-expires
    workflow-task: function-fusible function-enhancable execution-mode proximity split-efficiency
    split-efficiency: split-norm split-equation split-result
    resource-estimators: memory-estimator
    step: step-mode variable-duration segment-duration temporal-overlap
    client-assistant: measurement-collection-list
    monitoring: event variable
    event: url
    variable: value min max url
    assertion: support-verification
    value-predicate: action-parameters
    reporting: report-type
    notification: notification-interval
    scale: scaling-type scaling-factor target-id
    schedule: schedule-type schedule-table number-of-segments loop
    schedule-table: task-id start-time duration timescale
    acknowledge: unsupported failed partial
";

fn is_optional(pointer: &str) -> bool {
    let names: Vec<&str> = pointer
        .split('/')
        .filter(|part| part.parse::<usize>().is_err())
        .collect();
    let (parent, name) = match names.as_slice() {
        [.., parent, name] => (*parent, *name),
        _ => return false,
    };
    let mut current = "";
    for word in OPTIONAL.split_whitespace() {
        match word.strip_suffix(':') {
            Some(of) => current = of,
            None if current == parent && word == name => return true,
            None => {}
        }
    }
    false
}

#[test]
fn each_missing_required_field_is_reported() {
    let (mut tried, mut spared) = (0, 0);
    for (pointer, path) in every_place() {
        let Some((parent, name)) = pointer.rsplit_once('/') else {
            continue;
        };
        let mut document = read_premiere();
        let Some(Value::Object(map)) = document.pointer_mut(parent) else {
            continue;
        };
        map.remove(name);
        if is_optional(&pointer) {
            // The missing optional member is not a fault itself, although other members may become
            // invalid without it.
            spared += 1;
            let found = validate_at(&document, ValidationStrictness::Strict);
            assert!(
                found.iter().all(|offence| offence.path != path),
                "{found:?}"
            );
        } else {
            tried += 1;
            assert_refused(&document, &path, "removed");
        }
    }
    assert!(tried > 100 && spared > 100, "{tried} {spared}");
}

#[test]
fn every_wrong_value_is_refused_with_its_path() {
    for (pointer, value, path) in wrongs::WRONGS {
        let value: Value = serde_json::from_str(value).unwrap();
        let mut document = read_premiere();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match document.pointer_mut(parent).unwrap() {
            Value::Object(map) => drop(map.insert(name.into(), value)),
            Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
            _ => unreachable!(),
        }
        assert_refused(&document, path, pointer);
    }
}

#[test]
fn an_unknown_function_is_refused_unless_a_repository_may_define_it() {
    let mut document = read_premiere();
    document["processing"]["connection-map"][1]["to"]["instance"] = json!("crowd");
    // The unknown function is not reported, because the repository that the document names may
    // define it.
    assert_eq!(
        validate_at(&document, ValidationStrictness::Lenient).len(),
        1,
        "the port of the viewers is left alone"
    );
    document.as_object_mut().unwrap().remove("repository");
    assert_refused(
        &document,
        "$.processing['connection-map'][1].to.instance",
        "nowhere",
    );
    let found = validate_description(
        &document,
        DescriptionKind::Workflow,
        ValidationStrictness::Strict,
        &["players"],
    );
    assert!(
        found
            .iter()
            .all(|offence| !offence.path.ends_with("to.instance")),
        "{found:?}"
    );
}

#[test]
fn cycles_are_refused_unless_they_are_breakable() {
    let mut document = read_premiere();
    let back = json!({
        "connection-id": "back",
        "from": { "id": "players", "instance": "viewers", "port-name": "stats" },
        "to": { "id": "packager", "instance": "origin", "port-name": "titles" },
        "breakable": true
    });
    let map = document["processing"]["connection-map"]
        .as_array_mut()
        .unwrap();
    map.push(back);
    assert_eq!(validate_at(&document, ValidationStrictness::Strict), []);
    document["processing"]["connection-map"][2]["breakable"] = json!(false);
    for n in 0..3 {
        assert_refused(
            &document,
            &format!("$.processing['connection-map'][{n}]"),
            "circle",
        );
    }
    // One breakable connection is enough to allow the cycle.
    document["processing"]["connection-map"][0]["breakable"] = json!(true);
    assert_eq!(validate_at(&document, ValidationStrictness::Strict), []);
    let itself = json!({
        "connection-id": "itself",
        "from": { "id": "cache", "instance": "near", "port-name": "downstream" },
        "to": { "id": "cache", "instance": "near", "port-name": "downstream" }
    });
    document["processing"]["connection-map"][2] = itself;
    assert_refused(
        &document,
        "$.processing['connection-map'][2].to",
        "to itself",
    );
}

#[test]
fn misspelled_fields_get_a_suggestion() {
    let mut document = read_premiere();
    document["general"]["descripton"] = json!("");
    document["general"].as_object_mut().unwrap().remove("id");
    let found = validate_at(&document, ValidationStrictness::Lenient);
    assert_eq!(found.len(), 2);
    assert!(
        found[0].what.contains("missing; add a non-empty string"),
        "{found:?}"
    );
    assert!(found[1].what.contains("write description"), "{found:?}");
    for nothing in [json!(null), json!([]), json!("x"), json!({})] {
        assert!(
            !validate_at(&nothing, ValidationStrictness::Lenient).is_empty(),
            "{nothing}"
        );
    }
}

#[test]
fn long_names_are_shortened_in_messages() {
    let long = "p".repeat(1 << 20);
    let document = json!({
        "general": { "id": "x" },
        "processing": {
            "function-restrictions": [{
                "instance": "f",
                "general": { "id": long, "output-ports": [{ "port-name": long, "bind": {} }] }
            }],
            "connection-map": [{
                "connection-id": "c",
                "from": { "id": "f", "instance": "f", "port-name": "out" },
                "to": { "id": "f", "instance": "f", "port-name": "in" }
            }]
        }
    });
    for (level, message) in [
        (ValidationStrictness::Strict, "belongs to another function"),
        (ValidationStrictness::Lenient, "unknown port"),
    ] {
        let found = validate_at(&document, level);
        assert!(found.iter().any(|offence| offence.what.contains(message)));
        assert!(found.iter().all(|offence| offence.what.len() < 1000));
    }
}

#[test]
fn tasks_and_functions_have_their_own_fields() {
    let mut task = read_premiere();
    task.as_object_mut().unwrap().remove("repository");
    let path = |kind, document: &Value| -> Vec<String> {
        let found = validate_description(
            document,
            kind,
            ValidationStrictness::Strict,
            &["players", "packager", "cache"],
        );
        found.into_iter().map(|offence| offence.path).collect()
    };
    assert_eq!(path(DescriptionKind::Task, &task), ["$.request"]);
    task["request"] = json!({ "request-id": 1, "task-id": "t" });
    assert_eq!(path(DescriptionKind::Task, &task), [""; 0]);
    let function = json!({
        "general": task["general"], "input": task["input"], "output": task["output"],
        "variables": task["monitoring"]["variable"], "events": task["monitoring"]["event"],
        "configuration": task["processing"]["function-restrictions"][0]["configuration"],
    });
    assert_eq!(path(DescriptionKind::Function, &function), [""; 0]);
    assert_eq!(
        path(DescriptionKind::Workflow, &function)[0..2],
        ["$.processing", "$.requirement"]
    );
}
