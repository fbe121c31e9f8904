//! Experiments as TOML and as NBMP: there and back, nothing is lost on either way.

#![allow(clippy::unwrap_used)]

use lab::experiment::{Document, check};
use lab::nbmp::{Kind, Level, OWN_FUNCTIONS, read, to_experiment, to_workflow};
use lab::nbmp::{undone, validate, without_effect};
use proptest::prelude::*;
use serde_json::{Value, json};
use toml::Table;

fn experiments() -> Vec<(String, String)> {
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
fn every_experiment_goes_there_and_back_and_means_the_same() {
    for (path, text) in experiments() {
        let table: Table = toml::from_str(&text).unwrap();
        let workflow = to_workflow(&table);
        let offences = validate(&workflow, Kind::Workflow, Level::Lax, &OWN_FUNCTIONS);
        assert_eq!(offences, [], "{path}: {workflow:#}");
        // All of it is acted on.
        assert_eq!(
            (undone(&workflow), without_effect(&workflow)),
            (vec![], vec![]),
            "{path}"
        );
        // As text, as it would lie in a file.
        let workflow = read(serde_json::to_string_pretty(&workflow).unwrap().as_bytes()).unwrap();
        let again = to_experiment(&workflow);
        assert_eq!(again, table, "{path}");
        let written = toml::to_string_pretty(&again).unwrap();
        let document = Document::read(&written).unwrap();
        let before = check(&text, &Document::read(&text).unwrap());
        assert_eq!(check(&written, &document).len(), before.len(), "{path}");
    }
}

#[test]
fn the_congestion_experiment_is_strictly_nbmp() {
    let all = experiments();
    let (_, text) = all
        .iter()
        .find(|(path, _)| path.ends_with("congestion.toml"))
        .unwrap();
    let workflow = to_workflow(&toml::from_str(text).unwrap());
    assert_eq!(
        validate(&workflow, Kind::Workflow, Level::Strict, &OWN_FUNCTIONS),
        []
    );
    let map = workflow["processing"]["connection-map"].as_array().unwrap();
    let link = map
        .iter()
        .find(|one| one["connection-id"] == "access")
        .unwrap();
    // What NBMP has a word for is said with it.
    assert_eq!(
        link["flowcontrol"],
        json!({"min-delay": 100, "max-throughput": 20_000_000})
    );
    assert_eq!(
        workflow["general"]["id"],
        "congestion-control-over-a-lossy-line"
    );
}

#[test]
fn what_is_changed_in_the_one_is_changed_in_the_other() {
    let all = experiments();
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
fn descriptions_of_others_survive() {
    let premiere = include_str!("nbmp/premiere.wdd.json");
    let terse = include_str!("nbmp/terse.wdd.json");
    for text in [premiere, terse] {
        survives(&read(text.as_bytes()).unwrap());
    }
}

/// There and back, by way of TOML as text.
fn survives(workflow: &Value) {
    let table = to_experiment(workflow);
    let text = toml::to_string_pretty(&table).unwrap();
    let again: Table = toml::from_str(&text).unwrap();
    assert_eq!(&to_workflow(&again), workflow, "{text}");
}

/// Texts in which escapes, placeholders and other scripts turn up.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,12}",
        "\\PC{1,6}",
        Just("{loss}".to_owned()),
        Just("20mbit".to_owned()),
        Just("%2E.\"'\\\n\t".to_owned()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    "[a-c][a-z0-9-]{0,4}"
}

/// What a variable may be.
fn scalar() -> impl Strategy<Value = toml::Value> {
    prop_oneof![
        text().prop_map(toml::Value::from),
        any::<i64>().prop_map(toml::Value::from),
        (-1e300..1e300f64).prop_map(toml::Value::from),
        any::<bool>().prop_map(toml::Value::from),
        Just(toml::Value::from(f64::INFINITY)),
    ]
}

fn scalars() -> impl Strategy<Value = toml::Value> {
    prop::collection::vec(scalar(), 1..4).prop_map(toml::Value::from)
}

fn table(of: Vec<(&'static str, BoxedStrategy<toml::Value>)>) -> BoxedStrategy<toml::Value> {
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

fn named(of: BoxedStrategy<toml::Value>) -> BoxedStrategy<toml::Value> {
    prop::collection::btree_map(name(), of, 1..3)
        .prop_map(|all| Table::from_iter(all).into())
        .boxed()
}

fn texts() -> BoxedStrategy<toml::Value> {
    text().prop_map(toml::Value::from).boxed()
}

fn number() -> BoxedStrategy<toml::Value> {
    any::<u16>()
        .prop_map(|n| toml::Value::from(i64::from(n)))
        .boxed()
}

/// Some that a field of NBMP's can say, and others.
fn rates() -> BoxedStrategy<toml::Value> {
    prop_oneof!["[0-9]{1,4}[kmg]?bit", "[0-9]{1,4}(ms|s|us)", text()]
        .prop_map(toml::Value::from)
        .boxed()
}

fn link() -> BoxedStrategy<toml::Value> {
    let link = table(vec![
        ("rate", rates()),
        ("up-rate", rates()),
        ("delay", rates()),
        ("loss", texts()),
        ("compete", scalars().boxed()),
    ]);
    (link, [name(), name()])
        .prop_map(|(mut link, [a, b])| {
            let between = vec![toml::Value::from(a), toml::Value::from(b)];
            let link_table = link.as_table_mut().unwrap();
            link_table.insert("between".into(), between.into());
            link
        })
        .boxed()
}

fn expects() -> BoxedStrategy<toml::Value> {
    let bound = (-1e9..1e9f64).prop_map(toml::Value::from).boxed();
    let expect = table(vec![
        ("that", texts()),
        ("quantity", texts()),
        ("of", named(scalar().boxed())),
        ("at-least", bound),
    ]);
    prop::collection::vec(expect, 1..3)
        .prop_map(toml::Value::from)
        .boxed()
}

/// Experiments of the right form, though their names may lead nowhere.
fn experiment() -> BoxedStrategy<Table> {
    let inputs = || {
        prop::collection::vec(name().prop_map(toml::Value::from), 1..3)
            .prop_map(toml::Value::from)
            .boxed()
    };
    let flag = |key: &'static str| {
        texts().prop_map(move |value| Table::from_iter([(key.to_owned(), value)]).into())
    };
    let source = prop_oneof![flag("media"), flag("make")].boxed();
    let function = table(vec![
        ("run", texts()),
        ("at", texts()),
        ("port", number()),
        ("health", texts()),
        ("input", inputs()),
    ]);
    let sink = table(vec![
        ("run", texts()),
        ("at", texts()),
        ("input", inputs()),
        ("measure", named(texts())),
        ("warm-up", number()),
        ("timeout", rates()),
    ]);
    let scale = table(vec![
        ("rounds", number()),
        ("sweep", named(scalars().boxed())),
    ]);
    let bounds = table(vec![("link-late", texts()), ("steal", texts())]);
    let rest: toml::Value = Table::from_iter([(
        "general".to_owned(),
        Table::from_iter([("rank".to_owned(), toml::Value::from(3))]).into(),
    )])
    .into();
    table(vec![
        ("name", texts()),
        ("question", texts()),
        ("found", texts()),
        ("rounds", number()),
        ("seed", number()),
        ("sweep", named(scalars().boxed())),
        ("source", named(source)),
        ("function", named(function)),
        ("link", named(link())),
        ("sink", named(sink)),
        ("scale", named(scale)),
        ("bounds", bounds),
        ("expect", expects()),
        ("place", named(table(vec![("host", texts())]))),
        ("nbmp", Just(rest).boxed()),
    ])
    .prop_map(|value| value.as_table().unwrap().clone())
    .boxed()
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300f64).prop_map(Value::from),
        text().prop_map(Value::from),
        Just(json!({"instance": "a", "connection-id": "b", "stream-id": "c", "name": "d"})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![Just("name".to_owned()), Just("$json".to_owned()), text()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A document with something else at one of its places.
fn harmed(text: &str) -> impl Strategy<Value = Value> + use<> {
    let document: Value = serde_json::from_str(text).unwrap();
    let mut pointers = Vec::new();
    pointers_of(&document, "", &mut pointers);
    let of = prop::sample::select(pointers);
    prop::collection::vec((of, json()), 0..4).prop_map(move |harms| {
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

fn congestion() -> String {
    let all = experiments();
    let (_, text) = all
        .iter()
        .find(|(path, _)| path.ends_with("congestion.toml"))
        .unwrap();
    to_workflow(&toml::from_str(text).unwrap()).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_experiment_comes_back(table in experiment()) {
        prop_assume!(table.contains_key("name"));
        let workflow = read(to_workflow(&table).to_string().as_bytes()).unwrap();
        prop_assert_eq!(to_experiment(&workflow), table);
    }

    #[test]
    fn a_workflow_comes_back(workflow in harmed(include_str!("nbmp/premiere.wdd.json"))) {
        survives(&workflow);
    }

    #[test]
    fn an_experiments_workflow_comes_back(workflow in harmed(&congestion())) {
        survives(&workflow);
    }

    #[test]
    fn any_json_comes_back(value in json()) {
        survives(&value);
    }
}
