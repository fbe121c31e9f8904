//! Problems of subtitles and captions.

use crate::check::report::{Finding, FindingLevel};
use media::presentation::Presentation;
use media::text::{CueProblem, TextRendition};

/// A kind of problem, with the number of occurrences and the place of the first occurrence.
struct CountedProblem {
    count: usize,
    first: String,
    message: &'static str,
    remedy: &'static str,
}

/// Reports cues that are not shown, or not shown as intended. Also reports texts without a
/// language.
pub(super) fn find_text_problems(title: &Presentation, found: &mut Vec<Finding>) {
    for (name, text) in title.text.renditions() {
        let place = format!("{name} ({})", text.source);
        for problem in group_cue_problems(title, text) {
            let CountedProblem {
                count,
                first,
                message,
                ..
            } = &problem;
            let what = format!("{message}: {count}, the first at {first}");
            found.push(Finding::new(
                FindingLevel::Warning,
                &place,
                what,
                problem.remedy,
            ));
        }
        if text.language_tag().is_none() {
            let what = "the text declares no language, so players cannot choose it".to_owned();
            let fix = "name the file FILM.en.srt, or set the language of the track";
            found.push(Finding::new(FindingLevel::Warning, &place, what, fix));
        }
    }
}

/// Counts the problems of each kind, in the order in which the kinds are first found.
fn group_cue_problems(title: &Presentation, text: &TextRendition) -> Vec<CountedProblem> {
    let end_ms = title.duration.round_to(1000);
    let late = text.cues.cues().iter().filter(|cue| cue.start_ms >= end_ms);
    let late = late.map(|cue| CueProblem::Late(cue.start_ms));
    let mut counted: Vec<CountedProblem> = Vec::new();
    for problem in text.problems.iter().cloned().chain(late) {
        let (message, remedy, place) = describe_problem(&problem);
        match counted.iter_mut().find(|known| known.message == message) {
            Some(known) => known.count += 1,
            None => counted.push(CountedProblem {
                count: 1,
                first: place,
                message,
                remedy,
            }),
        }
    }
    counted
}

/// Returns the message, the remedy and the place of a problem.
fn describe_problem(problem: &CueProblem) -> (&'static str, &'static str, String) {
    let at = |ms: &i64| format!("{:.3} s", *ms as f64 / 1000.0);
    match problem {
        CueProblem::NotShown(ms) => (
            "cues end before they start and are left out",
            "correct the times of these cues",
            at(ms),
        ),
        CueProblem::Empty(ms) => ("cues have no text and are left out", "remove them", at(ms)),
        CueProblem::Unsorted(ms) => (
            "cues start before the previous one in the file",
            "sort the file by time; Headwater serves it sorted",
            at(ms),
        ),
        CueProblem::Overlapping(ms) => (
            "cues start before the previous one has ended",
            "shorten the previous cues, unless two texts at the same time are intended",
            at(ms),
        ),
        CueProblem::Late(ms) => (
            "cues start after the end of the film",
            "check whether the text belongs to this cut of the film",
            at(ms),
        ),
        CueProblem::Malformed(line) => (
            "lines or documents could not be parsed",
            "correct the file; the rest of it is served",
            format!("number {line}"),
        ),
        CueProblem::NotUnicode => (
            "the file is not Unicode and is read as Windows-1252",
            "convert it to UTF-8 if letters are wrong (iconv -f FROM -t UTF-8)",
            "its start".to_owned(),
        ),
        CueProblem::TooMany => (
            "the file has more than 200 000 cues, or more than 64 at the same time; the others are left out",
            "split the file, or shorten the cues that overlap",
            "its end".to_owned(),
        ),
    }
}
