//! Text tracks inside films, and the conversion of their samples to cues.

use super::cue::report_problem;
use super::ttml::parse_ttml_cues;
use super::{Cue, CueList, CueProblem, TEXT_BYTES_MAX, TextKind, decode_text, tx3g, wvtt};
use crate::codec::TextFormat;
use crate::index::{Track, TrackRole};
use crate::presentation::Presentation;
use crate::time::Time;
use std::ops::Range;

/// Maximum number of samples of a text track. Tracks with more samples are left out.
const SAMPLES_MAX: u32 = 200_000;

/// Returns the byte ranges of a text track's samples. `None` if the samples are too many, or too
/// large in total. Samples that are too short to contain text need not be read and have empty
/// ranges.
pub fn text_sample_ranges(track: &Track) -> Option<Vec<Range<u64>>> {
    let samples = &track.samples;
    if samples.len() > SAMPLES_MAX || samples.byte_count(0..samples.len()) > TEXT_BYTES_MAX {
        return None;
    }
    let empty_bytes_max = match track.codec.text() {
        Some(TextFormat::Tx3g) => tx3g::EMPTY_SAMPLE_BYTES,
        Some(TextFormat::Wvtt) => wvtt::EMPTY_SAMPLE_BYTES,
        _ => 0,
    };
    let range = |sample: crate::index::Sample| match sample.size {
        size if size <= empty_bytes_max => sample.offset..sample.offset,
        size => sample.offset..sample.offset.saturating_add(u64::from(size)),
    };
    Some(samples.iter_range(0..samples.len()).map(range).collect())
}

/// Converts the samples of a text track to cues. `samples` are the bytes in the ranges of
/// [`text_sample_ranges`], and `film_start` is [`Presentation::film_start`].
pub fn parse_text_samples<'a>(
    track: &Track,
    film_start: Time,
    samples: impl Iterator<Item = &'a [u8]>,
    problems: &mut Vec<CueProblem>,
) -> CueList {
    let format = track.codec.text().unwrap_or(TextFormat::Tx3g);
    let mut cues: Vec<Cue> = Vec::new();
    let start = film_start.round_to(1000);
    for (n, (bytes, sample)) in samples
        .zip(track.samples.iter_range(0..u32::MAX))
        .enumerate()
    {
        let from = track.presentation_time(n as u32);
        let until = Time::new(
            from.ticks.saturating_add(sample.duration.into()),
            from.timescale,
        );
        let shown = from.round_to(1000) - start..until.round_to(1000) - start;
        match format {
            TextFormat::Wvtt => append_cues(&mut cues, wvtt::parse_wvtt_sample(bytes), &shown),
            TextFormat::Tx3g => append_cues(&mut cues, tx3g::parse_tx3g_sample(bytes), &shown),
            TextFormat::Stpp => {
                for cue in parse_document_sample(bytes, n, problems) {
                    // Limits the cue to the times of the sample, because a document may repeat cues
                    // of other samples. Text without an end is shown until the sample ends.
                    let end = cue.end_ms.saturating_sub(start);
                    let own = cue.start_ms - start..end;
                    let own = own.start.max(shown.start)..own.end.min(shown.end);
                    append_cues(&mut cues, [cue], &own);
                }
            }
        }
    }
    let header = match format {
        TextFormat::Wvtt => wvtt::read_wvtt_entry_header(&track.codec.sample_entry),
        TextFormat::Stpp | TextFormat::Tx3g => String::new(),
    };
    cues.retain(|cue| !cue.payload.trim().is_empty());
    CueList::from_cues(header, cues, problems)
}

/// Returns the cues of a sample that is a TTML document. The times of the cues are on the timeline
/// of the track.
fn parse_document_sample(bytes: &[u8], n: usize, problems: &mut Vec<CueProblem>) -> Vec<Cue> {
    parse_ttml_cues(&decode_text(bytes, problems)).unwrap_or_else(|| {
        report_problem(problems, CueProblem::Malformed(n + 1));
        Vec::new()
    })
}

/// Appends the cues of a sample. If a cue continues a cue of the previous sample, that earlier cue
/// is extended.
fn append_cues(cues: &mut Vec<Cue>, shown: impl IntoIterator<Item = Cue>, time: &Range<i64>) {
    // Only the most recent cues are searched, so that the time of the search is bounded.
    let recent = cues.len().saturating_sub(wvtt::CUES_PER_SAMPLE_MAX);
    for cue in shown {
        let is_same = |known: &&mut Cue| {
            known.end_ms == time.start
                && (&known.id, &known.settings, &known.payload)
                    == (&cue.id, &cue.settings, &cue.payload)
        };
        let known = cues
            .get_mut(recent..)
            .unwrap_or_default()
            .iter_mut()
            .find(is_same);
        match known {
            Some(known) => known.end_ms = time.end,
            None => cues.push(Cue {
                start_ms: time.start,
                end_ms: time.end,
                ..cue
            }),
        }
    }
}

/// Returns the purpose of the track, which its sample entry or its roles declare.
pub fn text_track_kind(track: &Track) -> TextKind {
    let has = |role| track.roles.contains(&role);
    match track.codec.text() {
        Some(TextFormat::Tx3g) if tx3g::is_forced_track(&track.codec.sample_entry) => {
            TextKind::Forced
        }
        _ if has(TrackRole::ForcedSubtitle) => TextKind::Forced,
        _ if has(TrackRole::Caption) => TextKind::Captions,
        _ if has(TrackRole::EasyReader) => TextKind::EasyToRead,
        _ => TextKind::Subtitles,
    }
}

/// Returns whether the author of a film chose text track `n` as the default. Writers such as ffmpeg
/// enable the first track of each kind if the author chose no track. An enabled first track
/// therefore does not count as a choice. If the first track is not enabled, the first enabled track
/// is the default.
pub fn is_default_text(tracks: &[Track], n: usize) -> bool {
    let is_enabled = |track: &Track| track.is_enabled;
    let earlier = tracks.get(..n).unwrap_or_default();
    n > 0 && tracks.get(n).is_some_and(is_enabled) && !earlier.iter().any(is_enabled)
}

impl Presentation {
    /// Returns the start of the film on the timeline of the media files. Text tracks use the same
    /// timeline. The start is above zero only if no track presents anything at time zero. The start
    /// is then the earliest presentation time of all tracks.
    pub fn film_start(&self) -> Time {
        let Some(rendition) = self.renditions.first() else {
            return Time::ZERO;
        };
        let track = self.track(rendition);
        // Time 0 of the media files is at this position on the served timeline, in ticks.
        let shift = rendition.start_ticks - track.presentation_offset
            + i64::from(rendition.composition_shift);
        let zero = self.presentation_time_offset.round_to(track.timescale);
        Time::new(zero - shift, track.timescale)
    }
}
