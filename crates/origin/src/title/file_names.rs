//! Recognises media, server manifests and index MP4s by their file names.

use store::Key;

/// Suffixes of media files.
pub(crate) const MEDIA_SUFFIXES: [&str; 11] = [
    "mp4", "m4v", "m4a", "mov", "cmfv", "cmfa", "ismv", "isma", "mp4a", "f4v", "3gp",
];

/// Maximum number of files of a title.
pub(crate) const FILES_MAX: usize = 64;
/// Returns whether a file with this name is part of a film.
pub(crate) fn is_media(name: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| {
        MEDIA_SUFFIXES
            .iter()
            .any(|known| suffix.eq_ignore_ascii_case(known))
    })
}

/// Returns whether a file with this name is a server manifest.
pub(crate) fn is_server_manifest(name: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("ism"))
}

/// Returns whether a file with this name is probably an index MP4. `headwater index` and the
/// documentation of Unified Origin (`film-dref.mp4`) use such names. The result only determines how
/// many bytes are read at once.
pub(crate) fn is_likely_index_mp4(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let named = stem.ends_with(INDEX_STEM_SUFFIX) || stem.to_ascii_lowercase().contains("dref");
    named && is_media(name)
}

/// Suffix of an index MP4's file name, before the extension `.mp4`.
pub(crate) const INDEX_STEM_SUFFIX: &str = "-index";

/// Returns the last component of a path, without the suffix of a media file or server manifest.
pub(crate) fn display_name_of(key: &Key) -> &str {
    let name = key.name();
    if is_media(name) || is_server_manifest(name) {
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::is_likely_index_mp4 as like;

    #[test]
    fn names_of_index_mp4s() {
        assert!(like("film-index.mp4") && like("tos-Dref.mp4") && like("dref_video.mp4"));
        for other in ["film.mp4", "film-index.ism", "index.mp4", "film-index", ""] {
            assert!(!like(other), "{other}");
        }
    }
}
