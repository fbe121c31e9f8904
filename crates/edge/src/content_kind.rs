//! Kinds of content. They are the labels of the duration histograms.

use ContentKind::{Image, Init, Manifest, Other, Playlist, Segment, Text};

/// The kind of content. The edge derives the kind from the path, because the origin may be any HTTP
/// server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    Segment,
    Init,
    Text,
    Playlist,
    Manifest,
    Image,
    Other,
}

/// The labels of the kinds, in the order of [`ContentKind`]. If `headwater origin` has the same
/// kind, it uses the same label.
pub const CONTENT_KINDS: &[&str] = &[
    "segment", "init", "text", "playlist", "mpd", "image", "other",
];

/// File name suffixes in order of decreasing frequency.
const SUFFIXES: [(&str, ContentKind); 25] = [
    ("m4s", Segment),
    ("ts", Segment),
    ("m3u8", Playlist),
    ("mpd", Manifest),
    ("mp4", Segment),
    ("m4v", Segment),
    ("m4a", Segment),
    ("m4f", Segment),
    ("cmfv", Segment),
    ("cmfa", Segment),
    ("cmft", Text),
    ("vtt", Text),
    ("webvtt", Text),
    ("ttml", Text),
    ("srt", Text),
    ("aac", Segment),
    ("ac3", Segment),
    ("ec3", Segment),
    ("mp3", Segment),
    ("webm", Segment),
    ("jpg", Image),
    ("jpeg", Image),
    ("png", Image),
    ("webp", Image),
    ("avif", Image),
];

/// Start of the name of the folder in which Headwater serves the segments of a text rendition.
const TEXT_FOLDER: &str = "/text=";

impl ContentKind {
    /// Classifies a path without a query. Does not allocate memory.
    pub fn from_path(path: &str) -> ContentKind {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        let Some((stem, suffix)) = name.rsplit_once('.') else {
            // A manifest of Smooth Streaming has no suffix (MS-SSTR section 2.2.1).
            let is_smooth = name.eq_ignore_ascii_case("manifest");
            return if is_smooth { Manifest } else { Other };
        };
        let is_known = |(known, _): &&(&str, ContentKind)| known.eq_ignore_ascii_case(suffix);
        match SUFFIXES.iter().find(is_known) {
            Some((_, Segment)) if is_init_segment_name(stem) => Init,
            Some((_, Segment)) if path.contains(TEXT_FOLDER) => Text,
            Some((_, kind)) => *kind,
            None => Other,
        }
    }
}

/// Returns whether a file name contains the word `init`. Common packagers use names like `init`,
/// `init-stream0` and `video_init`.
fn is_init_segment_name(stem: &str) -> bool {
    let mut words = stem.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| word.eq_ignore_ascii_case("init"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_classified_by_the_name_of_its_file() {
        for (path, label) in [
            ("/a.mp4/6000-9f/video=1/45.m4s", "segment"),
            ("/a.mp4/6000-9f/video=1/45.ts", "segment"),
            ("/a/SEG-1.TS", "segment"),
            ("/a/initial.mp4", "segment"),
            ("/a.mp4/6000-9f/video=1/init.mp4", "init"),
            ("/a/init-stream0.m4s", "init"),
            ("/a/video_1_init.mp4", "init"),
            ("/a.mp4/t-9f/text=en/45.vtt", "text"),
            ("/a.mp4/t-9f/text=en/45.imsc.m4s", "text"),
            ("/a.mp4/t-9f/text=en/init.imsc.mp4", "init"),
            ("/a.mp4/.m3u8", "playlist"),
            ("/a.mp4/.mpd", "mpd"),
            ("/a.ism/Manifest", "mpd"),
            ("/poster.JPG", "image"),
            ("/a.mp4/.json", "other"),
            ("/a.mp4/", "other"),
            ("/healthz", "other"),
            ("", "other"),
        ] {
            let kind = ContentKind::from_path(path);
            assert_eq!(CONTENT_KINDS[kind as usize], label, "{path}");
        }
    }
}
