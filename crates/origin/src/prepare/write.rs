//! From media files to index MP4s and a server manifest, which are written to this machine's disk.

use super::relative::relative;
use super::sources::{Lies, Medium, media, title_of};
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
use store::Key;

/// What is to be written.
pub(super) struct Wanted {
    /// Media files, or folders of them: paths, or URLs as a library has them.
    pub(super) sources: Vec<String>,
    /// How URLs are read.
    pub(super) storage: store::Options,
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
    let media = media(&wanted.sources, &wanted.storage)?;
    fs::create_dir_all(&wanted.out).map_err(|e| at(&wanted.out, e))?;
    let out = wanted.out.canonicalize().map_err(|e| at(&wanted.out, e))?;
    let mut names = HashSet::new();
    let (mut files, mut indexes) = (Vec::new(), Vec::new());
    for medium in &media {
        let shown = &medium.shown;
        let Some(index) = indexed(medium)? else {
            eprintln!("headwater index: {shown}: passed over, an index MP4");
            continue;
        };
        let media = named(medium, base.as_deref(), &out)?;
        let bytes = mp4::index_file(&index, &media).map_err(|e| format!("{shown}: {e}"))?;
        let name = name(medium, &mut names)?;
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

/// The index of a file; `None` if it is an index MP4.
fn indexed(medium: &Medium) -> Result<Option<Index>, String> {
    let wrong = |e: net::Error| format!("{}: {}", medium.shown, e.context);
    match indexer::index(&Key::ROOT, &medium.open()?).map_err(wrong)? {
        Indexed::Film(index) => Ok(Some(index)),
        Indexed::References(_) => Ok(None),
    }
}

/// How an index MP4 in the folder `out` names its media.
fn named(medium: &Medium, base: Option<&str>, out: &Path) -> Result<String, String> {
    let own = reference::escaped(medium.name()?);
    Ok(match (base, &medium.lies) {
        (Some(base), _) => format!("{base}{own}"),
        (None, Lies::Disk(path)) => {
            let path = relative(out, path).ok_or_else(|| at(path, "a path that is not UTF-8"))?;
            reference::escaped(&path)
        }
        (None, Lies::Below(folder)) if is_web(folder) => format!("{folder}/{own}"),
        // No index MP4 can name a bucket: it is served from beside the media.
        (None, Lies::Below(_)) => own,
    })
}

/// Whether an index MP4 can name it by its URL.
fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// `film.mp4` becomes `film-index.mp4`; where that is taken, `film-mp4-index.mp4`.
fn name(medium: &Medium, taken: &mut HashSet<String>) -> Result<String, String> {
    let name = medium.name()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let whole = name.replace('.', "-");
    let mut tries = [stem, &whole]
        .map(|name| format!("{name}{INDEX_STEM_END}.mp4"))
        .into_iter();
    let free = tries.find(|name| taken.insert(name.clone()));
    let taken = "another SOURCE of this name is in the title already";
    free.ok_or_else(|| format!("{}: {taken}", medium.shown))
}

fn manifest_name(wanted: &Wanted) -> Result<String, String> {
    let given = match (&wanted.name, wanted.sources.first()) {
        (Some(name), _) => name.clone(),
        (None, Some(first)) => title_of(first)?,
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

pub(super) fn at(path: &Path, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}
