//! Tests with known outputs and files of sinks.

use super::*;
use crate::experiment::ExperimentDocument;
use std::path::PathBuf;

/// Creates an empty folder for a test.
fn create_folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lab-collect-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn collect_from(
    test: &str,
    words: &str,
    files: &[(&str, &str)],
) -> Result<SeriesAndHistograms, SinkResultError> {
    let folder = create_folder(test);
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let text = format!("name='x'\nquestion='x'\nrounds=1\n[sink.s]\nrun='x'\n{words}");
    let document = ExperimentDocument::parse_toml(&text).unwrap();
    let sink = document.sink.get("s").unwrap();
    let found = SeriesAndHistograms::read_results(sink, &folder.join("s.out"));
    std::fs::remove_dir_all(&folder).unwrap();
    found
}

#[test]
fn series_of_every_form_are_read() {
    let words = r#"
        series.pairs = { from = "/pairs" }
        series.plain = { from = "/plain", times = 2.0 }
        series.named = { from = "lines.jsonl" }
        series.chosen = { from = "more.json#/steps", t = "/at", value = "/x/y" }"#;
    let files = [
        (
            "s.out",
            "starting\n{\"a\": 1.5, \"pairs\": [[0, 1], [2, 3]], \"plain\": [4, 5]}\n",
        ),
        (
            "more.json",
            r#"{"b": [7], "steps": [{"at": 10, "x": {"y": 3}}]}"#,
        ),
        (
            "lines.jsonl",
            "{\"t\": 1, \"value\": 2}\n\n{\"t\": 3, \"value\": 4}\n",
        ),
    ];
    let record = collect_from("forms", words, &files).unwrap();
    assert_eq!(record.series["pairs"], [[0.0, 1.0], [2.0, 3.0]]);
    assert_eq!(record.series["plain"], [[0.0, 8.0], [1.0, 10.0]]);
    assert_eq!(record.series["named"], [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(record.series["chosen"], [[10.0, 3.0]]);
}

#[test]
fn histograms_of_logs_are_added_by_tag() {
    let mut one = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    (1..=100).for_each(|n| one.record(n).unwrap());
    let encoded = encode_histogram(&one).unwrap();
    let log = format!(
        "#[a log]\nTag=due,0.0,1.0,0.1,{encoded}\nTag=due,1.0,1.0,0.1,{encoded}\nTag=sent,0.0,1.0,0.1,{encoded}\n"
    );
    let files = [
        ("s.out", "{}"),
        ("l.hdr", log.as_str()),
        ("b.hdr", encoded.as_str()),
    ];
    let words = "histogram.due = { from = 'l.hdr', tag = 'd*' }\nhistogram.all = { from = 'l.hdr', tag = '*' }\n\
                 histogram.alone = { from = 'b.hdr', times = 0.5 }";
    let record = collect_from("hdr", words, &files).unwrap();
    let counts = ["due", "all", "alone"].map(|name| {
        let counted = &record.histograms[name];
        (decode_histogram(&counted.v2).unwrap().len(), counted.times)
    });
    assert_eq!(counts, [(200, 1.0), (300, 1.0), (100, 0.5)]);
    for (words, message) in [
        ("histogram.h = { from = 'l.hdr' }", "several tags"),
        (
            "histogram.h = { from = 'l.hdr', tag = 'x' }",
            "no histogram with the tag x",
        ),
        ("histogram.h = { from = 's.out' }", "invalid histogram"),
    ] {
        let wrong = collect_from("hdr-wrong", words, &files)
            .unwrap_err()
            .to_string();
        assert!(wrong.contains(message), "{words}: {wrong}");
    }
}

#[test]
fn missing_results_are_reported_with_their_place() {
    for (words, printed, message) in [
        (
            "series.a = { from = '/a' }",
            "{\"a\": 1}",
            "a: no array at /a",
        ),
        (
            "series.a = { from = '/a' }",
            "{\"a\": [[1, 2, 3]]}",
            "item 0 of /a is no point",
        ),
        (
            "series.a = { from = '/a', times = 1e300 }",
            "{\"a\": [1, 1e300]}",
            "item 1 of /a is too large",
        ),
        ("series.a = { from = 's.out' }", "1\nx", "line 2"),
        (
            "histogram.a = { from = '/a' }",
            "{\"a\": []}",
            "no text at /a",
        ),
        (
            "histogram.a = { from = '/a' }",
            "{\"a\": \"AAAA\"}",
            "invalid histogram",
        ),
    ] {
        let wrong = collect_from("missing", words, &[("s.out", printed)])
            .unwrap_err()
            .to_string();
        assert!(wrong.contains(message), "{words}: {wrong}");
    }
}
