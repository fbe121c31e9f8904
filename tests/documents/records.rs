//! Checks that `docs/records.md` documents every record field that the programs write.

use crate::process::{get, run_to_end, start_server};
use crate::{project_root, read_text};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_field_of_a_record_is_documented() {
    let folder = tempfile::tempdir().unwrap();
    let [of_origin, of_edge, of_cmcd, of_load] = ["origin", "edge", "cmcd", "load"]
        .map(|name| folder.path().join(name).display().to_string());
    let origin = start_server(&["serve", "--records", &of_origin]);
    let url = format!("http://{}", origin.address);
    let collector = ["--cmcd-collector", "--cmcd-records", &of_cmcd];
    let edge = ["edge", "--origin", &url, "--records", &of_edge];
    let edge = start_server(&[&edge[..], &collector].concat());
    get(edge.address, "/Headwater/.m3u8?CMCD=bl%3D9000", "");
    let manifest = format!("http://{}/Headwater/.m3u8", edge.address);
    run_to_end(&[
        "load",
        "players",
        &manifest,
        "--viewers",
        "1",
        "--duration",
        "3s",
        "--records",
        &of_load,
    ]);
    // Stops the servers, because the files contain all records only after the servers have exited.
    edge.stop();
    origin.stop();
    let fields: BTreeSet<_> = [of_origin, of_edge, of_cmcd, of_load]
        .iter()
        .flat_map(|path| written_fields(&read_text(Path::new(path))))
        .collect();
    let documented = documented_names();
    let missing: Vec<_> = fields
        .into_iter()
        .filter(|name| !documented.contains(name.split_once('.').unwrap_or_default().1))
        .collect();
    assert!(missing.is_empty(), "not in docs/records.md: {missing:?}");
}

/// Returns the names in backquotes on the page.
fn documented_names() -> BTreeSet<String> {
    let page = read_text(&project_root().join("docs/records.md"));
    page.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Returns the names of all fields in the records, as `record.field`.
fn written_fields(records: &str) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for line in records.lines().filter(|line| !line.is_empty()) {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = record["record"].as_str().unwrap_or("request");
        for name in record.as_object().unwrap().keys() {
            fields.insert(format!("{kind}.{name}"));
        }
    }
    assert!(!fields.is_empty(), "no record was written");
    fields
}
