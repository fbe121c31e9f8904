//! Cues: texts with the times at which they are shown.

use std::hash::{Hash, Hasher};
use std::ops::Range;

/// Maximum number of cues of a rendition. Further cues are dropped.
const CUES_MAX: usize = 200_000;
/// Maximum number of cues that are shown at the same time. Further cues are dropped. Without this
/// limit, the time to write a segment would grow with the square of the number of cues.
const CUES_AT_ONCE_MAX: usize = 64;
/// Number of cues in a block. A search skips each block whose cues all end before the searched
/// range. Therefore, a long cue does not slow down the searches in the rest of the film.
const BLOCK_CUES: usize = 64;
/// Maximum number of reported problems of a rendition.
const PROBLEMS_MAX: usize = 1000;

/// A text that is shown during a range of time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Cue {
    /// Time from the start of the film at which the text appears, in milliseconds.
    pub start_ms: i64,
    /// Time from the start of the film at which the text disappears, in milliseconds.
    pub end_ms: i64,
    /// Identifier; may be empty.
    pub id: String,
    /// WebVTT cue settings, such as `line:0 align:start`; may be empty.
    pub settings: String,
    /// WebVTT cue text with its markup. It contains no blank line and no `-->`.
    pub payload: String,
}

/// A defect of a text source. The rendition is served nevertheless, except for cues that are
/// dropped. A value of type `i64` is the start of the cue in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CueProblem {
    /// The cue ends before it starts or has no duration. The cue is dropped.
    NotShown(i64),
    /// The cue has no text. The cue is dropped.
    Empty(i64),
    /// The cue starts earlier than the previous cue in the file. The cues of the rendition are
    /// sorted by start.
    Unsorted(i64),
    /// The cue starts before an earlier cue has ended.
    Overlapping(i64),
    /// The cue starts after the end of the film.
    Late(i64),
    /// A line of a file, or a sample of a track, could not be parsed. The value is the number of
    /// the line or sample, counted from 1.
    Malformed(usize),
    /// The file is not Unicode and is read as Windows-1252.
    NotUnicode,
    /// The file has too many cues in total, or too many that are shown at the same time. The cues
    /// over the limit are dropped.
    TooMany,
}

/// The cues of a rendition, sorted by start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CueList {
    /// `STYLE` and `REGION` blocks of WebVTT, separated by blank lines; may be empty.
    pub header: String,
    cues: Vec<Cue>,
    /// For each cue, the latest end of this cue and all cues before it, in milliseconds. The values
    /// never decrease, so a binary search finds the first cue that is shown at a given time.
    latest_ends: Vec<i64>,
    /// For each block of [`BLOCK_CUES`] cues, the latest end of these cues, in milliseconds.
    block_ends: Vec<i64>,
}

impl Hash for CueList {
    /// Hashes all fields except `block_ends`. The URLs of text contain this hash, so the same cues
    /// must have the same hash in every version of this program.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.header, &self.cues, &self.latest_ends).hash(state);
    }
}

impl CueList {
    /// Sorts the cues and drops cues that are never shown. Appends the defects to `problems`.
    pub fn from_cues(
        header: String,
        mut cues: Vec<Cue>,
        problems: &mut Vec<CueProblem>,
    ) -> CueList {
        let is_too_long = cues.len() > CUES_MAX;
        cues.truncate(CUES_MAX);
        let mut report = |problem| report_problem(problems, problem);
        for pair in cues
            .windows(2)
            .filter(|pair| pair[1].start_ms < pair[0].start_ms)
        {
            report(CueProblem::Unsorted(pair[1].start_ms));
        }
        cues.retain(|cue| {
            let problem = cue.find_defect();
            let is_shown = problem.is_none();
            problem.into_iter().for_each(&mut report);
            is_shown
        });
        cues.sort_by_key(|cue| (cue.start_ms, cue.end_ms));
        if drop_cues_beyond_limit(&mut cues) || is_too_long {
            // The text of valid cues is missing, so this is reported even if the list is full.
            problems.truncate(PROBLEMS_MAX - 1);
            problems.push(CueProblem::TooMany);
        }
        let ends = cues.iter().scan(i64::MIN, |latest, cue| {
            *latest = cue.end_ms.max(*latest);
            Some(*latest)
        });
        let latest_ends: Vec<i64> = ends.collect();
        for (cue, latest) in cues.iter().skip(1).zip(&latest_ends) {
            if cue.start_ms < *latest {
                report_problem(problems, CueProblem::Overlapping(cue.start_ms));
            }
        }
        let blocks = cues.chunks(BLOCK_CUES);
        let block_ends = blocks.filter_map(|block| block.iter().map(|cue| cue.end_ms).max());
        CueList {
            header,
            block_ends: block_ends.collect(),
            cues,
            latest_ends,
        }
    }

    /// Returns all cues, sorted by start.
    pub fn cues(&self) -> &[Cue] {
        &self.cues
    }

    /// Iterates over the cues that are shown within a range of milliseconds, sorted by start.
    pub fn cues_within(&self, range: Range<i64>) -> impl Iterator<Item = &Cue> {
        let first = self.latest_ends.partition_point(|end| *end <= range.start);
        let end = self.cues.partition_point(|cue| cue.start_ms < range.end);
        let blocks = self.block_ends.iter().enumerate().skip(first / BLOCK_CUES);
        let blocks = blocks.take_while(move |(n, _)| n * BLOCK_CUES < end);
        blocks
            .filter(move |(_, latest)| **latest > range.start)
            .flat_map(move |(n, _)| {
                let cues = (n * BLOCK_CUES).max(first)..((n + 1) * BLOCK_CUES).min(end);
                self.cues.get(cues).unwrap_or_default()
            })
            .filter(move |cue| cue.end_ms > range.start)
    }

    /// Approximate heap memory, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let text = |cue: &Cue| cue.id.len() + cue.settings.len() + cue.payload.len();
        let texts: usize = self.cues.iter().map(text).sum();
        self.header.len() + texts + self.cues.len() * (size_of::<Cue>() + size_of::<i64>())
    }
}

/// Appends a defect to `problems`, unless the list is full.
pub(super) fn report_problem(problems: &mut Vec<CueProblem>, problem: CueProblem) {
    if problems.len() < PROBLEMS_MAX {
        problems.push(problem);
    }
}

/// Drops each cue that starts while [`CUES_AT_ONCE_MAX`] other cues are shown. `cues` must be
/// sorted by start. Returns whether any cue was dropped.
fn drop_cues_beyond_limit(cues: &mut Vec<Cue>) -> bool {
    let count = cues.len();
    let mut shown_ends: Vec<i64> = Vec::with_capacity(CUES_AT_ONCE_MAX);
    cues.retain(|cue| {
        shown_ends.retain(|end| *end > cue.start_ms);
        let fits = shown_ends.len() < CUES_AT_ONCE_MAX;
        if fits {
            shown_ends.push(cue.end_ms);
        }
        fits
    });
    cues.len() < count
}

impl Cue {
    /// Returns the defect that prevents the cue from being shown, if any.
    fn find_defect(&self) -> Option<CueProblem> {
        if self.end_ms <= self.start_ms {
            return Some(CueProblem::NotShown(self.start_ms));
        }
        self.payload
            .trim()
            .is_empty()
            .then_some(CueProblem::Empty(self.start_ms))
    }
}
