//! What there is to index: media on this machine's disk, or in a library elsewhere.

use super::write::at;
use crate::reference;
use crate::title;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Folder, Key, Object, Options, Reason, Remote, Store};

/// A media file.
pub(super) struct Medium {
    /// What people call it.
    pub(super) shown: String,
    pub(super) lies: Lies,
    store: Arc<Store>,
    key: Key,
}

/// Where a media file lies.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) enum Lies {
    /// Absolute, without links.
    Disk(PathBuf),
    /// The URL of its folder, without the last slash.
    Below(String),
}

impl Medium {
    /// Its own name, without its folder's.
    pub(super) fn name(&self) -> Result<&str, String> {
        match &self.lies {
            Lies::Disk(path) => text(path),
            Lies::Below(_) => Ok(self.key.name()),
        }
    }

    /// # Errors
    /// Why it cannot be opened.
    pub(super) fn open(&self) -> Result<Object, String> {
        let opened = self.store.open_for(&self.key, Reason::Index);
        opened.map_err(|e| format!("{}: {e}", self.shown))
    }
}

/// The media that the sources are or hold, each once.
///
/// # Errors
/// Which source cannot be had, and why.
pub(super) fn media(sources: &[String], options: &Options) -> Result<Vec<Medium>, String> {
    let mut media = Vec::new();
    for source in sources {
        if Remote::is_remote(source) {
            media.extend(remote(source, options)?);
        } else {
            media.extend(local(source, options)?);
        }
    }
    let mut seen = HashSet::new();
    media.retain(|medium| seen.insert((medium.lies.clone(), medium.key.clone())));
    Ok(media)
}

/// What a title of a source is called, where nobody named it.
pub(super) fn title_of(source: &str) -> Result<String, String> {
    let key = match folder_and_name(source) {
        Some((_, key)) => key,
        None if Remote::is_remote(source) => return Err(format!("{source}: say --name NAME")),
        None => {
            let path = on_disk(source)?;
            let name = text(&path)?;
            Key::parse(name).map_err(|e| at(&path, e))?
        }
    };
    Ok(title::name_of(&key).to_owned())
}

fn local(source: &str, options: &Options) -> Result<Vec<Medium>, String> {
    let path = on_disk(source)?;
    let wrong = |what| format!("{}: {what}", path.display());
    if !path.is_dir() {
        let key = Key::parse(text(&path)?).map_err(|e| at(&path, e))?;
        let folder = Folder::new(&path).map_err(|e| at(&path, e))?;
        return Ok(vec![Medium {
            shown: path.display().to_string(),
            store: Arc::new(Store::Folder(folder)),
            key,
            lies: Lies::Disk(path),
        }]);
    }
    let store = Store::new(text_of(&path)?, options.clone()).map_err(wrong)?;
    let files = films(Arc::new(store)).map_err(|e| wrong(e.to_string()))?;
    let medium = |(store, key): (Arc<Store>, Key)| {
        let path = path.join(key.as_str());
        Medium {
            shown: path.display().to_string(),
            lies: Lies::Disk(path),
            store,
            key,
        }
    };
    Ok(files.into_iter().map(medium).collect())
}

/// A film by its URL, or the films in what the URL names.
fn remote(source: &str, options: &Options) -> Result<Vec<Medium>, String> {
    let one = folder_and_name(source).filter(|(_, key)| title::is_media(key.name()));
    let folder = one.as_ref().map_or(source, |(folder, _)| folder);
    let folder = folder.trim_end_matches('/').to_owned();
    let store = Arc::new(Store::new(&folder, options.clone())?);
    let files = match one {
        Some((_, key)) => vec![(store, key)],
        None => films(store).map_err(|e| format!("{source}: {e}"))?,
    };
    let medium = |(store, key): (Arc<Store>, Key)| Medium {
        shown: format!("{folder}/{key}"),
        lies: Lies::Below(folder.clone()),
        store,
        key,
    };
    Ok(files.into_iter().map(medium).collect())
}

fn films(store: Arc<Store>) -> Result<Vec<(Arc<Store>, Key)>, store::Error> {
    let entries = store.list(&Key::ROOT)?;
    let files = entries.iter().filter(|entry| entry.file.is_some());
    let films = files.filter(|entry| title::is_media(&entry.name));
    let keys = films.filter_map(|entry| Key::parse(&entry.name).ok());
    Ok(keys.map(|key| (store.clone(), key)).collect())
}

/// `s3://bucket/films/a%20b.mp4` is `a b.mp4` in `s3://bucket/films`.
fn folder_and_name(source: &str) -> Option<(&str, Key)> {
    let start = source.find("://").filter(|_| Remote::is_remote(source))? + 3;
    let slash = start + source.get(start..)?.trim_end_matches('/').rfind('/')?;
    let name = source.get(slash + 1..)?.trim_end_matches('/');
    let key = Key::parse(&reference::decoded(name)).ok()?;
    Some((source.get(..slash)?, key))
}

fn on_disk(source: &str) -> Result<PathBuf, String> {
    let path = Path::new(source.strip_prefix("file://").unwrap_or(source));
    path.canonicalize().map_err(|e| at(path, e))
}

fn text(path: &Path) -> Result<&str, String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| at(path, "a name that is not UTF-8"))
}

fn text_of(path: &Path) -> Result<&str, String> {
    path.to_str()
        .ok_or_else(|| at(path, "a path that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_folder_and_a_name() {
        let parts = |url| folder_and_name(url).map(|(folder, key)| (folder, key.to_string()));
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
