//! Files of a library that are not listed although they may contain films.

use crate::check::foreign_containers::IgnoredFile;
use serde::Serialize;
use store::Key;

/// Maximum number of ignored files that are described.
const NAMED_MAX: usize = 5;

/// The number of ignored files, and descriptions of the first [`NAMED_MAX`] files.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct IgnoredFiles {
    count: usize,
    first: Vec<IgnoredFile>,
}

impl IgnoredFiles {
    /// Adds links in a folder that point outside the library.
    pub(super) fn add_links(&mut self, folder: &Key, names: &[String]) {
        for name in names {
            if let Ok(key) = folder.child(name) {
                self.add_ignored_file(IgnoredFile::from_outside_link(key.as_str()));
            }
        }
    }

    /// Adds a file if its extension belongs to a film container other than MP4.
    pub(super) fn add_foreign_film(&mut self, key: &Key) {
        if let Some(file) = IgnoredFile::from_foreign_container(key.as_str()) {
            self.add_ignored_file(file);
        }
    }

    /// Logs why each described file is not listed, with the remedy. `place` is the library's
    /// location.
    pub(super) fn log_ignored_files(&self, place: &str) {
        for file in &self.first {
            tracing::warn!("{place}: not listed: {}", file.describe_ignored_file());
        }
        if self.count > self.first.len() {
            let more = self.count - self.first.len();
            tracing::warn!("{place}: not listed: {more} more; `headwater check` names them");
        }
    }

    fn add_ignored_file(&mut self, file: IgnoredFile) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ignored_files_are_counted_and_the_first_are_named() {
        let mut ignored = IgnoredFiles::default();
        ignored.add_links(&Key::parse("a").unwrap(), &["far.mp4".to_owned()]);
        for n in 0..7 {
            ignored.add_foreign_film(&Key::parse(&format!("{n}.mkv")).unwrap());
        }
        ignored.add_foreign_film(&Key::parse("notes.txt").unwrap());
        assert_eq!((ignored.count, ignored.first.len()), (8, NAMED_MAX));
        assert_eq!(
            ignored.first[0].describe_ignored_file(),
            "a/far.mp4 is a link out of the library; allow it with --follow-links, or move the file"
        );
    }
}
