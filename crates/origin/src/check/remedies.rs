//! Remedies for titles that cannot be packaged. Each kind of fault has its own remedy.

use super::foreign_containers::recognize_container;

/// Option of ffmpeg for a key frame every two seconds, at any frame rate.
const KEY_FRAMES: &str = "-force_key_frames 'expr:gte(t,n_forced*2)'";

/// A kind of fault. An error is of this kind if its message contains one of the fragments.
struct FaultRemedy {
    fragments: &'static [&'static str],
    /// The remedy, in which `IN` and `OUT` are replaced by the names of the input file and the
    /// output file. `KEYS` is replaced by `KEY_FRAMES`.
    remedy: &'static str,
}

/// The kinds of faults. The first kind that matches is used.
const FAULT_KINDS: &[FaultRemedy] = &[
    FaultRemedy {
        fragments: &["is already encrypted"],
        remedy: "serve the unencrypted film; Headwater encrypts it itself with --aes-secret",
    },
    FaultRemedy {
        fragments: &["encode the video as"],
        remedy: "`ffmpeg -i IN -c:v libx264 KEYS -c:a copy -movflags +faststart OUT`",
    },
    FaultRemedy {
        fragments: &["encode the audio as", "encode it as AAC"],
        remedy: "`ffmpeg -i IN -c:v copy -c:a aac -movflags +faststart OUT`",
    },
    FaultRemedy {
        fragments: &["the file is empty"],
        remedy: "copy the film again; the last copy stopped at its start",
    },
    FaultRemedy {
        fragments: &["an initialization segment without its media"],
        remedy: "append its media segments: `cat IN SEGMENTS > OUT`; alone, it only describes the tracks",
    },
    FaultRemedy {
        fragments: &[
            "the initialization segment is missing",
            "fragments come before the moov",
        ],
        remedy: "put the initialization segment in front: `cat init.mp4 IN > OUT`",
    },
    FaultRemedy {
        fragments: &["there is no moov box"],
        remedy: "record or export the film again; without the moov box no tool can restore it",
    },
    FaultRemedy {
        fragments: &["but the file ends at byte", "bytes, but only"],
        remedy: "copy or download the film again; its end is missing",
    },
    FaultRemedy {
        fragments: &["no sync samples", "between two key frames"],
        remedy: "`ffmpeg -i IN -c:v libx264 KEYS -c:a copy -movflags +faststart OUT`",
    },
    FaultRemedy {
        fragments: &[
            "sample entries",
            "sample entry",
            "without edits",
            "changes the speed",
        ],
        remedy: "`ffmpeg -i IN -c:v libx264 KEYS -c:a aac -movflags +faststart OUT`",
    },
    FaultRemedy {
        fragments: &[
            "has changed; index it again",
            "refers to",
            "is not followed",
        ],
        remedy: "write the index again with `headwater index`, and keep it beside its media",
    },
    FaultRemedy {
        fragments: &["permission denied"],
        remedy: "make the file readable: `chmod +r IN`",
    },
    FaultRemedy {
        fragments: &["the storage", "credentials", "TLS with"],
        remedy: "check the address and the credentials, then check again",
    },
];

const OTHER_REMEDY: &str = "export the film again; if that is impossible, \
     `ffmpeg -i IN -c copy -movflags +faststart OUT` writes a new container";

/// Returns the text of an error, and the remedy. `first` contains the first bytes of the file.
pub(super) fn choose_remedy(path: &str, error: String, first: &[u8]) -> (String, String) {
    if error.contains("not an MP4") {
        return match recognize_container(path, first) {
            Some((name, fix)) => (format!("this is {name}, not MP4"), fix),
            None => {
                let fix = "run `ffprobe IN`: it shows whether the file is a film at all";
                (error, fill_remedy_placeholders(fix, path))
            }
        };
    }
    let matches = |kind: &&FaultRemedy| kind.fragments.iter().any(|text| error.contains(text));
    let kind = FAULT_KINDS.iter().find(matches);
    let fix = fill_remedy_placeholders(kind.map_or(OTHER_REMEDY, |kind| kind.remedy), path);
    (error, fix)
}

/// Replaces the placeholders of a remedy. The inserted texts are not searched for placeholders,
/// because a file name may contain `IN`.
fn fill_remedy_placeholders(remedy: &str, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let values = [
        ("KEYS", KEY_FRAMES.to_owned()),
        ("OUT", quote_for_shell(&format!("{stem}-fixed.mp4"))),
        ("IN", quote_for_shell(name)),
    ];
    let mut filled = String::new();
    let mut rest = remedy;
    let find_next = |rest: &str| {
        let found = values.iter().filter_map(|(placeholder, value)| {
            let start = rest.find(placeholder)?;
            Some((start, start + placeholder.len(), value))
        });
        found.min_by_key(|(start, ..)| *start)
    };
    while let Some((start, end, value)) = find_next(rest) {
        filled.push_str(&rest[..start]);
        filled.push_str(value);
        rest = &rest[end..];
    }
    filled + rest
}

/// Quotes a file name for a shell, if quotes are needed.
pub(super) fn quote_for_shell(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    if name.chars().all(plain) && !name.starts_with('-') {
        return name.to_owned();
    }
    // If a name starts with a dash, `./` in front of the name prevents a program from reading the
    // name as an option.
    let folder = if name.starts_with('-') { "./" } else { "" };
    format!("'{folder}{}'", name.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: for the file `MAIN.mp4`, the remedy named the output file
    /// `MAMAIN.mp4-fixed.mp4`.
    #[test]
    fn names_of_files_contain_no_placeholders() {
        let filled = fill_remedy_placeholders("ffmpeg -i IN KEYS OUT", "films/MAIN-KEYS-OUT.mp4");
        let expected = format!("ffmpeg -i MAIN-KEYS-OUT.mp4 {KEY_FRAMES} MAIN-KEYS-OUT-fixed.mp4");
        assert_eq!(filled, expected);
    }

    #[test]
    fn each_kind_of_fault_has_its_own_remedy() {
        let cases = [
            (
                "track 1: codec encv is already encrypted; use the unencrypted file",
                "--aes-secret",
            ),
            (
                "codec mp4v …; encode the video as AVC",
                "-c:v libx264 -force_key_frames",
            ),
            (
                "codec sowt …; encode the audio as AAC",
                "-c:v copy -c:a aac",
            ),
            ("the file is empty", "copy the film again"),
            (
                "there are no samples: an initialization segment without its media",
                "append its media segments",
            ),
            (
                "… no moov box: the initialization segment is missing",
                "cat init.mp4 film.mp4",
            ),
            (
                "sample 0 …, but the file ends at byte 5000",
                "download the film again",
            ),
            (
                "video track 1 has no sync samples (key frames)",
                "-force_key_frames",
            ),
            ("the storage denies access: status 403", "credentials"),
            ("something else", "writes a new container"),
        ];
        let mut seen = std::collections::HashSet::new();
        for (error, part) in cases {
            let (text, fix) = choose_remedy("a/film.mp4", error.to_owned(), b"");
            assert_eq!(text, error);
            assert!(fix.contains(part), "{error}: {fix}");
            assert!(!fix.contains("IN") && !fix.contains("OUT"), "{fix}");
            seen.insert(fix);
        }
        assert!(seen.len() >= cases.len() - 1, "{seen:?}");
    }

    #[test]
    fn names_are_quoted_for_a_shell() {
        assert_eq!(quote_for_shell("film_1-a.mp4"), "film_1-a.mp4");
        assert_eq!(quote_for_shell("it's a film.mp4"), r"'it'\''s a film.mp4'");
        assert_eq!(quote_for_shell("-rf.mp4"), "'./-rf.mp4'");
        assert_eq!(quote_for_shell("$(x).mp4"), "'$(x).mp4'");
    }
}
