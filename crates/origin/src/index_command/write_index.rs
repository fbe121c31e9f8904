//! Writes index MP4s and a server manifest to the local disk.

use super::media_files::{MediaFile, MediaLocation, default_title_name, find_media_files};
use super::relative_path::relative_path;
use super::subsamples;
use crate::title::file_names;
use crate::title::file_names::INDEX_STEM_SUFFIX;
use crate::title::indexer::{self, MediaOrReferences};
use crate::title::references::{self, AllowedUrlPrefix};
use media::index::Index;
use media::{ism, mp4};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use store::Key;

/// Arguments of `headwater index`.
pub(super) struct IndexArguments {
    /// Paths or URLs of media files, or of folders with media files.
    pub(super) sources: Vec<String>,
    /// Storage settings.
    pub(super) storage: store::Options,
    /// Output folder.
    pub(super) out: PathBuf,
    /// Name of the server manifest, with or without `.ism`.
    pub(super) name: Option<String>,
    /// URL prefix of the references to the media. `None` if the references are derived from the
    /// location of the media.
    pub(super) base: Option<String>,
    /// Whether the index MP4s contain the subsamples of the video.
    pub(super) has_subsamples: bool,
}

/// The written files.
#[derive(Serialize)]
pub(super) struct IndexCommandOutput {
    /// The server manifest.
    pub(super) manifest: PathBuf,
    /// The index MP4s.
    pub(super) files: Vec<WrittenFile>,
}

/// An index MP4.
#[derive(Serialize)]
pub(super) struct WrittenFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// Reference to the media file, as the index MP4 contains it.
    pub(super) media: String,
    pub(super) media_bytes: u64,
}

/// Writes all files. Each file appears complete or not at all. The server manifest is written last.
pub(super) fn write_index_files(wanted: &IndexArguments) -> Result<IndexCommandOutput, String> {
    let base = wanted
        .base
        .as_deref()
        .map(parse_media_base_url)
        .transpose()?;
    let media = find_media_files(&wanted.sources, &wanted.storage)?;
    fs::create_dir_all(&wanted.out)
        .map_err(|e| error_at_path(&wanted.out, net::describe_io_error(&e)))?;
    let out = wanted
        .out
        .canonicalize()
        .map_err(|e| error_at_path(&wanted.out, e))?;
    let mut names = HashSet::new();
    let (mut files, mut indexes) = (Vec::new(), Vec::new());
    for medium in &media {
        let shown = &medium.display_name;
        let Some(index) = index_media(medium, wanted.has_subsamples)? else {
            eprintln!("headwater index: {shown}: skipped, it is an index MP4");
            continue;
        };
        let media = media_reference(medium, base.as_deref(), &out)?;
        let bytes = mp4::write_index_mp4(&index, &media).map_err(|e| format!("{shown}: {e}"))?;
        let name = index_file_name(medium, &mut names)?;
        write_atomically(&out.join(&name), &bytes)?;
        files.push(WrittenFile {
            path: wanted.out.join(&name),
            bytes: bytes.len() as u64,
            media,
            media_bytes: index.file_len,
        });
        indexes.push((references::escape_path(&name), index));
    }
    if files.is_empty() {
        let known = file_names::MEDIA_SUFFIXES.join(", ");
        return Err(format!("no film found; media files end in {known}"));
    }
    let manifest = server_manifest_name(wanted)?;
    let both = indexes.iter().map(|(name, index)| (name.as_str(), index));
    write_atomically(
        &out.join(&manifest),
        ism::write_server_manifest(both).as_bytes(),
    )?;
    Ok(IndexCommandOutput {
        manifest: wanted.out.join(manifest),
        files,
    })
}

/// Checks the URL of `--base`. Returns the URL with a slash at its end, so that a file name can be
/// appended.
fn parse_media_base_url(url: &str) -> Result<String, String> {
    AllowedUrlPrefix::parse_prefix(url).map_err(|bad| format!("--base {url}: {bad}"))?;
    let slash = if url.ends_with('/') { "" } else { "/" };
    Ok(format!("{url}{slash}"))
}

/// Indexes a media file; `None` if the file itself is an index MP4.
///
/// # Errors
/// A message that names the file and the reason.
fn index_media(medium: &MediaFile, has_subsamples: bool) -> Result<Option<Index>, String> {
    let wrong = |e: net::Error| format!("{}: {}", medium.display_name, e.context);
    let object = medium.open_file()?;
    let mut index = match indexer::index_file(&Key::ROOT, &object).map_err(wrong)? {
        MediaOrReferences::Media(index) => index,
        MediaOrReferences::References(_) => return Ok(None),
    };
    if has_subsamples {
        let added = subsamples::add_subsamples_to_index(&mut index, &object);
        added.map_err(|why| format!("{}: --subsamples: {why}", medium.display_name))?;
    }
    Ok(Some(index))
}

/// Returns the reference to the media, for an index MP4 that is stored in the folder `out`.
fn media_reference(medium: &MediaFile, base: Option<&str>, out: &Path) -> Result<String, String> {
    let media_name = references::escape_path(medium.file_name()?);
    Ok(match (base, &medium.location) {
        (Some(base), _) => format!("{base}{media_name}"),
        (None, MediaLocation::OnDisk(path)) => {
            let path = relative_path(out, path)
                .ok_or_else(|| error_at_path(path, "the path is not UTF-8"))?;
            references::escape_path(&path)
        }
        (None, MediaLocation::InStore(folder)) if is_web_url(folder) => {
            format!("{folder}/{media_name}")
        }
        // An index MP4 cannot refer to a bucket. It must therefore be stored in the folder of the
        // media, where the file name is enough.
        (None, MediaLocation::InStore(_)) => media_name,
    })
}

/// Returns whether an index MP4 can refer to the media by this URL.
fn is_web_url(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Returns `film-index.mp4` for `film.mp4`. If `film-index.mp4` is taken, returns
/// `film-mp4-index.mp4`.
fn index_file_name(medium: &MediaFile, taken: &mut HashSet<String>) -> Result<String, String> {
    let name = medium.file_name()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let long_stem = name.replace('.', "-");
    let mut candidates = [stem, &long_stem]
        .map(|name| format!("{name}{INDEX_STEM_SUFFIX}.mp4"))
        .into_iter();
    let free = candidates.find(|name| taken.insert(name.clone()));
    let taken = "another SOURCE has the same name";
    free.ok_or_else(|| format!("{}: {taken}", medium.display_name))
}

fn server_manifest_name(wanted: &IndexArguments) -> Result<String, String> {
    let given = match (&wanted.name, wanted.sources.first()) {
        (Some(name), _) => name.clone(),
        (None, Some(first)) => default_title_name(first)?,
        (None, None) => String::new(),
    };
    let stem = given.strip_suffix(".ism").unwrap_or(&given);
    let name = format!("{stem}.ism");
    match Key::parse(&name) {
        Ok(key) if key.parent().is_some_and(|folder| folder.is_root()) && !stem.is_empty() => {
            Ok(name)
        }
        _ => Err(format!(
            "--name {given:?}: expected a file name without a folder"
        )),
    }
}

/// Replaces a file atomically, so that readers see either the old or the new content.
fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let part = path.with_extension(format!("part{}", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|e| {
        // Ignores the error, because the temporary file may not exist yet.
        let _ = fs::remove_file(&part);
        error_at_path(path, net::describe_io_error(&e))
    })
}

pub(super) fn error_at_path(path: &Path, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}
