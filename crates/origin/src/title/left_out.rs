//! Tracks and files of a title that are not served, each with the reason.

use crate::title::file_names::display_name_of;
use crate::title::stores::{FileLocation, MediaStores};
use bytes::Bytes;
use http::StatusCode;
use media::presentation::Presentation;
use media::text::{CueProblem, TEXT_BYTES_MAX, TextRendition};
use serde::Serialize;
use std::fmt;
use std::ops::Range;
use store::{Error, Key, Object, RequestReason, Store};

/// A track or file that is not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOutPart {
    /// File name and track, such as `film.mp4, track 3 (text, tx3g)`.
    pub(crate) name: String,
    /// The reason, in a form that can follow the word "because".
    pub(crate) reason: String,
    /// Text that the storage could not deliver, if any. The server reads this text again later,
    /// because the failure may be temporary, or the missing file may be stored later.
    #[serde(skip)]
    pub(crate) unread: Option<UnreadTextLocation>,
}

/// Bytes that the storage could not deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnreadTextLocation {
    /// A complete text file.
    TextFile(Key),
    /// A file that a server manifest names.
    NamedFile(FileLocation),
    /// A range of a film.
    Range {
        /// Position of the film among the files of the title.
        file_index: usize,
        range: Range<u64>,
    },
}

impl UnreadTextLocation {
    /// Returns whether the bytes can be read now. `films` are the open files of the title. Blocks
    /// the thread.
    pub(crate) fn is_readable<'a>(
        &self,
        stores: &MediaStores,
        mut films: impl Iterator<Item = &'a Object>,
    ) -> bool {
        match self {
            UnreadTextLocation::TextFile(key) => read_text_file(stores.library(), key).is_ok(),
            UnreadTextLocation::NamedFile(place) => stores.open_file(place).is_ok(),
            UnreadTextLocation::Range { file_index, range } => films
                .nth(*file_index)
                .is_some_and(|film| film.read(range.clone(), RequestReason::Text).is_ok()),
        }
    }
}

/// Reads a complete text file. Blocks the thread.
pub(crate) fn read_text_file(store: &Store, key: &Key) -> Result<Bytes, Error> {
    let object = store.open_whole(key)?;
    object.read(0..object.len().min(TEXT_BYTES_MAX), RequestReason::Index)
}

/// Returns whether an error is a failure of the storage, which may be temporary. A missing file is
/// not such a failure.
fn is_storage_failure(error: &Error) -> bool {
    matches!(
        error,
        Error::Denied(_) | Error::Slow(_) | Error::Broken(_) | Error::Io(_)
    )
}

impl LeftOutPart {
    /// Creates a part that is not served until the title's files change.
    pub(crate) fn new(name: String, reason: String) -> LeftOutPart {
        LeftOutPart {
            name,
            reason,
            unread: None,
        }
    }

    /// Describes text that cannot be read. The details of a storage failure appear only in the log,
    /// because viewers must not see these details. If the storage failed, `unread` is read again
    /// later.
    pub(crate) fn from_text_error(
        name: String,
        error: &Error,
        unread: Option<UnreadTextLocation>,
    ) -> LeftOutPart {
        tracing::warn!(name, %error, "cannot read text");
        let reason = match error {
            // The reason already contains a remedy.
            Error::Refused(why) if why.contains("; ") => (*why).to_owned(),
            Error::Denied(_) | Error::Slow(_) | Error::Broken(_) => {
                "its storage failed; check the storage".to_owned()
            }
            error => format!("it cannot be read: {error}; make it readable for the server"),
        };
        LeftOutPart {
            name,
            reason,
            unread: unread.filter(|_| is_storage_failure(error)),
        }
    }

    /// Describes a text file that cannot be opened although a server manifest names it.
    pub(crate) fn from_manifest_text_error(
        place: &FileLocation,
        error: &net::Error,
    ) -> LeftOutPart {
        let name = place.key.name().to_owned();
        tracing::warn!(name, %error, "cannot read text");
        // A missing file may be stored later.
        let unread = error.status.is_server_error() || error.status == StatusCode::NOT_FOUND;
        let unread = unread.then(|| UnreadTextLocation::NamedFile(place.clone()));
        let reason = match error.status {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => format!("{error}; export it again"),
            StatusCode::NOT_FOUND => {
                "there is no such file; store it or correct the manifest".to_owned()
            }
            _ => "its storage failed; check the storage".to_owned(),
        };
        LeftOutPart {
            name,
            reason,
            unread,
        }
    }

    /// Describes text that is malformed and contains no valid cue. Returns `None` for other text.
    pub(crate) fn from_broken_text(name: &str, text: &TextRendition) -> Option<LeftOutPart> {
        let mut problems = text.problems.iter();
        let is_broken = text.cues.cues().is_empty()
            && problems.any(|problem| matches!(problem, CueProblem::Malformed(_)));
        let reason = "no cue of it could be parsed; export it again as WebVTT or SRT";
        is_broken.then(|| LeftOutPart::new(name.to_owned(), reason.to_owned()))
    }
}

impl fmt::Display for LeftOutPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "left out: {}, because {}", self.name, self.reason)
    }
}

/// Suffixes of text files in formats that are not supported.
const UNSUPPORTED_TEXT_SUFFIXES: [&str; 10] = [
    "webvtt", "itt", "ass", "ssa", "sub", "idx", "sbv", "smi", "scc", "stl",
];
/// Maximum number of text files that are listed for a title.
const SIDECARS_MAX: usize = 64;

/// Lists the tracks of a presentation that are not served. `file_names` is in the order of
/// [`Presentation::files`].
pub(crate) fn list_left_out_tracks(
    presentation: &Presentation,
    file_names: &[&str],
) -> Vec<LeftOutPart> {
    let named = presentation.left_out.iter().map(|(file, track)| {
        let name = match file_names.get(*file) {
            Some(file) => format!("{file}, {}", track.name),
            None => track.name.clone(),
        };
        LeftOutPart::new(name, track.reason.clone())
    });
    named.collect()
}

/// Lists the text files of a title in formats that are not supported. If the title is a folder,
/// these text files are in the folder. If the title is a file, the text files are in the same
/// folder as the film, and their names start with the name of the film and a dot. Blocks the
/// thread.
///
/// Remote libraries are not searched, because a listing would cost a request.
pub(crate) fn list_unsupported_sidecars(store: &Store, title: &Key) -> Vec<LeftOutPart> {
    if store.is_remote() {
        return Vec::new();
    }
    let is_file = matches!(store.look_up(title), Ok(Some(_)));
    let prefix = format!("{}.", display_name_of(title));
    let (folder, prefix) = match title.parent().filter(|_| is_file) {
        Some(folder) => (folder, prefix.as_str()),
        None => (title.clone(), ""),
    };
    // Ignores the error, because reading the title's own files reports the same error.
    let entries = store.list_folder(&folder).unwrap_or_default();
    let texts = entries
        .into_iter()
        .filter(|entry| entry.file.is_some() && entry.name.starts_with(prefix));
    let texts = texts
        .filter(|entry| is_unsupported_text(&entry.name))
        .take(SIDECARS_MAX);
    let reason = "this format of text is not supported; convert it to WebVTT or SRT";
    texts
        .map(|entry| LeftOutPart::new(entry.name, reason.to_owned()))
        .collect()
}

fn is_unsupported_text(name: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| {
        let is = |known: &&str| suffix.eq_ignore_ascii_case(known);
        UNSUPPORTED_TEXT_SUFFIXES.iter().any(is)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Options;

    fn names_beside(files: &[&str], title: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let place = folder.path().to_str().unwrap();
        let store = Store::new(place, Options::default()).unwrap();
        let parts = list_unsupported_sidecars(&store, &Key::parse(title).unwrap());
        parts.into_iter().map(|part| part.name).collect()
    }

    #[test]
    fn text_files_beside_a_film_are_left_out() {
        let files = [
            "a/film.mp4",
            "a/film.en.ass",
            "a/film.de.SCC",
            "a/film.fr.srt",
            "a/film2.ass",
            "a/film.jpg",
            "a/other.ass",
        ];
        assert_eq!(
            names_beside(&files, "a/film.mp4"),
            ["film.de.SCC", "film.en.ass"]
        );
        assert_eq!(
            names_beside(&["film.mp4", "film.ass"], "film.mp4"),
            ["film.ass"]
        );
    }

    #[test]
    fn text_files_in_the_folder_of_a_title_are_left_out() {
        let files = ["film/v1.mp4", "film/en.ass", "film/sub/de.ass", "de.ass"];
        assert_eq!(names_beside(&files, "film"), ["en.ass"]);
    }

    #[test]
    fn text_that_is_left_out_has_a_reason_and_a_remedy_but_no_address_of_the_storage() {
        let reason_of =
            |error| LeftOutPart::from_text_error("film.en.srt".into(), &error, None).reason;
        let why = "it would need many requests; store it as a file beside the film";
        assert_eq!(reason_of(Error::Refused(why)), why);
        let failed = reason_of(Error::Broken("https://storage.internal/ failed".into()));
        assert_eq!(failed, "its storage failed; check the storage");
        let denied = reason_of(Error::Refused("permission denied by the storage"));
        assert!(
            denied.ends_with("make it readable for the server"),
            "{denied}"
        );
        let missing = reason_of(Error::NotFound);
        assert!(
            missing.contains("no such file; make it readable"),
            "{missing}"
        );
    }

    #[test]
    fn an_entry_names_part_and_reason() {
        let part = LeftOutPart::new(
            "film.en.ass".to_owned(),
            "this format of text is not supported; convert it to WebVTT or SRT".to_owned(),
        );
        assert_eq!(
            part.to_string(),
            "left out: film.en.ass, because this format of text is not supported; convert it to WebVTT or SRT"
        );
    }
}
