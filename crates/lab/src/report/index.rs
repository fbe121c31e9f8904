//! All reports of a folder, each with what became of its source's finding.

use super::Table;
use super::markdown::line;
use std::path::Path;

/// Longest report that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// `FOLDER/*/report.json` as Markdown, in order of their names.
///
/// # Errors
/// A folder or a report that cannot be read.
pub fn index(folder: &Path) -> Result<String, String> {
    let failed = |path: &Path, what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    let head = [
        "experiment",
        "size",
        "finding",
        "runs",
        "thrown away",
        "machine",
    ];
    let mut table = Table::new(head);
    let mut links = Vec::new();
    for path in paths {
        let report = path.join("report.json");
        let Ok(known) = report.metadata() else {
            continue;
        };
        if known.len() > BYTES_MAX {
            return Err(failed(&report, &"too long for a report"));
        }
        let text = std::fs::read(&report).map_err(|error| failed(&report, &error))?;
        let json: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| failed(&report, &error))?;
        let word = |pointer: &str| {
            let found = json.pointer(pointer).and_then(serde_json::Value::as_str);
            found.unwrap_or("–").to_owned()
        };
        let id = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let thrown = json
            .pointer("/thrown")
            .and_then(serde_json::Value::as_array);
        let count = json.pointer("/runs").and_then(serde_json::Value::as_u64);
        let machine = [word("/machines/0/cpu"), word("/machines/0/kernel")].join(", ");
        links.push(format!(
            "- [{}]({id}/report.md) ([page]({id}/report.html), [JSON]({id}/report.json))",
            line(&word("/name"))
        ));
        table.rows.push(vec![
            id,
            word("/scale"),
            word("/finding/says"),
            count.map_or("–".into(), |count| count.to_string()),
            thrown.map_or("–".into(), |thrown| thrown.len().to_string()),
            machine,
        ]);
    }
    let links = links.join("\n");
    Ok(format!(
        "# Results\n\nMade by `headwater lab index` from the reports beside this file. The size is what \
         `--scale` named; figures are of one interleaved run on one machine.\n\n{links}\n{}",
        table.markdown()
    ))
}
