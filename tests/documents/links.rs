//! Checks links between documents.

use crate::{project_root, read_text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    let pages = committed_pages();
    assert!(pages.len() > 20, "found only {} pages", pages.len());
    for page in pages {
        for link in relative_links(&read_text(&page)) {
            if let Some(reason) = find_fault(&page, &link) {
                let name = page.strip_prefix(project_root()).unwrap().display();
                broken.push(format!("{name}: {link}: {reason}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_book_lists_every_page_of_documentation() {
    let docs = project_root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = relative_links(&read_text(&summary))
        .into_iter()
        .map(|link| docs.join(link))
        .collect();
    let unlisted: Vec<_> = committed_pages()
        .into_iter()
        .filter(|page| page.starts_with(&docs) && *page != summary && !listed.contains(page))
        .collect();
    assert!(unlisted.is_empty(), "not in docs/SUMMARY.md: {unlisted:?}");
}

/// mdBook publishes only the files below `docs`, so a link to any other file is broken on the site.
#[test]
fn links_of_the_book_stay_in_the_book() {
    let docs = project_root().join("docs");
    let mut leaving = Vec::new();
    for page in committed_pages() {
        let Ok(name) = page.strip_prefix(&docs) else {
            continue;
        };
        for link in relative_links(&read_text(&page)) {
            let above = Path::new(&link).iter().filter(|part| *part == "..");
            if above.count() >= name.iter().count() {
                leaving.push(format!("docs/{}: {link}", name.display()));
            }
        }
    }
    assert!(
        leaving.is_empty(),
        "use code text instead:\n{}",
        leaving.join("\n")
    );
}

fn committed_pages() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.md",
        ])
        .current_dir(project_root())
        .output()
        .unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    let pages = names.lines().map(|name| project_root().join(name));
    pages.filter(|page| page.is_file()).collect()
}

/// Returns the targets of inline links and images, except targets with a scheme.
fn relative_links(text: &str) -> Vec<String> {
    let prose = without_code(text);
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

fn without_code(text: &str) -> String {
    let blocks: Vec<_> = text.split("```").step_by(2).collect();
    let joined = blocks.join("\n");
    joined.split('`').step_by(2).collect::<Vec<_>>().join("")
}

/// Returns the reason why a link is broken, or `None` if the link is correct.
fn find_fault(page: &Path, link: &str) -> Option<&'static str> {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent()?.join(file),
    };
    if !target.exists() {
        return Some("no such file");
    }
    let anchored = !heading.is_empty() && target.extension().is_some_and(|e| e == "md");
    let anchors = || {
        read_text(&target)
            .lines()
            .filter_map(anchor_of)
            .collect::<Vec<_>>()
    };
    (anchored && !anchors().iter().any(|anchor| anchor == heading)).then_some("no such heading")
}

/// Returns the anchor of a heading, as GitHub and mdBook derive it.
fn anchor_of(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let kept = title.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    Some(kept.map(|c| if c == ' ' { '-' } else { c }).collect())
}
