//! What a word on the command line leads to: films on disk, or one on a server.

use crate::kept::Kept;
use crate::sources::{Sources, is_server_manifest};
use crate::stores::Stores;
use crate::title;
use http::Uri;
use media::index::{Index, Indexer};
use media::presentation::{Presentation, Rules};
use net::client::{Client, Part};
use std::path::Path;
use std::sync::Arc;
use store::{Folder, Key, Store};

/// A title by name, or why it cannot be packaged.
pub(super) type Title = (String, Result<Presentation, String>);

/// Folders below folders that are looked into.
const DEPTH_MAX: usize = 8;
/// Most read at once over a network, in bytes.
const PART_BYTES_MAX: u64 = 8 << 20;

/// The titles that `target` names.
///
/// # Errors
/// When there is nothing to look at: no such path, no film in it, no answer.
pub(super) fn titles(target: &str, segment_ms: u32) -> Result<Vec<Title>, String> {
    if target.starts_with("http://") || target.starts_with("https://") {
        let index = remote(target)?;
        let title = index.and_then(|index| present(vec![Arc::new(index)], segment_ms));
        return Ok(vec![(target.to_owned(), title)]);
    }
    let path = Path::new(target);
    let folder = Store::Folder(Folder::new(path).map_err(|e| e.to_string())?);
    let mut library = Library {
        stores: Stores::new(Arc::new(folder), Vec::new()),
        path,
        segment_ms,
        titles: Vec::new(),
    };
    library.look(&Key::ROOT, DEPTH_MAX)?;
    if library.titles.is_empty() {
        return Err(format!(
            "no film in it (looked for {})",
            title::SUFFIXES.join(", ")
        ));
    }
    Ok(library.titles)
}

/// A folder being looked through.
struct Library<'a> {
    stores: Stores,
    path: &'a Path,
    segment_ms: u32,
    titles: Vec<Title>,
}

impl Library<'_> {
    /// Adds the titles of a folder, then those of the folders in it.
    fn look(&mut self, key: &Key, depth: usize) -> Result<(), String> {
        let entries = self.stores.films().list(key).map_err(|e| e.to_string())?;
        let (files, folders): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.file.is_some());
        let keys = |wanted: fn(&str) -> bool| -> Vec<Key> {
            let files = files.iter().filter(|entry| wanted(&entry.name));
            files
                .filter_map(|entry| key.join(&entry.name).ok())
                .collect()
        };
        self.add(key, &keys(title::is_media));
        for manifest in keys(is_server_manifest) {
            self.add(key, &[manifest]);
        }
        for folder in folders.iter().filter(|_| depth > 0) {
            if let Ok(key) = key.join(&folder.name) {
                self.look(&key, depth - 1)?;
            }
        }
        Ok(())
    }

    /// Files that go together are one title; else each is one.
    fn add(&mut self, folder: &Key, files: &[Key]) {
        if files.len() > 1
            && let Ok(whole) = local(&self.stores, files)
            && let Ok(title) = present(whole, self.segment_ms)
        {
            self.titles.push((self.name(folder), Ok(title)));
            return;
        }
        for key in files {
            let indexes = local(&self.stores, std::slice::from_ref(key));
            let title = indexes.and_then(|indexes| present(indexes, self.segment_ms));
            self.titles.push((self.name(key), title));
        }
    }

    /// What a person would call it: the path from where they stand.
    fn name(&self, key: &Key) -> String {
        match key {
            key if key.is_root() || !self.path.is_dir() => self.path.display().to_string(),
            key => self.path.join(key.as_str()).display().to_string(),
        }
    }
}

/// The indexes of the media that files are or name, each medium once.
fn local(stores: &Stores, keys: &[Key]) -> Result<Vec<Arc<Index>>, String> {
    let sources = Sources::open(stores, &Kept::default(), keys.iter()).map_err(|e| e.context)?;
    Ok(sources.media.into_iter().map(|(.., index)| index).collect())
}

fn present(files: Vec<Arc<Index>>, segment_ms: u32) -> Result<Presentation, String> {
    Presentation::new(files, &Rules { segment_ms }).map_err(|e| e.to_string())
}

/// Outer error: no such film to look at. Inner: it cannot be packaged.
fn remote(url: &str) -> Result<Result<Index, String>, String> {
    let uri: Uri = url.parse().map_err(|e| format!("not a URL: {e}"))?;
    if [".m3u8", ".mpd"]
        .iter()
        .any(|end| uri.path().ends_with(end))
    {
        return Err("a manifest; give the URL of the film itself".into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|e| e.to_string())?.block_on(fetch(&uri))
}

async fn fetch(uri: &Uri) -> Result<Result<Index, String>, String> {
    let client = Client::new();
    let first = client
        .part(uri, 0..1, None)
        .await
        .map_err(|e| e.to_string())?;
    // A weak tag cannot hold a range to the same bytes (RFC 9110, 13.1.1).
    let etag = first.etag.as_deref().filter(|tag| !tag.starts_with("W/"));
    let mut indexer = Indexer::new(first.len);
    while let Some(need) = indexer.need() {
        let range = need.start..need.end.min(need.start + PART_BYTES_MAX);
        let part: Part = client
            .part(uri, range, etag)
            .await
            .map_err(|e| e.to_string())?;
        if part.len != first.len {
            return Err("the file changed meanwhile".into());
        }
        if let Err(error) = indexer.feed(&part.bytes) {
            return Ok(Err(error.to_string()));
        }
    }
    Ok(indexer.finish().map_err(|e| e.to_string()))
}
