//! From media files to index MP4s and a server manifest, on this machine's disk.

use super::relative::relative;
use crate::indexer::{self, Indexed};
use crate::reference::{self, Prefix};
use crate::stores::INDEX_STEM_END;
use crate::title;
use media::index::Index;
use media::{ism, mp4};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use store::{Folder, Key, Object};

/// What is to be written.
pub(super) struct Wanted {
    /// Media files, or folders of them.
    pub(super) sources: Vec<PathBuf>,
    /// Where to.
    pub(super) out: PathBuf,
    /// The server manifest's name, with or without `.ism`.
    pub(super) name: Option<String>,
    /// Below which URL the media is named.
    pub(super) base: Option<String>,
}

/// What was written.
#[derive(Serialize)]
pub(super) struct Made {
    /// The server manifest.
    pub(super) manifest: PathBuf,
    /// The index MP4s.
    pub(super) files: Vec<File>,
}

/// An index MP4.
#[derive(Serialize)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// What it names.
    pub(super) media: String,
    pub(super) media_bytes: u64,
}

/// Writes what is wanted. Each file appears whole or not at all, the server manifest last.
pub(super) fn write(wanted: &Wanted) -> Result<Made, String> {
    let base = wanted.base.as_deref().map(base).transpose()?;
    let media = media(&wanted.sources)?;
    fs::create_dir_all(&wanted.out).map_err(|e| at(&wanted.out, e))?;
    let out = wanted.out.canonicalize().map_err(|e| at(&wanted.out, e))?;
    let mut names = HashSet::new();
    let (mut files, mut indexes) = (Vec::new(), Vec::new());
    for path in &media {
        let Some(index) = indexed(path)? else {
            eprintln!(
                "headwater index: {}: passed over, an index MP4",
                path.display()
            );
            continue;
        };
        let media = match &base {
            Some(base) => Some(format!("{base}{}", reference::escaped(text(path)?))),
            None => relative(&out, path).map(|path| reference::escaped(&path)),
        };
        let media = media.ok_or_else(|| at(path, "a path that is not UTF-8"))?;
        let bytes = mp4::index_file(&index, &media).map_err(|e| at(path, e))?;
        let name = name(path, &mut names)?;
        put(&out.join(&name), &bytes)?;
        files.push(File {
            path: wanted.out.join(&name),
            bytes: bytes.len() as u64,
            media,
            media_bytes: index.file_len,
        });
        indexes.push((reference::escaped(&name), index));
    }
    if files.is_empty() {
        let known = title::SUFFIXES.join(", ");
        return Err(format!("no film in it (looked for {known})"));
    }
    let manifest = manifest_name(wanted)?;
    let both = indexes.iter().map(|(name, index)| (name.as_str(), index));
    put(&out.join(&manifest), ism::write(both).as_bytes())?;
    Ok(Made {
        manifest: wanted.out.join(manifest),
        files,
    })
}

/// An address that ends in a slash, so that names can follow.
fn base(url: &str) -> Result<String, String> {
    Prefix::parse(url).map_err(|bad| format!("--base {url}: {bad}"))?;
    let slash = if url.ends_with('/') { "" } else { "/" };
    Ok(format!("{url}{slash}"))
}

/// The media that the sources are or hold, without links on the way.
fn media(sources: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut media = Vec::new();
    for source in sources {
        let path = source.canonicalize().map_err(|e| at(source, e))?;
        if !path.is_dir() {
            media.push(path);
            continue;
        }
        let folder = Folder::new(&path).map_err(|e| at(source, e))?;
        let entries = folder.list(&Key::ROOT).map_err(|e| at(source, e))?;
        let files = entries.iter().filter(|entry| entry.file.is_some());
        let films = files.filter(|entry| title::is_media(&entry.name));
        media.extend(films.map(|entry| path.join(&entry.name)));
    }
    let mut seen = HashSet::new();
    media.retain(|path| seen.insert(path.clone()));
    Ok(media)
}

/// The index of a file; `None` if it is an index MP4.
fn indexed(path: &Path) -> Result<Option<Index>, String> {
    let folder = Folder::new(path).map_err(|e| at(path, e))?;
    let key = Key::parse(text(path)?).map_err(|e| at(path, e))?;
    let object = folder.open(&key).map_err(|e| at(path, e))?;
    match indexer::index(&Key::ROOT, &Object::Local(object)).map_err(|e| at(path, e.context))? {
        Indexed::Film(index) => Ok(Some(index)),
        Indexed::References(_) => Ok(None),
    }
}

/// `film.mp4` becomes `film-index.mp4`; where that is taken, `film-mp4-index.mp4`.
fn name(path: &Path, taken: &mut HashSet<String>) -> Result<String, String> {
    let name = text(path)?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let whole = name.replace('.', "-");
    let mut tries = [stem, &whole]
        .map(|name| format!("{name}{INDEX_STEM_END}.mp4"))
        .into_iter();
    let free = tries.find(|name| taken.insert(name.clone()));
    free.ok_or_else(|| at(path, "another SOURCE of this name is in the title already"))
}

fn manifest_name(wanted: &Wanted) -> Result<String, String> {
    let given = match (&wanted.name, wanted.sources.first()) {
        (Some(name), _) => name.clone(),
        (None, Some(first)) => {
            let path = first.canonicalize().map_err(|e| at(first, e))?;
            title::name_of(&Key::parse(text(&path)?).map_err(|e| at(first, e))?).to_owned()
        }
        (None, None) => String::new(),
    };
    let stem = given.strip_suffix(".ism").unwrap_or(&given);
    let name = format!("{stem}.ism");
    match Key::parse(&name) {
        Ok(key) if key.parent().is_some_and(|folder| folder.is_root()) && !stem.is_empty() => {
            Ok(name)
        }
        _ => Err(format!(
            "--name {given:?}: a file's name is wanted, without its folder"
        )),
    }
}

fn text(path: &Path) -> Result<&str, String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| at(path, "a name that is not UTF-8"))
}

/// Puts a file in place of another at once: whoever reads meanwhile has the old or the new one.
fn put(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let part = path.with_extension(format!("part{}", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|e| {
        // It may never have been made.
        let _ = fs::remove_file(&part);
        at(path, e)
    })
}

fn at(path: &Path, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}
