//! Opens the target of `headwater check`, and finds its titles. The result for each title is the
//! opened title or an error.

use super::foreign_containers::{IgnoredFile, SIGNATURE_BYTES};
use super::remedies::choose_remedy;
use super::summary_line::format_summary_line;
use crate::index_command::media_files::split_remote_url;
use crate::title::embedded_text::read_embedded_text;
use crate::title::file_names;
use crate::title::file_names::is_server_manifest;
use crate::title::index_cache::IndexCache;
use crate::title::left_out::{LeftOutPart, list_left_out_tracks, list_unsupported_sidecars};
use crate::title::several_films::are_several_films;
use crate::title::sidecar_name::TEXT_SUFFIXES;
use crate::title::sources::TitleSources;
use crate::title::stores::MediaStores;
use crate::title::title_files::TitleFiles;
use bytes::Bytes;
use media::presentation::{PackagingRules, Presentation};
use media::text::TextSet;
use std::path::Path;
use std::sync::Arc;
use store::{Key, Options, Remote, RequestReason, Store};

/// The name of a title, and the opened title or the reason why it cannot be packaged.
pub(super) type NamedTitleResult = (String, Result<OpenedTitle, TitleFault>);

/// A title that can be packaged.
pub(super) struct OpenedTitle {
    /// The title's path in the library. If the target is a single title, the path is the target's
    /// name.
    pub(super) key: Key,
    /// Paths of the title's files in the library.
    pub(super) library_keys: Vec<Key>,
    pub(super) presentation: Presentation,
    /// Tracks and files that are not served.
    pub(super) left_out: Vec<LeftOutPart>,
}

/// The titles and the ignored files of a target.
pub(super) struct OpenedLibrary {
    pub(super) titles: Vec<NamedTitleResult>,
    /// Films in containers other than MP4, and links that lead out of the library.
    pub(super) ignored: Vec<IgnoredFile>,
}

/// The reason why a title cannot be packaged, and the remedy.
pub(super) struct TitleFault {
    pub(super) message: String,
    pub(super) remedy: String,
}

/// Maximum depth of the folders that are searched.
const DEPTH_MAX: usize = 8;

/// Opens the titles of `target`, which is the path or the URL of a film, a server manifest or a
/// folder.
///
/// # Errors
/// If the target does not exist, contains no film or cannot be read.
pub(super) fn open_titles(
    target: &str,
    segment_ms: u32,
    storage: &Options,
) -> Result<OpenedLibrary, String> {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    if Remote::is_remote_url(target) && [".m3u8", ".mpd"].iter().any(|end| path.ends_with(end)) {
        return Err(format!(
            "{target}: a manifest; give the URL of the film itself"
        ));
    }
    let is_title = |key: &Key| file_names::is_media(key.name()) || is_server_manifest(key.name());
    let file = split_remote_url(target).filter(|(_, key)| is_title(key));
    let source = file.as_ref().map_or(target, |(folder, _)| folder);
    let store = Store::new(source, storage.clone())?;
    let store = Arc::new(store.with_companions(&TEXT_SUFFIXES));
    if let Some((_, key)) = &file {
        // If the target cannot be opened, the command fails instead of reporting a title with an
        // error.
        let opened = store.open_for(key, RequestReason::Index);
        opened.map_err(|error| format!("{target}: {error}"))?;
    }
    let mut library = TitleSearch {
        stores: MediaStores::new(store, Vec::new()),
        place: target.trim_end_matches('/').to_owned(),
        is_folder: file.is_none() && (Remote::is_remote_url(target) || Path::new(target).is_dir()),
        segment_ms,
        titles: Vec::new(),
        ignored: Vec::new(),
    };
    match file {
        Some((_, key)) => library.add_titles(&Key::ROOT, &[key]),
        None => library.search_folder(&Key::ROOT, DEPTH_MAX)?,
    }
    if library.titles.is_empty() {
        return Err(match &library.ignored[..] {
            [] => format!(
                "{target}: no film found; media files end in {}",
                file_names::MEDIA_SUFFIXES.join(", ")
            ),
            ignored => format!("{target}: {}", format_summary_line(&[], ignored)),
        });
    }
    Ok(OpenedLibrary {
        titles: library.titles,
        ignored: library.ignored,
    })
}

/// A search for the titles of a library, with the titles found so far.
struct TitleSearch {
    stores: MediaStores,
    /// The library's path or URL.
    place: String,
    /// Whether `place` is a folder, so that keys are paths below `place`. Otherwise, `place` is the
    /// title itself.
    is_folder: bool,
    segment_ms: u32,
    titles: Vec<NamedTitleResult>,
    ignored: Vec<IgnoredFile>,
}

impl TitleSearch {
    /// Adds the titles of a folder, then the titles of its subfolders.
    fn search_folder(&mut self, key: &Key, depth: usize) -> Result<(), String> {
        let at = |error| format!("{}: {error}", self.place);
        let listing = self
            .stores
            .library()
            .list_with_outside_links(key)
            .map_err(at)?;
        let links = listing.links_out.iter();
        let links = links.filter_map(|name| key.child(name).ok());
        self.ignored
            .extend(links.map(|key| IgnoredFile::from_outside_link(key.as_str())));
        let entries = listing.entries.into_iter();
        let (files, folders): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.file.is_some());
        let keys = |wanted: fn(&str) -> bool| -> Vec<Key> {
            let files = files.iter().filter(|entry| wanted(&entry.name));
            files
                .filter_map(|entry| key.child(&entry.name).ok())
                .collect()
        };
        self.add_titles(key, &keys(file_names::is_media));
        let others = keys(|name| IgnoredFile::from_foreign_container(name).is_some());
        let others = others.iter();
        self.ignored
            .extend(others.filter_map(|key| IgnoredFile::from_foreign_container(key.as_str())));
        for manifest in keys(is_server_manifest) {
            self.add_titles(key, &[manifest]);
        }
        for folder in folders.iter().filter(|_| depth > 0) {
            if let Ok(key) = key.child(&folder.name) {
                self.search_folder(&key, depth - 1)?;
            }
        }
        Ok(())
    }

    /// Adds files as one title if they are renditions of one film. Otherwise, adds each file as a
    /// title of its own. The list of titles that `headwater serve` builds for a local library
    /// follows the same rule.
    fn add_titles(&mut self, folder: &Key, files: &[Key]) {
        if files.len() > 1
            && let Ok(title) = self.open_title(folder, files)
            && !are_several_films(&title.presentation)
        {
            self.titles.push((self.shown_path(folder), Ok(title)));
            return;
        }
        for key in files {
            let title = self.open_title(key, std::slice::from_ref(key));
            let title = title.map_err(|error| self.describe_fault(key, error));
            self.titles.push((self.shown_path(key), title));
        }
    }

    /// Opens the title at `key` from its `files`, and reads its text.
    fn open_title(&self, key: &Key, files: &[Key]) -> Result<OpenedTitle, String> {
        let sources = open_sources(&self.stores, files)?;
        let mut left_out_text = sources.left_out.clone();
        let presentation = self.build_presentation(&sources, key, &mut left_out_text)?;
        let media = sources.media.iter();
        let names: Vec<&str> = media.map(|(place, ..)| place.key.name()).collect();
        let mut left_out = list_left_out_tracks(&presentation, &names);
        left_out.extend(left_out_text);
        left_out.extend(list_unsupported_sidecars(self.stores.library(), key));
        Ok(OpenedTitle {
            key: self.title_path(key),
            library_keys: sources.library_keys().cloned().collect(),
            presentation,
            left_out,
        })
    }

    /// Builds the presentation of the title at `key`, with its text. Adds each text that cannot be
    /// read to `left_out`.
    fn build_presentation(
        &self,
        sources: &TitleSources,
        key: &Key,
        left_out: &mut Vec<LeftOutPart>,
    ) -> Result<Presentation, String> {
        let files = sources.media.iter().map(|(.., index)| index.clone());
        let rules = PackagingRules {
            segment_duration_ms: self.segment_ms,
        };
        let presentation = Presentation::new(files.collect(), &rules).map_err(|e| e.to_string())?;
        let objects = sources.media.iter();
        let objects = objects.map(|(place, object, _)| (place.key.name(), &**object));
        let mut text = read_embedded_text(&presentation, objects, left_out);
        let store = self.stores.library();
        let files = TitleFiles::list_media(store, key);
        // If the library cannot be listed, text files beside its films are ignored.
        if let Ok(files) = files {
            let files = files.with_text_beside(store, key);
            let film_end_ms = presentation.duration.round_to(1000);
            text.extend(files.read_text_renditions(store, key, film_end_ms, left_out));
        }
        Ok(presentation.with_text(Arc::new(TextSet::new(text))))
    }

    fn describe_fault(&self, key: &Key, error: String) -> TitleFault {
        // The file name is removed from the start of the error, because the report already contains
        // the name.
        let named = error.strip_prefix(&format!("{key}: ")).map(str::to_owned);
        let first = self.first_bytes(key).unwrap_or_default();
        let (message, remedy) = choose_remedy(key.as_str(), named.unwrap_or(error), &first);
        TitleFault { message, remedy }
    }

    fn first_bytes(&self, key: &Key) -> Option<Bytes> {
        let object = self
            .stores
            .library()
            .open_for(key, RequestReason::Index)
            .ok()?;
        let end = object.len().min(SIGNATURE_BYTES);
        object.read(0..end, RequestReason::Index).ok()
    }

    /// Returns the path of a title in the library. If the target is a folder with the renditions of
    /// one title, the parent of this folder counts as the library. The path is then the name of the
    /// folder.
    fn title_path(&self, key: &Key) -> Key {
        let name = self.place.rsplit('/').next().unwrap_or_default();
        match key.is_root() {
            true => Key::parse(name).unwrap_or(Key::ROOT),
            false => key.clone(),
        }
    }

    /// Returns the path or the URL of a file or folder, starting with the target as the user wrote
    /// it.
    fn shown_path(&self, key: &Key) -> String {
        match key.is_root() || !self.is_folder {
            true => self.place.clone(),
            false => format!("{}/{key}", self.place),
        }
    }
}

/// Opens and indexes all media files that the files at `keys` contain or refer to, without
/// duplicates.
fn open_sources(stores: &MediaStores, keys: &[Key]) -> Result<TitleSources, String> {
    TitleSources::open_sources(stores, &IndexCache::default(), keys.iter()).map_err(|e| e.context)
}
