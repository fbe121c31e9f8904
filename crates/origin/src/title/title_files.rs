//! Finds the files to which the path of a title leads.

use crate::error;
use crate::title::file_names::{FILES_MAX, is_media, is_server_manifest};
use crate::title::index_cache::IndexCache;
use crate::title::left_out::LeftOutPart;
use crate::title::opened_title::TitlePartsToLoad;
use crate::title::sources::TitleSources;
use crate::title::stores::{FileLocation, MediaStores};
use crate::title::text_sidecars::{self, TextSidecarFiles};
use http::StatusCode;
use media::text::TextRendition;
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use store::{FolderEntry, Key, ObjectVersion, Store};

/// The files of a title with their versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TitleFiles {
    media: Vec<(Key, ObjectVersion)>,
    text: TextSidecarFiles,
}

impl TitleFiles {
    /// Finds the media of a title. If the path leads to a folder, also finds the text files in the
    /// folder. Blocks.
    pub(crate) fn list_media(store: &Store, title: &Key) -> Result<TitleFiles, Error> {
        let entries = match list_remote_folder(store, title) {
            Some(entries) => entries,
            None => match store.look_up(title).map_err(|e| error::from_store(&e))? {
                Some(identity) => return Ok(TitleFiles::single_file(title, identity)),
                None => store
                    .list_folder(title)
                    .map_err(|e| error::from_store(&e))?,
            },
        };
        let (media, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| is_media(&entry.name));
        let files: Vec<_> = media
            .into_iter()
            .filter_map(|entry| Some((title.child(&entry.name).ok()?, entry.file?)))
            .take(FILES_MAX + 1)
            .collect();
        match files.len() {
            0 => Err(error::not_found("the folder contains no film")),
            n if n > FILES_MAX => Err(error::too_many_title_files(title)),
            _ => Ok(TitleFiles {
                media: files,
                // In a folder of renditions, every text file belongs to the title.
                text: text_sidecars::select_text_files(title, others),
            }),
        }
    }

    /// Finds the files of a title. Finding the text files beside a film requires a listing of the
    /// folder. Blocks.
    ///
    /// If the listing fails, the text files of `known_text` are used, and the error is returned,
    /// too.
    pub(crate) fn find_media_and_text(
        store: &Store,
        title: &Key,
        known_text: &TitleFiles,
    ) -> Result<(TitleFiles, Option<store::Error>), Error> {
        let mut found = TitleFiles::list_media(store, title)?;
        let text_failure = found.add_text_beside(store, title).err();
        if text_failure.is_some() {
            found.text.clone_from(&known_text.text);
        }
        Ok((found, text_failure))
    }

    /// Returns the files of a title that is a single film without text.
    fn single_file(title: &Key, identity: ObjectVersion) -> TitleFiles {
        TitleFiles {
            media: vec![(title.clone(), identity)],
            text: TextSidecarFiles::default(),
        }
    }

    /// Adds the text files beside the title, if the title is a single file. If the listing of its
    /// folder fails, logs the error and adds no text.
    pub(crate) fn with_text_beside(mut self, store: &Store, title: &Key) -> TitleFiles {
        if let Err(error) = self.add_text_beside(store, title) {
            tracing::warn!(title = title.as_str(), %error, "cannot look for text");
        }
        self
    }

    fn add_text_beside(&mut self, store: &Store, title: &Key) -> Result<(), store::Error> {
        if self.media.iter().any(|(key, _)| key == title) {
            self.text = text_sidecars::find_text_beside(store, title)?;
        }
        Ok(())
    }

    /// Reads and parses the text files of a film that ends at `film_end_ms`. Appends the files that
    /// cannot be read to `left_out`. Blocks.
    pub(crate) fn read_text_renditions(
        &self,
        store: &Store,
        title: &Key,
        film_end_ms: i64,
        left_out: &mut Vec<LeftOutPart>,
    ) -> Vec<TextRendition> {
        let media: Vec<Key> = self.media_keys().cloned().collect();
        text_sidecars::read_text_sidecars(store, title, &media, &self.text, film_end_ms, left_out)
    }

    /// Returns the keys of the media.
    pub(crate) fn media_keys(&self) -> impl Iterator<Item = &Key> {
        self.media.iter().map(|(key, _)| key)
    }

    /// Returns a hash that differs between versions of the media.
    pub(crate) fn version_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.media.hash(&mut hasher);
        hasher.finish()
    }
}

/// Lists a remote folder. Does not check first whether the path is a file, because this check would
/// cost two more requests. Returns `None` if the storage is local, if the title is named like a
/// film or a server manifest, or if the folder is missing.
fn list_remote_folder(store: &Store, title: &Key) -> Option<Vec<FolderEntry>> {
    let name = title.name();
    if !store.is_remote() || is_media(name) || is_server_manifest(name) {
        return None;
    }
    store
        .list_folder(title)
        .ok()
        .filter(|entries| !entries.is_empty())
}

/// Finds, opens and indexes the files of a title. Looks for text beside a film only if `content`
/// includes text. Blocks.
pub(crate) fn open_title(
    stores: &MediaStores,
    index_cache: &IndexCache,
    title: &Key,
    content: TitlePartsToLoad,
) -> Result<(TitleFiles, TitleSources), Error> {
    let name = title.name();
    let with_text = |files: TitleFiles| match content {
        TitlePartsToLoad::Media => files,
        TitlePartsToLoad::MediaAndText => files.with_text_beside(stores.library(), title),
    };
    // Opening a remote film also checks that the film exists, so no separate look-up is needed.
    if stores.library().is_remote() && (is_media(name) || is_server_manifest(name)) {
        match TitleSources::open_sources(stores, index_cache, [title].into_iter()) {
            Err(error) if error.status == StatusCode::NOT_FOUND => {}
            sources => {
                let sources = sources?;
                let identity = sources.opened_version_of(&FileLocation::locate_in_library(title));
                let identity =
                    identity.ok_or_else(|| Error::new_internal_error("the title has no file"))?;
                let files = TitleFiles::single_file(title, identity);
                return Ok((with_text(files), sources));
            }
        }
    }
    let found = with_text(TitleFiles::list_media(stores.library(), title)?);
    let sources = TitleSources::open_sources(stores, index_cache, found.media_keys())?;
    Ok((found, sources))
}
