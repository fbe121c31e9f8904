//! The folders of a local library that contain films.

use super::ignored_files::IgnoredFiles;
use crate::title::file_names;
use crate::title::file_names::is_server_manifest;
use crate::title::natural_order::{compare_names, compare_paths};
use crate::title::title_files::TitleFiles;
use store::{Key, Store};

/// Maximum depth of nested folders.
pub(super) const DEPTH_MAX: usize = 8;
/// Maximum number of listed titles.
pub(super) const TITLES_MAX: usize = 5000;

/// A folder that contains films.
pub(super) struct FolderWithFilms {
    pub(super) folder: Key,
    /// Version hash of all films of the folder together.
    pub(super) version_hash: Option<u64>,
    /// The films of the folder, each with its version hash.
    pub(super) files: Vec<(Key, u64)>,
}

/// Finds the films of a library. Skips unreadable entries. Blocks the thread.
pub(super) fn find_films(store: &Store) -> (Vec<FolderWithFilms>, IgnoredFiles) {
    let (mut places, mut ignored) = (Vec::new(), IgnoredFiles::default());
    let mut count = 0;
    let mut ahead = vec![(Key::ROOT, 0)];
    while let Some((key, depth)) = ahead.pop() {
        let Ok(listing) = store.list_with_outside_links(&key) else {
            continue;
        };
        ignored.add_links(&key, &listing.links_out);
        let mut files = Vec::new();
        for entry in listing.entries {
            let Ok(child) = key.child(&entry.name) else {
                continue;
            };
            match entry.file {
                None if depth < DEPTH_MAX => ahead.push((child, depth + 1)),
                Some(_) if file_names::is_media(&entry.name) || is_server_manifest(&entry.name) => {
                    files.extend(
                        TitleFiles::list_media(store, &child)
                            .map(|found| (child, found.version_hash())),
                    );
                }
                Some(_) => ignored.add_foreign_film(&child),
                None => {}
            }
        }
        files.sort_by(|(a, _), (b, _): &(Key, u64)| compare_names(a.name(), b.name()));
        count += files.len();
        if !files.is_empty() {
            let found = TitleFiles::list_media(store, &key)
                .ok()
                .map(|found| found.version_hash());
            places.push(FolderWithFilms {
                folder: key,
                version_hash: found,
                files,
            });
        }
        if count > TITLES_MAX {
            break;
        }
    }
    places.sort_by(|a, b| compare_paths(a.folder.as_str(), b.folder.as_str()));
    (places, ignored)
}
