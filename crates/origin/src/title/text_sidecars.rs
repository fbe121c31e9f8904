//! Finds, reads and parses the text files beside a film or in the folder of its renditions. One
//! listing finds all text files, and each text file is read completely.

use crate::title::file_names::{INDEX_STEM_SUFFIX, display_name_of};
use crate::title::left_out::{LeftOutPart, UnreadTextLocation, read_text_file};
use crate::title::sidecar_name::{parse_sidecar_name, recognized_text_suffix};
use media::text::{
    CueList, CueProblem, TEXT_BYTES_MAX, TextRendition, decode_text, parse_srt, parse_ttml,
    parse_vtt,
};
use store::{Error, FolderEntry, Key, ObjectVersion, Store};

/// Maximum number of text files of a title. Further text files are left out.
const SIDECARS_MAX: usize = 64;
/// Maximum number of left-out text files that are reported by name. Further left-out files are only
/// counted.
const SURPLUS_NAMED_MAX: usize = 16;

/// The text files of a title, as found in a listing of the title's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextSidecarFiles {
    /// The files that are read.
    read: Vec<(Key, ObjectVersion)>,
    /// Names of the text files over the limit, which are not read.
    surplus: Vec<String>,
}

/// Lists the text files beside the film at `title`. Blocks.
///
/// # Errors
/// If the storage fails. If the storage cannot list files or denies the listing, the result is
/// empty.
pub(crate) fn find_text_beside(store: &Store, title: &Key) -> Result<TextSidecarFiles, Error> {
    let stem = display_name_of(title);
    let stem = stem.strip_suffix(INDEX_STEM_SUFFIX).unwrap_or(stem);
    let Some(folder) = title.parent() else {
        return Ok(TextSidecarFiles::default());
    };
    match store.list_prefixed(&folder, &format!("{stem}.")) {
        Ok(entries) => Ok(select_text_files(&folder, entries)),
        Err(Error::Unlisted | Error::Denied(_) | Error::NotFound | Error::Refused(_)) => {
            Ok(TextSidecarFiles::default())
        }
        Err(error) => Err(error),
    }
}

/// Selects the text files of a folder.
pub(crate) fn select_text_files(
    folder: &Key,
    entries: impl IntoIterator<Item = FolderEntry>,
) -> TextSidecarFiles {
    let text = entries
        .into_iter()
        .filter(|entry| recognized_text_suffix(&entry.name).is_some());
    let mut files = text.filter_map(|entry| Some((folder.child(&entry.name).ok()?, entry.file?)));
    TextSidecarFiles {
        read: files.by_ref().take(SIDECARS_MAX).collect(),
        surplus: files.map(|(key, _)| key.name().to_owned()).collect(),
    }
}

/// Reports the text files over the limit as left out.
fn report_surplus_files(surplus: &[String]) -> impl Iterator<Item = LeftOutPart> {
    let (named, counted) = surplus.split_at(surplus.len().min(SURPLUS_NAMED_MAX));
    let counted = (!counted.is_empty()).then(|| format!("{} more text files", counted.len()));
    named.iter().cloned().chain(counted).map(|name| {
        let reason = "a title may have at most 64 text files; remove others";
        LeftOutPart::new(name, reason.to_owned())
    })
}

/// Reads and parses the text files of a film that ends at `film_end_ms`. Appends the files that
/// cannot be read or parsed to `left_out`. Blocks.
pub(crate) fn read_text_sidecars(
    store: &Store,
    title: &Key,
    media: &[Key],
    text: &TextSidecarFiles,
    film_end_ms: i64,
    left_out: &mut Vec<LeftOutPart>,
) -> Vec<TextRendition> {
    let mut stems: Vec<&str> = media.iter().map(display_name_of).collect();
    stems.push(display_name_of(title));
    let stripped: Vec<&str> = stems
        .iter()
        .filter_map(|stem| stem.strip_suffix(INDEX_STEM_SUFFIX))
        .collect();
    stems.extend(stripped);
    let mut renditions = Vec::new();
    for (key, version) in &text.read {
        let name = key.name();
        match read_text_sidecar(store, key, version, &stems, film_end_ms) {
            Ok(new) => match LeftOutPart::from_broken_text(name, &new) {
                Some(broken) => left_out.push(broken),
                None => renditions.push(new),
            },
            Err(error) => {
                let unread = Some(UnreadTextLocation::TextFile(key.clone()));
                left_out.push(LeftOutPart::from_text_error(
                    name.to_owned(),
                    &error,
                    unread,
                ));
            }
        }
    }
    left_out.extend(report_surplus_files(&text.surplus));
    renditions
}

fn read_text_sidecar(
    store: &Store,
    key: &Key,
    version: &ObjectVersion,
    stems: &[&str],
    film_end_ms: i64,
) -> Result<TextRendition, Error> {
    if version.len > TEXT_BYTES_MAX {
        return Err(Error::Refused(
            "text files may have at most 16 MiB; shorten it",
        ));
    }
    let bytes = read_text_file(store, key)?;
    let mut problems = Vec::new();
    let name = parse_sidecar_name(key.name(), stems);
    let cues = parse_cues(key.name(), &bytes, film_end_ms, &mut problems);
    Ok(TextRendition {
        language: name.language,
        kind: name.kind,
        label: name.label,
        is_default: name.is_default,
        cues,
        source: key.name().to_owned(),
        problems,
    })
}

fn parse_cues(
    name: &str,
    bytes: &[u8],
    film_end_ms: i64,
    problems: &mut Vec<CueProblem>,
) -> CueList {
    let text = decode_text(bytes, problems);
    match recognized_text_suffix(name) {
        Some("srt") => parse_srt(&text, problems),
        Some("vtt") => parse_vtt(&text, problems),
        _ => parse_ttml(&text, film_end_ms, problems),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Options;

    #[test]
    fn text_files_beyond_the_maximum_are_left_out_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let cue = "1\n00:00:01,000 --> 00:00:02,000\na\n";
        for n in 0..SIDECARS_MAX + SURPLUS_NAMED_MAX + 3 {
            std::fs::write(folder.path().join(format!("film.{n:03}.en.srt")), cue).unwrap();
        }
        let store = Store::new(folder.path().to_str().unwrap(), Options::default()).unwrap();
        let title = Key::parse("film.mp4").unwrap();
        let found = find_text_beside(&store, &title).unwrap();
        let mut left_out = Vec::new();
        let texts = read_text_sidecars(
            &store,
            &title,
            std::slice::from_ref(&title),
            &found,
            1000,
            &mut left_out,
        );
        assert_eq!(texts.len(), SIDECARS_MAX);
        let parts: Vec<_> = left_out.iter().map(ToString::to_string).collect();
        assert_eq!(parts.len(), SURPLUS_NAMED_MAX + 1);
        let because = "because a title may have at most 64 text files; remove others";
        assert_eq!(parts[0], format!("left out: film.064.en.srt, {because}"));
        assert_eq!(
            parts[SURPLUS_NAMED_MAX],
            format!("left out: 3 more text files, {because}")
        );
    }

    #[test]
    fn text_files_that_cannot_be_read_are_left_out_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let cue = "1\n00:00:01,000 --> 00:00:02,000\na\n";
        std::fs::write(path("film.en.srt"), cue).unwrap();
        std::fs::write(path("film.de.srt"), cue).unwrap();
        std::fs::write(path("film.fr.srt"), "<html>").unwrap();
        let large = std::fs::File::create(path("film.es.srt")).unwrap();
        large.set_len(TEXT_BYTES_MAX + 1).unwrap();
        let store = Store::new(folder.path().to_str().unwrap(), Options::default()).unwrap();
        let title = Key::parse("film.mp4").unwrap();
        let found = find_text_beside(&store, &title).unwrap();
        std::fs::remove_file(path("film.de.srt")).unwrap();
        let mut left_out = Vec::new();
        let media = [title.clone()];
        let texts = read_text_sidecars(&store, &title, &media, &found, 1000, &mut left_out);
        let languages: Vec<_> = texts.iter().map(|text| &*text.language).collect();
        assert_eq!(languages, ["en"]);
        let mut parts: Vec<_> = left_out.iter().map(ToString::to_string).collect();
        parts.sort();
        assert_eq!(
            parts,
            [
                "left out: film.de.srt, because it cannot be read: there is no such file; make it readable for the server",
                "left out: film.es.srt, because text files may have at most 16 MiB; shorten it",
                "left out: film.fr.srt, because no cue of it could be parsed; export it again as WebVTT or SRT",
            ]
        );
    }
}
