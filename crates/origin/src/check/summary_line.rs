//! The summary line at the end of a report about a folder.

use super::foreign_containers::IgnoredFile;
use super::report::{FindingLevel, TitleReport};

/// Maximum number of ignored files that are named.
const IGNORED_SHOWN_MAX: usize = 5;

/// Counts titles by their worst finding, and names the ignored films. A title that has only hints
/// counts as fine. Example:
/// `9 titles: 3 fine, 3 with warnings, 3 rejected, 1 ignored: x.mkv is not MP4; …`.
pub(super) fn format_summary_line(reports: &[TitleReport], ignored: &[IgnoredFile]) -> String {
    let rejected = reports.iter().filter(|report| report.has_errors()).count();
    let warned = |report: &&TitleReport| {
        !report.has_errors() && report.has_finding_at_level(FindingLevel::Warning)
    };
    let warned = reports.iter().filter(warned).count();
    let fine = reports.len() - rejected - warned;
    let unit = if reports.len() == 1 {
        "title"
    } else {
        "titles"
    };
    let mut text = format!(
        "{} {unit}: {fine} fine, {warned} with warnings, {rejected} rejected",
        reports.len()
    );
    if !ignored.is_empty() {
        let names = ignored.iter().take(IGNORED_SHOWN_MAX);
        let names: Vec<_> = names.map(IgnoredFile::describe_ignored_file).collect();
        text += &format!(", {} ignored: {}", ignored.len(), names.join("; "));
        if ignored.len() > IGNORED_SHOWN_MAX {
            text += &format!("; and {} more", ignored.len() - IGNORED_SHOWN_MAX);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::Finding;

    fn report(level: Option<FindingLevel>) -> TitleReport {
        let mut report = TitleReport::from_error("x.mp4", String::new(), "");
        report.findings.clear();
        let finding = level.map(|level| Finding::new(level, "x", String::new(), ""));
        report.findings.extend(finding);
        report
    }

    #[test]
    fn titles_are_counted_by_their_worst_finding() {
        let levels = [
            None,
            Some(FindingLevel::Hint),
            Some(FindingLevel::Warning),
            Some(FindingLevel::Error),
        ];
        let reports = levels.map(report);
        let text = format_summary_line(&reports, &[]);
        assert_eq!(text, "4 titles: 2 fine, 1 with warnings, 1 rejected");
    }

    #[test]
    fn ignored_films_are_named_up_to_a_bound() {
        let ignored: Vec<_> = (0..7)
            .filter_map(|n| IgnoredFile::from_foreign_container(&format!("{n}.mkv")))
            .collect();
        let text = format_summary_line(&[], &ignored);
        assert!(
            text.contains("7 ignored: 0.mkv is not MP4; remux with"),
            "{text}"
        );
        assert!(text.ends_with("; and 2 more"), "{text}");
    }
}
