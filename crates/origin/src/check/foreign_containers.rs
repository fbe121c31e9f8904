//! Recognizes files in containers other than MP4 by name or by content, and provides the commands
//! that convert them to MP4.

use super::remedies::quote_for_shell;

/// File name suffixes of containers whose streams can usually be copied into MP4 unchanged.
const REMUXED: [&str; 6] = ["mkv", "webm", "ts", "m2ts", "mts", "flv"];
/// File name suffixes of containers whose streams usually must be encoded again for MP4.
const ENCODED: [&str; 12] = [
    "avi", "mpg", "mpeg", "vob", "wmv", "asf", "mxf", "ogv", "ogm", "rm", "rmvb", "divx",
];

/// Number of bytes at the start of a file that identify its container.
pub(super) const SIGNATURE_BYTES: u64 = 12;

/// The way in which a file is converted to MP4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mp4Conversion {
    Remux,
    Encode,
}

/// A file that is not served although it may contain a film.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct IgnoredFile {
    /// The file's path relative to the target.
    pub(crate) file: String,
    /// The reason why the file is ignored. The reason is printed after the file name.
    pub(crate) reason: &'static str,
    /// The remedy, such as the command that converts the file to MP4.
    pub(crate) fix: String,
}

impl IgnoredFile {
    /// Returns an entry for a file whose name has the suffix of a container other than MP4.
    pub(crate) fn from_foreign_container(path: &str) -> Option<IgnoredFile> {
        let (_, suffix) = path.rsplit_once('.')?;
        let has = |all: &[&str]| all.iter().any(|one| suffix.eq_ignore_ascii_case(one));
        let conversion = match () {
            () if has(&REMUXED) => Mp4Conversion::Remux,
            () if has(&ENCODED) => Mp4Conversion::Encode,
            () => return None,
        };
        Some(IgnoredFile {
            file: path.to_owned(),
            reason: "is not MP4",
            fix: conversion_command(path, conversion),
        })
    }

    /// Creates an entry for a symbolic link that leads out of the library.
    pub(crate) fn from_outside_link(path: &str) -> IgnoredFile {
        IgnoredFile {
            file: path.to_owned(),
            reason: "is a link out of the library",
            fix: "allow it with --follow-links, or move the file".to_owned(),
        }
    }

    /// Returns the file, the reason and the remedy in one line.
    pub(crate) fn describe_ignored_file(&self) -> String {
        format!("{} {}; {}", self.file, self.reason, self.fix)
    }
}

/// Returns the name of the container that the first bytes of a file identify, and the remedy.
/// `None` if the container is unknown.
pub(super) fn recognize_container(path: &str, first: &[u8]) -> Option<(&'static str, String)> {
    let (name, conversion) = match first {
        [0x1a, 0x45, 0xdf, 0xa3, ..] => ("Matroska or WebM", Mp4Conversion::Remux),
        [0x47, ..] => ("an MPEG transport stream", Mp4Conversion::Remux),
        [b'F', b'L', b'V', ..] => ("FLV", Mp4Conversion::Remux),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', ..] => {
            ("AVI", Mp4Conversion::Encode)
        }
        [b'O', b'g', b'g', b'S', ..] => ("Ogg", Mp4Conversion::Encode),
        [0, 0, 1, 0xba, ..] => ("an MPEG program stream", Mp4Conversion::Encode),
        [0x30, 0x26, 0xb2, 0x75, ..] => ("Windows Media", Mp4Conversion::Encode),
        _ => return None,
    };
    Some((name, conversion_command(path, conversion)))
}

fn conversion_command(path: &str, conversion: Mp4Conversion) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    // If the file name already ends in `.mp4`, the converted file needs another name.
    let out = match name.rsplit_once('.') {
        Some((_, suffix)) if suffix.eq_ignore_ascii_case("mp4") => format!("{stem}-remuxed.mp4"),
        _ => format!("{stem}.mp4"),
    };
    let (input, out) = (quote_for_shell(name), quote_for_shell(&out));
    match conversion {
        Mp4Conversion::Remux => {
            format!("remux with `ffmpeg -i {input} -c copy -movflags +faststart {out}`")
        }
        Mp4Conversion::Encode => format!(
            "encode with `ffmpeg -i {input} -c:v libx264 -c:a aac -movflags +faststart {out}`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_containers_are_recognized_by_name() {
        let found = IgnoredFile::from_foreign_container("a/My film.MKV").unwrap();
        assert_eq!(
            found.fix,
            "remux with `ffmpeg -i 'My film.MKV' -c copy -movflags +faststart 'My film.mp4'`"
        );
        assert!(
            IgnoredFile::from_foreign_container("b.avi")
                .unwrap()
                .fix
                .contains("libx264")
        );
        for other in ["film.mp4", "notes.txt", "mkv", "film.srt"] {
            assert_eq!(IgnoredFile::from_foreign_container(other), None, "{other}");
        }
    }

    #[test]
    fn other_containers_are_recognized_by_content() {
        let matroska = [0x1a, 0x45, 0xdf, 0xa3, 0, 0];
        let (name, fix) = recognize_container("a/x.mp4", &matroska).unwrap();
        assert_eq!(name, "Matroska or WebM");
        assert!(
            fix.contains("-i x.mp4") && fix.contains("x-remuxed.mp4"),
            "{fix}"
        );
        assert!(recognize_container("x.mp4", b"\0\0\0\x18ftypisom").is_none());
        assert!(recognize_container("x.mp4", b"").is_none());
    }
}
