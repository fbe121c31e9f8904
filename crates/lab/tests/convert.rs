//! Tests that a round trip of experiments between TOML and NBMP loses nothing.

#![cfg(feature = "nbmp")]
#![allow(clippy::unwrap_used)]

use lab::experiment::{ExperimentDocument, check_document};
use lab::nbmp::{
    DescriptionKind, OWN_FUNCTIONS, ValidationStrictness, parse_bounded_json, to_experiment,
    to_workflow,
};
use lab::nbmp::{find_ignored_members, find_unsupported_members, validate_description};
use proptest::prelude::*;
use serde_json::{Value, json};
use toml::Table;

fn read_experiments() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let tomls = paths.filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let all: Vec<_> = tomls
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    assert!(!all.is_empty());
    all
}

#[test]
fn every_experiment_survives_a_round_trip() {
    for (path, text) in read_experiments() {
        let table: Table = toml::from_str(&text).unwrap();
        let workflow = to_workflow(&table);
        let offences = validate_description(
            &workflow,
            DescriptionKind::Workflow,
            ValidationStrictness::Lenient,
            &OWN_FUNCTIONS,
        );
        assert_eq!(offences, [], "{path}: {workflow:#}");
        // The lab supports every member of these workflows.
        assert_eq!(
            (
                find_unsupported_members(&workflow),
                find_ignored_members(&workflow)
            ),
            (vec![], vec![]),
            "{path}"
        );
        // Serializes the workflow to text and parses it again, because experiments are read from
        // files.
        let workflow =
            parse_bounded_json(serde_json::to_string_pretty(&workflow).unwrap().as_bytes())
                .unwrap();
        let again = to_experiment(&workflow);
        assert_eq!(again, table, "{path}");
        let written = toml::to_string_pretty(&again).unwrap();
        let document = ExperimentDocument::parse_toml(&written).unwrap();
        let before = check_document(&text, &ExperimentDocument::parse_toml(&text).unwrap());
        assert_eq!(
            check_document(&written, &document).len(),
            before.len(),
            "{path}"
        );
    }
}

#[test]
fn the_congestion_experiment_is_strictly_nbmp() {
    let all = read_experiments();
    let (_, text) = all
        .iter()
        .find(|(path, _)| path.ends_with("congestion.toml"))
        .unwrap();
    let workflow = to_workflow(&toml::from_str(text).unwrap());
    assert_eq!(
        validate_description(
            &workflow,
            DescriptionKind::Workflow,
            ValidationStrictness::Strict,
            &OWN_FUNCTIONS
        ),
        []
    );
    let map = workflow["processing"]["connection-map"].as_array().unwrap();
    let link = map
        .iter()
        .find(|one| one["connection-id"] == "access")
        .unwrap();
    // The delay is stored in a field of NBMP. The rate is not stored there, because it is a
    // placeholder for a variable and not a number.
    assert_eq!(link["flowcontrol"], json!({"min-delay": 100}));
    assert_eq!(
        workflow["general"]["id"],
        "congestion-control-over-a-lossy-link"
    );
}

#[test]
fn changes_in_one_format_appear_in_the_other() {
    let all = read_experiments();
    let (_, text) = all
        .iter()
        .find(|(path, _)| path.ends_with("congestion.toml"))
        .unwrap();
    let mut workflow = to_workflow(&toml::from_str(text).unwrap());
    let map = workflow["processing"]["connection-map"]
        .as_array_mut()
        .unwrap();
    let link = map
        .iter_mut()
        .find(|one| one["connection-id"] == "access")
        .unwrap();
    link["flowcontrol"]["min-delay"] = json!(250);
    workflow["general"]["priority"] = json!(7);
    workflow["requirement"]["hardware"] = json!({"vcpu": 2});
    let mut table = to_experiment(&workflow);
    assert_eq!(table["link"]["access"]["delay"].as_str(), Some("250ms"));
    let rest: Table =
        toml::from_str("general.priority = 7\nrequirement.hardware.vcpu = 2").unwrap();
    assert_eq!(table["nbmp"], rest.into());
    table.insert("question".into(), "another".into());
    let workflow = to_workflow(&table);
    assert_eq!(workflow["general"]["description"], "another");
    assert_eq!(workflow["general"]["priority"], 7);
}

#[test]
fn public_descriptions_survive_a_round_trip() {
    let premiere = include_str!("nbmp/premiere.wdd.json");
    let terse = include_str!("nbmp/terse.wdd.json");
    for text in [premiere, terse] {
        assert_round_trip(&parse_bounded_json(text.as_bytes()).unwrap());
    }
}

/// Asserts that a workflow survives a conversion to TOML text and back.
fn assert_round_trip(workflow: &Value) {
    let table = to_experiment(workflow);
    let text = toml::to_string_pretty(&table).unwrap();
    let again: Table = toml::from_str(&text).unwrap();
    assert_eq!(&to_workflow(&again), workflow, "{text}");
}

/// Generates texts with escapes, placeholders and various scripts.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,12}",
        "\\PC{1,6}",
        Just("{loss}".to_owned()),
        Just("20mbit".to_owned()),
        Just("%2E.\"'\\\n\t".to_owned()),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    "[a-c][a-z0-9-]{0,4}"
}

/// Generates values of variables.
fn any_scalar() -> impl Strategy<Value = toml::Value> {
    prop_oneof![
        any_text().prop_map(toml::Value::from),
        any::<i64>().prop_map(toml::Value::from),
        (-1e300..1e300f64).prop_map(toml::Value::from),
        any::<bool>().prop_map(toml::Value::from),
        Just(toml::Value::from(f64::INFINITY)),
    ]
}

fn any_scalars() -> impl Strategy<Value = toml::Value> {
    prop::collection::vec(any_scalar(), 1..4).prop_map(toml::Value::from)
}

fn table_of(of: Vec<(&'static str, BoxedStrategy<toml::Value>)>) -> BoxedStrategy<toml::Value> {
    let all: Vec<_> = of
        .into_iter()
        .map(|(key, value)| {
            let key = key.to_owned();
            prop::option::of(value).prop_map(move |value| Some((key.clone(), value?)))
        })
        .collect();
    all.prop_map(|all| Table::from_iter(all.into_iter().flatten()).into())
        .boxed()
}

fn named_tables(of: BoxedStrategy<toml::Value>) -> BoxedStrategy<toml::Value> {
    prop::collection::btree_map(any_name(), of, 1..3)
        .prop_map(|all| Table::from_iter(all).into())
        .boxed()
}

fn any_texts() -> BoxedStrategy<toml::Value> {
    any_text().prop_map(toml::Value::from).boxed()
}

fn any_number() -> BoxedStrategy<toml::Value> {
    any::<u16>()
        .prop_map(|n| toml::Value::from(i64::from(n)))
        .boxed()
}

/// Generates rates, delays and other texts. Only some of these values can be stored in a field of
/// NBMP.
fn any_rates() -> BoxedStrategy<toml::Value> {
    prop_oneof!["[0-9]{1,4}[kmg]?bit", "[0-9]{1,4}(ms|s|us)", any_text()]
        .prop_map(toml::Value::from)
        .boxed()
}

fn any_link() -> BoxedStrategy<toml::Value> {
    let link = table_of(vec![
        ("rate", any_rates()),
        ("up-rate", any_rates()),
        ("delay", any_rates()),
        ("loss", any_texts()),
        ("compete", any_scalars().boxed()),
    ]);
    (link, [any_name(), any_name()])
        .prop_map(|(mut link, [a, b])| {
            let between = vec![toml::Value::from(a), toml::Value::from(b)];
            let link_table = link.as_table_mut().unwrap();
            link_table.insert("between".into(), between.into());
            link
        })
        .boxed()
}

fn any_expectations() -> BoxedStrategy<toml::Value> {
    let bound = (-1e9..1e9f64).prop_map(toml::Value::from).boxed();
    let expect = table_of(vec![
        ("that", any_texts()),
        ("quantity", any_texts()),
        ("of", named_tables(any_scalar().boxed())),
        ("at-least", bound),
    ]);
    prop::collection::vec(expect, 1..3)
        .prop_map(toml::Value::from)
        .boxed()
}

/// Generates experiments with the right structure. References to names do not always resolve.
fn any_experiment() -> BoxedStrategy<Table> {
    let inputs = || {
        prop::collection::vec(any_name().prop_map(toml::Value::from), 1..3)
            .prop_map(toml::Value::from)
            .boxed()
    };
    let flag = |key: &'static str| {
        any_texts().prop_map(move |value| Table::from_iter([(key.to_owned(), value)]).into())
    };
    let source = prop_oneof![flag("media"), flag("make")].boxed();
    let function = table_of(vec![
        ("run", any_texts()),
        ("at", any_texts()),
        ("port", any_number()),
        ("health", any_texts()),
        ("input", inputs()),
    ]);
    let sink = table_of(vec![
        ("run", any_texts()),
        ("at", any_texts()),
        ("input", inputs()),
        ("measure", named_tables(any_texts())),
        ("warm-up", any_number()),
        ("timeout", any_rates()),
    ]);
    let scale = table_of(vec![
        ("rounds", any_number()),
        ("sweep", named_tables(any_scalars().boxed())),
    ]);
    let bounds = table_of(vec![("link-late", any_texts()), ("steal", any_texts())]);
    let rest: toml::Value = Table::from_iter([(
        "general".to_owned(),
        Table::from_iter([("rank".to_owned(), toml::Value::from(3))]).into(),
    )])
    .into();
    table_of(vec![
        ("name", any_texts()),
        ("question", any_texts()),
        ("found", any_texts()),
        ("rounds", any_number()),
        ("seed", any_number()),
        ("sweep", named_tables(any_scalars().boxed())),
        ("source", named_tables(source)),
        ("function", named_tables(function)),
        ("link", named_tables(any_link())),
        ("sink", named_tables(sink)),
        ("scale", named_tables(scale)),
        ("bounds", bounds),
        ("expect", any_expectations()),
        ("place", named_tables(table_of(vec![("host", any_texts())]))),
        ("nbmp", Just(rest).boxed()),
    ])
    .prop_map(|value| value.as_table().unwrap().clone())
    .boxed()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300f64).prop_map(Value::from),
        any_text().prop_map(Value::from),
        Just(json!({"instance": "a", "connection-id": "b", "stream-id": "c", "name": "d"})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![
            Just("name".to_owned()),
            Just("$json".to_owned()),
            any_text()
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Generates copies of a document in which up to three values are replaced.
fn damaged_document(text: &str) -> impl Strategy<Value = Value> + use<> {
    let document: Value = serde_json::from_str(text).unwrap();
    let mut pointers = Vec::new();
    pointers_of(&document, "", &mut pointers);
    let of = prop::sample::select(pointers);
    prop::collection::vec((of, any_json()), 0..4).prop_map(move |harms| {
        let mut harmed = document.clone();
        for (pointer, value) in harms {
            if let Some(place) = harmed.pointer_mut(&pointer) {
                *place = value;
            }
        }
        harmed
    })
}

fn pointers_of(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            pointers_of(value, &format!("{at}/{name}"), all);
        }),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(n, value)| pointers_of(value, &format!("{at}/{n}"), all)),
        _ => {}
    }
}

fn congestion_workflow() -> String {
    let all = read_experiments();
    let (_, text) = all
        .iter()
        .find(|(path, _)| path.ends_with("congestion.toml"))
        .unwrap();
    to_workflow(&toml::from_str(text).unwrap()).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_experiment_survives_a_round_trip(table in any_experiment()) {
        prop_assume!(table.contains_key("name"));
        let workflow = parse_bounded_json(to_workflow(&table).to_string().as_bytes()).unwrap();
        prop_assert_eq!(to_experiment(&workflow), table);
    }

    #[test]
    fn any_workflow_survives_a_round_trip(workflow in damaged_document(include_str!("nbmp/premiere.wdd.json"))) {
        assert_round_trip(&workflow);
    }

    #[test]
    fn the_workflow_of_an_experiment_survives_a_round_trip(workflow in damaged_document(&congestion_workflow())) {
        assert_round_trip(&workflow);
    }

    #[test]
    fn any_json_survives_a_round_trip(value in any_json()) {
        assert_round_trip(&value);
    }
}
