//! Tests the conversion of a description that contains functions of another vendor.

use super::*;
use crate::document_format::ParsedDocument;

const FOREIGN: &str = include_str!("../../../tests/foreign.wdd.json");

fn parse(text: &str) -> Result<ParsedDocument, Vec<String>> {
    ParsedDocument::parse_and_check(text).map_err(|faults| {
        let faults = faults.into_iter();
        faults
            .map(|fault| format!("{}: {}", fault.path, fault.what))
            .collect()
    })
}

/// An earlier version rejected every foreign description with the error `missing field rounds`.
#[test]
fn a_foreign_description_becomes_an_experiment() {
    let parsed = parse(FOREIGN).unwrap();
    let document = &parsed.document;
    assert_eq!(*document.rounds.get_ref(), 1);
    let functions: Vec<&str> = document
        .function
        .keys()
        .map(|name| name.get_ref().as_str())
        .collect();
    assert_eq!(functions, ["edge-1", "origin-a"]);
    let edge = document
        .function
        .iter()
        .find(|(name, _)| name.get_ref() == "edge-1");
    let edge = edge.unwrap().1;
    assert!(
        edge.run.get_ref().contains("--origin http://{origin-a}"),
        "{:?}",
        edge.run
    );
    assert_eq!(*edge.port.get_ref(), 8082);
    let (_, sink) = document.sink.iter().next().unwrap();
    for text in [
        "http://{edge-1}/Headwater/.mpd",
        "--viewers 3",
        "--abr bola",
        "--spread 1",
        "--duration 2s",
    ] {
        assert!(sink.run.get_ref().contains(text), "{text}: {:?}", sink.run);
    }
    assert!(sink.measure.len() >= 4);
    // The paths of members without effect are listed.
    for path in [
        "$.input['media-parameters'][0]['caching-server-url']",
        "$.processing['connection-map'][0].from",
        "$.processing['connection-map'][3].to",
        "$.processing['function-restrictions'][0].configuration.parameters[1]",
    ] {
        assert!(
            parsed.ignored_members.iter().any(|found| found == path),
            "{path}: {:?}",
            parsed.ignored_members
        );
    }
}

#[test]
fn unknown_functions_are_named_by_their_path() {
    let text = FOREIGN.replace("\"id\": \"object-store\"", "\"id\": \"tape-robot\"");
    let faults = parse(&text).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    let start = "$.processing['connection-map'][0].from.id: unknown function tape-robot; the lab runs vod-origin, ";
    assert!(faults[0].starts_with(start), "{faults:?}");
    let text = FOREIGN.replace("load-generator", "gpu-transcoder");
    let faults = parse(&text).unwrap_err();
    assert!(
        faults[0].starts_with("$.processing['function-restrictions'][2].general.id: "),
        "{faults:?}"
    );
}

/// A description with one of the lab's own functions is not foreign. The lab therefore checks such
/// a description as an experiment, even if the key `rounds` is missing.
#[test]
fn our_own_functions_do_not_make_a_description_foreign() {
    let faults = parse(&FOREIGN.replace("load-generator", "measure")).unwrap_err();
    assert!(faults[0].contains("unknown field `abr`"), "{faults:?}");
}

/// Replaces the input stream of the description by these streams, which are pairs of a stream-id and
/// a URL. Binds the first stream to the origin.
fn with_streams(streams: &[(&str, &str)]) -> String {
    let mut workflow: Value = serde_json::from_str(FOREIGN).unwrap();
    let input = &mut workflow["input"]["media-parameters"];
    let template = input[0].clone();
    let streams_json = streams.iter().map(|(id, url)| {
        let mut stream = template.clone();
        (stream["stream-id"], stream["caching-server-url"]) = ((*id).into(), (*url).into());
        stream
    });
    *input = streams_json.collect();
    workflow["processing"]["function-restrictions"][0]["general"]["input-ports"] =
        serde_json::json!([{"port-name": "in", "bind": {"stream-id": streams[0].0, "name": "in"}}]);
    workflow.to_string()
}

#[test]
fn a_file_name_is_decoded_and_is_no_shell_text() {
    let parsed = parse(&with_streams(&[(
        "asset",
        "file:films/a%20%26%20b;%20id.mp4",
    )]))
    .unwrap();
    let (_, source) = parsed.document.source.iter().next().unwrap();
    let media = source.media.as_ref().unwrap().get_ref();
    assert_eq!(media, "films/a & b; id.mp4");
    let (_, sink) = parsed.document.sink.iter().next().unwrap();
    let url = "http://{edge-1}/a%20%26%20b%3B%20id.mp4/.mpd ";
    assert!(sink.run.get_ref().contains(url), "{:?}", sink.run);
    let runs: Vec<&String> = parsed
        .document
        .function
        .values()
        .map(|function| function.run.get_ref())
        .collect();
    assert!(
        runs.iter().any(|run| run.ends_with(" '{asset}'")),
        "{runs:?}"
    );
}

#[test]
fn files_that_cannot_be_sources_are_reported() {
    for (streams, fault) in [
        (
            [("a", "file:x%27.mp4"), ("b", "file:y.mp4")],
            "$.input['media-parameters'][0]['caching-server-url']: unsupported quote",
        ),
        (
            [("a", "file:x.mp4"), ("b", "file:%ff.mp4")],
            "$.input['media-parameters'][1]['caching-server-url']: the path is not UTF-8",
        ),
        (
            [("Film_1", "file:x.mp4"), ("film-1", "file:y.mp4")],
            "$.input['media-parameters'][1]['stream-id']: another stream-id also becomes film-1",
        ),
    ] {
        let faults = parse(&with_streams(&streams)).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with(fault), "{faults:?}");
    }
}

#[test]
fn clients_need_a_server_and_files_become_sources() {
    let text = FOREIGN.replace("edge->players", "x").replace(
        "\"from\": { \"id\": \"edge-cache\", \"instance\": \"Edge-1\"",
        "\"from\": { \"id\": \"object-store\", \"instance\": \"Store-1\"",
    );
    let faults = parse(&text).unwrap_err();
    assert!(
        faults[0].contains("no function of the connection-map feeds"),
        "{faults:?}"
    );
    let text = FOREIGN
        .replace("http://media.example/asset/manifest.mpd", "file:films/film.mp4")
        .replace(
            "\"description\": \"An origin\",",
            "\"description\": \"An origin\", \"input-ports\": [ { \"port-name\": \"in\", \"bind\": { \"stream-id\": \"asset\", \"name\": \"in\" } } ],",
        );
    let parsed = parse(&text).unwrap();
    let (_, sink) = parsed.document.sink.iter().next().unwrap();
    assert!(
        sink.run.get_ref().contains("http://{edge-1}/film.mp4/.mpd"),
        "{:?}",
        sink.run
    );
    let origin = parsed
        .document
        .function
        .iter()
        .find(|(name, _)| name.get_ref() == "origin-a");
    assert!(
        origin.unwrap().1.run.get_ref().ends_with(" '{asset}'"),
        "{}",
        parsed.text
    );
}

#[test]
fn a_description_with_too_many_instances_is_refused() {
    let mut workflow: Value = serde_json::from_str(FOREIGN).unwrap();
    let functions = &mut workflow["processing"]["function-restrictions"];
    let mut all = functions.as_array().unwrap().clone();
    let mut other = all[0].clone();
    for number in 0..1000 {
        other["instance"] = format!("i{number}").into();
        all.push(other.clone());
    }
    *functions = all.into();
    let faults = adapt_workflow(&workflow).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].what.contains("at most 1000"), "{faults:?}");
}

#[test]
fn values_cannot_end_a_command() {
    assert_eq!(quote_word("bola"), "bola");
    assert_eq!(quote_word("x; rm -r ~"), "'x; rm -r ~'");
    assert_eq!(quote_word("it's"), r"'it'\''s'");
    assert_eq!(quote_word(""), "''");
}
