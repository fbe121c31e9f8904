//! Lists the reports in the subfolders of a folder, with the outcome of each report.

use super::ReportTable;
use super::markdown::escape_line;
use super::stored::{ReportFileError, read_report_as};
use crate::experiment::FileError;
use std::path::Path;

/// Returns a Markdown page that lists the reports in the subfolders of `folder`, sorted by the name
/// of the subfolder.
///
/// # Errors
/// The folder or a report cannot be read.
pub fn index_reports(folder: &Path) -> Result<String, ReportFileError> {
    let failed = |path: &Path, source| FileError::new(path, source);
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, error))?;
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    let head = [
        "experiment",
        "scale",
        "finding",
        "runs",
        "discarded",
        "machine",
    ];
    let mut table = ReportTable::new(head);
    let mut titles = Vec::new();
    for path in paths {
        let Some(json) = read_report_as::<serde_json::Value>(&path)? else {
            continue;
        };
        let word = |pointer: &str| {
            let found = json.pointer(pointer).and_then(serde_json::Value::as_str);
            found.unwrap_or("–").to_owned()
        };
        let id = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let discarded = json
            .pointer("/thrown")
            .and_then(serde_json::Value::as_array);
        let finding = match json.pointer("/format").and_then(serde_json::Value::as_u64) {
            Some(_) => word("/finding/says"),
            None => "not measured: a report of an earlier version; run the experiment again".into(),
        };
        let count = json.pointer("/runs").and_then(serde_json::Value::as_u64);
        let machine = [word("/machines/0/cpu"), word("/machines/0/kernel")].join(", ");
        titles.push((id.clone(), word("/name"), word("/scale")));
        table.rows.push(vec![
            id,
            word("/scale"),
            finding,
            count.map_or("–".into(), |count| count.to_string()),
            discarded.map_or("–".into(), |discarded| discarded.len().to_string()),
            machine,
        ]);
    }
    let links = format_report_links(&titles);
    Ok(format!(
        "# Results\n\n`headwater lab index` writes this page from the reports below. The scale is the \
         `--scale` of the run. All arms of an experiment ran on one machine, in interleaved rounds. Each folder \
         also contains the compressed data of its report; `headwater lab report FOLDER` regenerates the page \
         from it.\n\n{links}\n{}",
        table.markdown()
    ))
}

/// Returns links to the reports. A report is given as `(folder, title, scale)`. If several reports
/// have the same title, the link text of each of these reports also contains the scale.
fn format_report_links(titles: &[(String, String, String)]) -> String {
    let links = titles.iter().map(|(id, title, scale)| {
        let is_repeated = titles.iter().filter(|(_, other, _)| other == title).count() > 1;
        let title = match is_repeated {
            true => format!("{title}, scale {scale}"),
            false => title.clone(),
        };
        format!("- [{}]({id}/report.md)", escape_line(&title))
    });
    links.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_titles_have_their_scale() {
        let titles = [
            ("a", "Clients", "small"),
            ("b", "Clients", "many"),
            ("c", "Pacing", "small"),
        ];
        let titles = titles.map(|(id, title, scale)| (id.into(), title.into(), scale.into()));
        assert_eq!(
            format_report_links(&titles),
            "- [Clients, scale small](a/report.md)\n- [Clients, scale many](b/report.md)\n- [Pacing](c/report.md)"
        );
    }
}
