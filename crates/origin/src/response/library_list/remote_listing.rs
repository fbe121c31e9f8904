//! Titles of a remote library, guessed from the names in its listing. No file is read.

use super::film_folders::{DEPTH_MAX, TITLES_MAX};
use crate::title::file_names::is_server_manifest;
use crate::title::file_names::{FILES_MAX, is_media};
use crate::title::natural_order::compare_paths;
use std::collections::VecDeque;
use store::{FolderEntry, Key, Store};

/// Maximum number of listed folders. Each folder takes at least one request.
const FOLDERS_MAX: usize = 200;
/// Suffixes of files with a single track. Several films in one folder are usually one title if any
/// of them has such a suffix.
const TRACK_SUFFIXES: [&str; 4] = ["cmfv", "cmfa", "ismv", "isma"];

/// A file or folder that is a title according to the names in the listing.
pub(crate) struct ListedTitle {
    pub(crate) key: Key,
    /// `file`, `folder`, or `index` for a server manifest.
    pub(crate) kind: &'static str,
    /// Size according to the listing.
    pub(crate) bytes: u64,
}

/// Lists the titles folder by folder, breadth first. Skips unreadable folders below the root. The
/// returned flag is set if titles may be missing, because there are too many folders or titles.
/// Blocks the thread.
///
/// # Errors
/// Returns an error if the root cannot be listed.
pub(crate) fn list_titles(store: &Store) -> Result<(Vec<ListedTitle>, bool), store::Error> {
    let mut titles = Vec::new();
    let mut ahead = VecDeque::from([(Key::ROOT, 0)]);
    let mut folders = 0;
    while let Some((folder, depth)) = ahead.pop_front() {
        if folders == FOLDERS_MAX || titles.len() > TITLES_MAX {
            titles.truncate(TITLES_MAX);
            return Ok((sort_by_path(titles), true));
        }
        folders += 1;
        // Requests one entry more than the maximum number of titles, to detect a folder with too
        // many titles.
        let entries = match store.list_at_most(&folder, TITLES_MAX + 1) {
            Ok(entries) => entries,
            Err(error) if folder.is_root() => return Err(error),
            Err(_) => continue,
        };
        for entry in entries.iter().filter(|entry| entry.file.is_none()) {
            if let Ok(child) = folder.child(&entry.name)
                && depth < DEPTH_MAX
            {
                ahead.push_back((child, depth + 1));
            }
        }
        titles.extend(titles_in_listing(&folder, &entries));
    }
    let truncated = titles.len() > TITLES_MAX;
    titles.truncate(TITLES_MAX);
    Ok((sort_by_path(titles), truncated))
}

/// Returns the titles of one folder. If the folder contains server manifests, each manifest is a
/// title, because the manifests name the other files. Otherwise, a folder with 2 to [`FILES_MAX`]
/// films is one title if any of them is a single-track file. In any other folder, each film file is
/// a title.
fn titles_in_listing(folder: &Key, entries: &[FolderEntry]) -> Vec<ListedTitle> {
    let files = || {
        entries
            .iter()
            .filter_map(|entry| Some((entry, entry.file?.len)))
    };
    let title = |name: &str, kind, bytes| {
        let key = folder.child(name).ok()?;
        Some(ListedTitle { key, kind, bytes })
    };
    let manifests = files().filter(|(entry, _)| is_server_manifest(&entry.name));
    let manifests = manifests.filter_map(|(entry, bytes)| title(&entry.name, "index", bytes));
    let manifests: Vec<_> = manifests.collect();
    if !manifests.is_empty() {
        return manifests;
    }
    let films = || files().filter(|(entry, _)| is_media(&entry.name));
    let (count, bytes) = films().fold((0, 0), |(n, all), (_, bytes)| (n + 1, all + bytes));
    if (2..=FILES_MAX).contains(&count)
        && films().any(|(entry, _)| is_single_track_file(&entry.name))
    {
        let key = folder.clone();
        return vec![ListedTitle {
            key,
            kind: "folder",
            bytes,
        }];
    }
    let films = films().filter_map(|(entry, bytes)| title(&entry.name, "file", bytes));
    films.collect()
}

fn is_single_track_file(name: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| {
        TRACK_SUFFIXES
            .iter()
            .any(|known| suffix.eq_ignore_ascii_case(known))
    })
}

fn sort_by_path(mut titles: Vec<ListedTitle>) -> Vec<ListedTitle> {
    titles.sort_by(|a, b| compare_paths(a.key.as_str(), b.key.as_str()));
    titles
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ObjectVersion;

    fn titles_of(names: &[&str]) -> Vec<(String, &'static str, u64)> {
        let entry = |name: &&str| FolderEntry {
            name: (*name).to_owned(),
            file: Some(ObjectVersion {
                len: 10,
                ..ObjectVersion::default()
            }),
        };
        let entries: Vec<_> = names.iter().map(entry).collect();
        let titles = titles_in_listing(&Key::parse("a").unwrap(), &entries).into_iter();
        titles
            .map(|title| (title.key.to_string(), title.kind, title.bytes))
            .collect()
    }

    #[test]
    fn remote_titles_are_sorted_by_number() {
        let title = |path: &str| ListedTitle {
            key: Key::parse(path).unwrap(),
            kind: "file",
            bytes: 0,
        };
        let titles = ["s10/e1.mp4", "s2/e10.mp4", "s2/e9.mp4"].map(title);
        let sorted = sort_by_path(titles.into()).into_iter();
        let paths: Vec<_> = sorted.map(|title| title.key.to_string()).collect();
        assert_eq!(paths, ["s2/e9.mp4", "s2/e10.mp4", "s10/e1.mp4"]);
    }

    #[test]
    fn titles_are_guessed_from_names() {
        let one = |path: &str, kind, bytes| (path.to_owned(), kind, bytes);
        let films = [one("a/x.mp4", "file", 10), one("a/y.mov", "file", 10)];
        assert_eq!(titles_of(&["x.mp4", "y.mov", "z.txt"]), films);
        assert_eq!(titles_of(&["v.cmfv", "s.cmfa"]), [one("a", "folder", 20)]);
        assert_eq!(titles_of(&["v.cmfv"]), [one("a/v.cmfv", "file", 10)]);
        let both = ["v.cmfv", "v-index.mp4", "t.ism"];
        assert_eq!(titles_of(&both), [one("a/t.ism", "index", 10)]);
        assert!(titles_of(&["n.txt"]).is_empty());
    }
}
