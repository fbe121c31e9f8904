//! Remedies for parts of a title that are not served. Each kind of part has its own remedy.

use super::remedies::quote_for_shell;
use super::report::{Finding, FindingLevel};
use crate::title::left_out::LeftOutPart;

/// A kind of part. A part is of this kind if its name, or the reason why it is not served, contains
/// one of the fragments.
struct LeftOutRemedy {
    fragments: &'static [&'static str],
    level: FindingLevel,
    remedy: &'static str,
}

/// The kinds of parts. The first kind that matches is used.
const PART_KINDS: &[LeftOutRemedy] = &[
    LeftOutRemedy {
        fragments: &["the file ends "],
        level: FindingLevel::Warning,
        remedy: "copy or download the film again; its end is missing",
    },
    LeftOutRemedy {
        fragments: &["players cannot switch between it and the film's video"],
        level: FindingLevel::Hint,
        remedy: "nothing if it is a cover or a still picture; store a second video in a file of its own",
    },
    LeftOutRemedy {
        fragments: &["would need too many requests"],
        level: FindingLevel::Warning,
        remedy: "store the text beside the film as FILM.LANGUAGE.srt (`ffmpeg -i FILM -map 0:s:0 FILM.en.srt`)",
    },
    LeftOutRemedy {
        fragments: &["at most 64 text "],
        level: FindingLevel::Warning,
        remedy: "remove texts that viewers need least, so that the others are served",
    },
    LeftOutRemedy {
        fragments: &["at most 16 MiB"],
        level: FindingLevel::Warning,
        remedy: "shorten the text to 16 MiB, for example by removing images and fonts",
    },
    LeftOutRemedy {
        fragments: &["it cannot be read", "its storage failed"],
        level: FindingLevel::Warning,
        remedy: "make the file readable for the server, and check the storage",
    },
    LeftOutRemedy {
        fragments: &["no cue of it could be parsed"],
        level: FindingLevel::Warning,
        remedy: "export it again as WebVTT or SRT",
    },
    LeftOutRemedy {
        fragments: &[
            "(time code",
            "(metadata",
            "(hints",
            "chapters are not served",
        ],
        level: FindingLevel::Hint,
        remedy: "nothing: viewers do not need it to play the film",
    },
];

const OTHER_REMEDY: &str = "convert it or export it again, if viewers need it";

/// File name suffixes of text that ffmpeg can convert to WebVTT.
const CONVERTED_SUFFIXES: [&str; 4] = ["ass", "ssa", "smi", "sub"];

/// Reports a part that is not served, with the remedy for its kind.
pub(super) fn report_left_out(part: &LeftOutPart) -> Finding {
    let what = format!("left out, because {}", part.reason);
    let has = |text: &&str| part.reason.contains(text) || part.name.contains(text);
    let kind = PART_KINDS
        .iter()
        .find(|kind| kind.fragments.iter().any(&has));
    let (level, remedy) = match kind {
        Some(kind) => (kind.level, kind.remedy.to_owned()),
        None => (
            FindingLevel::Warning,
            text_conversion_command(&part.name).unwrap_or_else(|| OTHER_REMEDY.to_owned()),
        ),
    };
    Finding::new(level, &part.name, what, &remedy)
}

/// Returns the command that converts a text file to WebVTT, if ffmpeg can convert the file.
fn text_conversion_command(name: &str) -> Option<String> {
    let (stem, suffix) = name.rsplit_once('.')?;
    let is = |known: &&str| suffix.eq_ignore_ascii_case(known);
    CONVERTED_SUFFIXES.iter().find(|known| is(known))?;
    let (input, out) = (
        quote_for_shell(name),
        quote_for_shell(&format!("{stem}.vtt")),
    );
    Some(format!("`ffmpeg -i {input} {out}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_left_out_part_has_its_own_remedy() {
        use FindingLevel::{Hint, Warning};
        for (name, reason, level, remedy) in [
            (
                "a.mp4, the last 3 samples of track 2",
                "the file ends at byte 500",
                Warning,
                "its end is missing",
            ),
            (
                "a.mp4, track 1 (video, avc1.640016)",
                "it has 1 picture in 1.3 s, so players cannot switch between it and the film's video",
                Hint,
                "nothing if it is a cover",
            ),
            (
                "a.mov, track 3 (time code, tmcd)",
                "it is neither video nor audio",
                Hint,
                "viewers do not need it",
            ),
            (
                "film.en.ass",
                "this format of text is not supported; convert it to WebVTT or SRT",
                Warning,
                "`ffmpeg -i film.en.ass film.en.vtt`",
            ),
            (
                "a.mp4, track 3 (text)",
                "the text of this remote film would need too many requests; store it as a file beside the film",
                Warning,
                "FILM.en.srt",
            ),
            (
                "film.zu.srt",
                "a title may have at most 64 text files; remove others",
                Warning,
                "viewers need least",
            ),
            (
                "film.en.srt",
                "text files may have at most 16 MiB; shorten it",
                Warning,
                "shorten the text",
            ),
            (
                "film.en.srt",
                "it cannot be read: there is no such file; make it readable for the server",
                Warning,
                "readable",
            ),
            (
                "a.mp4, track 4 (audio)",
                "there is no stsd box",
                Warning,
                "export it again",
            ),
        ] {
            let (name, reason) = (name.to_owned(), reason.to_owned());
            let finding = report_left_out(&LeftOutPart::new(name, reason));
            assert_eq!(finding.level, level, "{}", finding.place);
            assert!(
                finding.fix.contains(remedy),
                "{}: {}",
                finding.place,
                finding.fix
            );
        }
    }
}
