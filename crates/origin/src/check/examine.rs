//! Creates the report about one opened title, with its renditions, their protection and all
//! findings.

use super::findings::{find_problems, find_protection_problems};
use super::left_out_remedies::report_left_out;
use super::open::OpenedTitle;
use super::protection::{CheckedProtection, RenditionProtection};
use super::report::{Finding, RenditionRow, TitleReport};
use super::text_rendition_row::TextRenditionRow;
use crate::drm::LibraryDrm;

/// Examines a title. If the settings protect the title, also loads its keys. Blocks.
pub(super) fn examine_title(
    name: &str,
    opened: &OpenedTitle,
    drm: Option<&LibraryDrm>,
) -> TitleReport {
    let title = &opened.presentation;
    let protection =
        CheckedProtection::load_protection(drm, (&opened.key, &opened.library_keys), title);
    let mut findings: Vec<Finding> = opened.left_out.iter().map(report_left_out).collect();
    findings.extend(find_problems(title, protection.is_required));
    find_protection_problems(title, opened.key.as_str(), &protection, &mut findings);
    findings.sort_by_key(|finding| finding.level);
    let rows = title.renditions.iter().enumerate().map(|(n, rendition)| {
        let signaling = protection.signaling_of(n);
        let row = RenditionRow::from_rendition(title, rendition);
        RenditionRow {
            protection: signaling
                .map(|signaling| RenditionProtection::from_signaling(title, rendition, signaling)),
            ..row
        }
    });
    TitleReport {
        title: name.into(),
        duration_s: title.duration.as_seconds_f64(),
        renditions: rows.collect(),
        texts: title
            .text
            .renditions()
            .map(TextRenditionRow::from_rendition)
            .collect(),
        findings,
    }
}
