//! Finds the media files to index, on the local disk or in a remote library.

use super::write_index::error_at_path;
use crate::title::file_names;
use crate::title::references;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Folder, Key, Object, Options, Remote, RequestReason, Store};

/// A media file.
pub(super) struct MediaFile {
    /// Name of the file in messages.
    pub(super) display_name: String,
    pub(super) location: MediaLocation,
    store: Arc<Store>,
    key: Key,
}

/// Location of a media file.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) enum MediaLocation {
    /// Absolute path of the file. The path of its folder contains no symbolic links.
    OnDisk(PathBuf),
    /// URL of the file's folder, without a slash at the end.
    InStore(String),
}

impl MediaFile {
    /// Returns the file name.
    pub(super) fn file_name(&self) -> Result<&str, String> {
        match &self.location {
            MediaLocation::OnDisk(path) => file_name_of(path),
            MediaLocation::InStore(_) => Ok(self.key.name()),
        }
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The reason why the file cannot be opened.
    pub(super) fn open_file(&self) -> Result<Object, String> {
        let opened = self.store.open_for(&self.key, RequestReason::Index);
        opened.map_err(|e| format!("{}: {e}", self.display_name))
    }
}

/// Returns the media files of all sources, without duplicates.
///
/// # Errors
/// A message that names the unavailable source and the reason.
pub(super) fn find_media_files(
    sources: &[String],
    options: &Options,
) -> Result<Vec<MediaFile>, String> {
    let mut media = Vec::new();
    for source in sources {
        if Remote::is_remote_url(source) {
            media.extend(find_media_in_store(source, options)?);
        } else {
            media.extend(find_media_on_disk(source, options)?);
        }
    }
    let mut seen = HashSet::new();
    media.retain(|medium| seen.insert((medium.location.clone(), medium.key.clone())));
    Ok(media)
}

/// Derives the default name of the title from the path or the URL of a source.
pub(super) fn default_title_name(source: &str) -> Result<String, String> {
    let key = match split_remote_url(source) {
        Some((_, key)) => key,
        None if Remote::is_remote_url(source) => {
            return Err(format!(
                "{source}: no name for the title; set it with --name NAME"
            ));
        }
        None => {
            let path = canonical_path(source)?;
            let name = file_name_of(&path)?;
            Key::parse(name).map_err(|e| error_at_path(&path, e))?
        }
    };
    Ok(file_names::display_name_of(&key).to_owned())
}

fn find_media_on_disk(source: &str, options: &Options) -> Result<Vec<MediaFile>, String> {
    let path = canonical_path(source)?;
    let wrong = |what| format!("{}: {what}", path.display());
    if !path.is_dir() {
        let key = Key::parse(file_name_of(&path)?).map_err(|e| error_at_path(&path, e))?;
        let folder = Folder::new(&path).map_err(|e| error_at_path(&path, e))?;
        return Ok(vec![MediaFile {
            display_name: path.display().to_string(),
            store: Arc::new(Store::Folder(folder)),
            key,
            location: MediaLocation::OnDisk(path),
        }]);
    }
    let store = Store::new(path_text(&path)?, options.clone()).map_err(wrong)?;
    let files = list_films(Arc::new(store)).map_err(|e| wrong(e.to_string()))?;
    let medium = |(store, key): (Arc<Store>, Key)| {
        let path = path.join(key.as_str());
        MediaFile {
            display_name: path.display().to_string(),
            location: MediaLocation::OnDisk(path),
            store,
            key,
        }
    };
    Ok(files.into_iter().map(medium).collect())
}

/// Finds the film at a URL, or all films in the folder at a URL.
fn find_media_in_store(source: &str, options: &Options) -> Result<Vec<MediaFile>, String> {
    let one = split_remote_url(source).filter(|(_, key)| file_names::is_media(key.name()));
    let folder = one.as_ref().map_or(source, |(folder, _)| folder);
    let folder = folder.trim_end_matches('/').to_owned();
    let store = Arc::new(Store::new(&folder, options.clone())?);
    let files = match one {
        Some((_, key)) => vec![(store, key)],
        None => list_films(store).map_err(|e| format!("{source}: {e}"))?,
    };
    let medium = |(store, key): (Arc<Store>, Key)| MediaFile {
        display_name: format!("{folder}/{key}"),
        location: MediaLocation::InStore(folder.clone()),
        store,
        key,
    };
    Ok(files.into_iter().map(medium).collect())
}

fn list_films(store: Arc<Store>) -> Result<Vec<(Arc<Store>, Key)>, store::Error> {
    let entries = store.list_folder(&Key::ROOT)?;
    let files = entries.iter().filter(|entry| entry.file.is_some());
    let films = files.filter(|entry| file_names::is_media(&entry.name));
    let keys = films.filter_map(|entry| Key::parse(&entry.name).ok());
    Ok(keys.map(|key| (store.clone(), key)).collect())
}

/// Splits `s3://bucket/films/a%20b.mp4` into `s3://bucket/films` and `a b.mp4`.
pub(crate) fn split_remote_url(source: &str) -> Option<(&str, Key)> {
    let start = source
        .find("://")
        .filter(|_| Remote::is_remote_url(source))?
        + 3;
    let slash = start + source.get(start..)?.trim_end_matches('/').rfind('/')?;
    let name = source.get(slash + 1..)?.trim_end_matches('/');
    let key = Key::parse(&references::decode_escapes(name)).ok()?;
    Some((source.get(..slash)?, key))
}

fn canonical_path(source: &str) -> Result<PathBuf, String> {
    let path = Path::new(source.strip_prefix("file://").unwrap_or(source));
    path.canonicalize()
        .map_err(|e| error_at_path(path, net::describe_io_error(&e)))
}

fn file_name_of(path: &Path) -> Result<&str, String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| error_at_path(path, "the name is not UTF-8"))
}

fn path_text(path: &Path) -> Result<&str, String> {
    path.to_str()
        .ok_or_else(|| error_at_path(path, "the path is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_split_into_folder_and_name() {
        let parts = |url| split_remote_url(url).map(|(folder, key)| (folder, key.to_string()));
        for (url, folder, name) in [
            ("s3://films/a.mp4", "s3://films", "a.mp4"),
            ("https://h:1/x/a%20b.mp4", "https://h:1/x", "a b.mp4"),
            ("az://films/tos/", "az://films", "tos"),
        ] {
            assert_eq!(parts(url), Some((folder, name.to_owned())), "{url}");
        }
        for none in ["s3://films", "s3://films/", "/films/a.mp4", "film.mp4"] {
            assert_eq!(parts(none), None, "{none}");
        }
    }
}
