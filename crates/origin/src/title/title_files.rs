//! The files that a title's path leads to.

use crate::error;
use crate::title::file_names::{FILES_MAX, is_media, is_server_manifest};
use crate::title::index_cache::IndexCache;
use crate::title::sources::TitleSources;
use crate::title::stores::{FileLocation, MediaStores};
use http::StatusCode;
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use store::{FolderEntry, Key, ObjectVersion, Store};

/// The files of a title with their versions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TitleFiles(Vec<(Key, ObjectVersion)>);

impl TitleFiles {
    /// Finds the files of a title. Blocks.
    pub(crate) fn find(store: &Store, title: &Key) -> Result<TitleFiles, Error> {
        let entries = match list_remote_folder(store, title) {
            Some(entries) => entries,
            None => match store.look(title).map_err(|e| error::from_store(&e))? {
                Some(identity) => return Ok(TitleFiles(vec![(title.clone(), identity)])),
                None => store.list(title).map_err(|e| error::from_store(&e))?,
            },
        };
        let media = entries.into_iter().filter(|entry| is_media(&entry.name));
        let files: Vec<_> = media
            .filter_map(|entry| Some((title.join(&entry.name).ok()?, entry.file?)))
            .take(FILES_MAX + 1)
            .collect();
        match files.len() {
            0 => Err(error::not_found("the folder contains no film")),
            n if n > FILES_MAX => Err(error::too_many_files(title)),
            _ => Ok(TitleFiles(files)),
        }
    }

    /// Returns the keys of the files.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Returns a hash that differs between versions of the files.
    pub(crate) fn version_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }
}

/// Lists a remote folder without checking first whether the path is a file, which would cost two
/// more requests. Returns `None` if the name is a film's or the folder is missing.
fn list_remote_folder(store: &Store, title: &Key) -> Option<Vec<FolderEntry>> {
    let name = title.name();
    if !store.is_remote() || is_media(name) || is_server_manifest(name) {
        return None;
    }
    store.list(title).ok().filter(|entries| !entries.is_empty())
}

/// Finds, opens and indexes a title's files. Blocks.
pub(crate) fn open_title(
    stores: &MediaStores,
    index_cache: &IndexCache,
    title: &Key,
) -> Result<(TitleFiles, TitleSources), Error> {
    let name = title.name();
    // Opening a remote file also checks that it exists, so a film's own name needs no separate
    // look-up.
    if stores.library().is_remote() && (is_media(name) || is_server_manifest(name)) {
        match TitleSources::open_sources(stores, index_cache, [title].into_iter()) {
            Err(error) if error.status == StatusCode::NOT_FOUND => {}
            sources => {
                let sources = sources?;
                let identity = sources.identity_of(&FileLocation::in_library(title));
                let identity = identity.ok_or_else(|| Error::internal("the title has no file"))?;
                return Ok((TitleFiles(vec![(title.clone(), identity)]), sources));
            }
        }
    }
    let found = TitleFiles::find(stores.library(), title)?;
    let sources = TitleSources::open_sources(stores, index_cache, found.keys())?;
    Ok((found, sources))
}
