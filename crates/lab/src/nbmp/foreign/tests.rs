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
        origin.unwrap().1.run.get_ref().ends_with(" {asset}"),
        "{}",
        parsed.text
    );
}

#[test]
fn values_cannot_end_a_command() {
    assert_eq!(quote_word("bola"), "bola");
    assert_eq!(quote_word("x; rm -r ~"), "'x; rm -r ~'");
    assert_eq!(quote_word("it's"), r"'it'\''s'");
    assert_eq!(quote_word(""), "''");
}
