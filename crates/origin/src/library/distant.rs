//! What a remote library seems to hold, by its listing alone: no file is looked at.

use super::{DEPTH_MAX, TITLES_MAX};
use crate::sources::is_server_manifest;
use crate::title::{FILES_MAX, is_media};
use std::collections::VecDeque;
use store::{Entry, Key, Store};

/// Folders that are listed: each takes a request, or several.
const FOLDERS_MAX: usize = 200;
/// Suffixes of files that hold one track of a film, so that a folder of them is one title.
const TRACKS: [&str; 4] = ["cmfv", "cmfa", "ismv", "isma"];

/// A title by its name.
pub(super) struct Title {
    pub(super) key: Key,
    /// `file`, `folder`, or `index` for a server manifest.
    pub(super) kind: &'static str,
    /// As far as the listing says.
    pub(super) bytes: u64,
}

/// Lists folder by folder, the nearest first; and whether there is more. Blocks. What cannot be
/// listed is left out.
pub(super) fn walk(store: &Store) -> (Vec<Title>, bool) {
    let mut titles = Vec::new();
    let mut ahead = VecDeque::from([(Key::ROOT, 0)]);
    let mut folders = 0;
    while let Some((folder, depth)) = ahead.pop_front() {
        if folders == FOLDERS_MAX || titles.len() > TITLES_MAX {
            titles.truncate(TITLES_MAX);
            return (sorted(titles), true);
        }
        folders += 1;
        // One more than are told, so that it is known that there are more.
        let Ok(entries) = store.list_first(&folder, TITLES_MAX + 1) else {
            continue;
        };
        for entry in entries.iter().filter(|entry| entry.file.is_none()) {
            if let Ok(child) = folder.join(&entry.name)
                && depth < DEPTH_MAX
            {
                ahead.push_back((child, depth + 1));
            }
        }
        titles.extend(of_folder(&folder, &entries));
    }
    let truncated = titles.len() > TITLES_MAX;
    titles.truncate(TITLES_MAX);
    (sorted(titles), truncated)
}

/// The titles of one folder: its server manifests if it has some, which name the rest; else
/// itself, if its files are tracks; else each of its files.
fn of_folder(folder: &Key, entries: &[Entry]) -> Vec<Title> {
    let files = || {
        entries
            .iter()
            .filter_map(|entry| Some((entry, entry.file?.len)))
    };
    let title = |name: &str, kind, bytes| {
        let key = folder.join(name).ok()?;
        Some(Title { key, kind, bytes })
    };
    let manifests = files().filter(|(entry, _)| is_server_manifest(&entry.name));
    let manifests = manifests.filter_map(|(entry, bytes)| title(&entry.name, "index", bytes));
    let manifests: Vec<_> = manifests.collect();
    if !manifests.is_empty() {
        return manifests;
    }
    let films = || files().filter(|(entry, _)| is_media(&entry.name));
    let (count, bytes) = films().fold((0, 0), |(n, all), (_, bytes)| (n + 1, all + bytes));
    if (2..=FILES_MAX).contains(&count) && films().any(|(entry, _)| is_track(&entry.name)) {
        let key = folder.clone();
        return vec![Title {
            key,
            kind: "folder",
            bytes,
        }];
    }
    let films = films().filter_map(|(entry, bytes)| title(&entry.name, "file", bytes));
    films.collect()
}

fn is_track(name: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| {
        TRACKS
            .iter()
            .any(|known| suffix.eq_ignore_ascii_case(known))
    })
}

fn sorted(mut titles: Vec<Title>) -> Vec<Title> {
    titles.sort_by(|a, b| a.key.cmp(&b.key));
    titles
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Identity;

    fn listed(names: &[&str]) -> Vec<(String, &'static str, u64)> {
        let entry = |name: &&str| Entry {
            name: (*name).to_owned(),
            file: Some(Identity {
                len: 10,
                ..Identity::default()
            }),
        };
        let entries: Vec<_> = names.iter().map(entry).collect();
        let titles = of_folder(&Key::parse("a").unwrap(), &entries).into_iter();
        titles
            .map(|title| (title.key.to_string(), title.kind, title.bytes))
            .collect()
    }

    #[test]
    fn names_tell_titles() {
        let one = |path: &str, kind, bytes| (path.to_owned(), kind, bytes);
        let films = [one("a/x.mp4", "file", 10), one("a/y.mov", "file", 10)];
        assert_eq!(listed(&["x.mp4", "y.mov", "z.txt"]), films);
        assert_eq!(listed(&["v.cmfv", "s.cmfa"]), [one("a", "folder", 20)]);
        assert_eq!(listed(&["v.cmfv"]), [one("a/v.cmfv", "file", 10)]);
        let both = ["v.cmfv", "v-index.mp4", "t.ism"];
        assert_eq!(listed(&both), [one("a/t.ism", "index", 10)]);
        assert!(listed(&["n.txt"]).is_empty());
    }
}
