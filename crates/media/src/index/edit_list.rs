//! Resolves edit lists (ISO/IEC 14496-12, 8.6.6): determines which samples are presented, and when.

use super::hidden_pictures::{RetimedSamples, retime_hidden_pictures};
use super::{Sample, SampleTable, SampleTableBuilder};
use crate::bmff::elst::EditListEntry;
use crate::error::{Error, Result};
use crate::time::Time;
use std::ops::Range;

/// Maximum duration of the audio pre-roll in milliseconds. The pre-roll is served although it
/// precedes the start of the edit. The decoder needs the pre-roll to produce correct output from
/// the start of the edit on.
const PRE_ROLL_MS: i64 = 250;
/// Normal playback rate as a 16.16 fixed-point number.
const NORMAL_RATE: u32 = 0x0001_0000;

/// The single range of the media that an edit list presents. All times are in ticks of the track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditWindow {
    /// Total duration of the empty edits before the range.
    pub empty_lead: i64,
    /// First media time that is presented.
    pub media_start: i64,
    /// End of the presented range; `None` means the end of the media.
    pub media_end: Option<i64>,
    /// Maximum rounding error of an edit's duration, which the file stores in ticks of the movie
    /// timescale.
    pub rounding_slack: i64,
}

/// Resolves an edit list to one window.
///
/// # Errors
/// `Unsupported` for several ranges that are not contiguous, for an empty edit between two ranges,
/// and for a playback rate other than 1. `Malformed` for a negative or excessive time, and for a
/// movie timescale of 0.
pub(super) fn resolve_edit_list(
    edits: &[EditListEntry],
    movie_timescale: u32,
    timescale: u32,
) -> Result<EditWindow> {
    let mut window = EditWindow {
        empty_lead: 0,
        media_start: 0,
        media_end: None,
        rounding_slack: 0,
    };
    if edits.is_empty() {
        return Ok(window);
    }
    if movie_timescale == 0 {
        let error = Error::malformed("there is an edit list, but the movie's timescale is 0");
        return Err(error.with_enclosing_box(*b"mvhd"));
    }
    let ticks = |duration: u64| {
        let duration = i64::try_from(duration).unwrap_or(i64::MAX);
        Time::new(duration, movie_timescale).round_to(timescale)
    };
    // If the movie timescale is a multiple of the track's timescale, as in index MP4s, the
    // durations of all edits are exact.
    if !movie_timescale.is_multiple_of(timescale) {
        window.rounding_slack = Time::new(1, movie_timescale).ceil_to(timescale);
    }
    let leading = edits
        .iter()
        .take_while(|edit| edit.media_time == -1)
        .count();
    let (empty, mut shown) = edits.split_at(leading);
    window.empty_lead = empty
        .iter()
        .map(|edit| ticks(edit.duration))
        .fold(0, i64::saturating_add);
    while let [rest @ .., last] = shown
        && last.media_time == -1
    {
        shown = rest;
    }
    if let Some(first) = shown.first() {
        window.media_start = first.media_time;
    }
    let mut end = window.media_start;
    for edit in shown {
        check_edit(edit)?;
        if (edit.media_time - end).abs() > window.rounding_slack {
            return Err(unsupported_edit_error(
                "the edit list presents several ranges of the media",
            ));
        }
        let length = ticks(edit.duration);
        end = edit.media_time.saturating_add(length);
        window.media_end = (length > 0).then_some(end);
    }
    check_edit_times(window)
}

fn check_edit(edit: &EditListEntry) -> Result<()> {
    if edit.media_time == -1 {
        return Err(unsupported_edit_error(
            "the edit list has a gap between two ranges of the media",
        ));
    }
    if edit.media_time < 0 {
        let message = format!("an edit starts at media time {}", edit.media_time);
        return Err(Error::malformed(message).with_enclosing_box(*b"elst"));
    }
    if edit.rate != NORMAL_RATE {
        return Err(unsupported_edit_error("the edit list changes the speed"));
    }
    Ok(())
}

fn unsupported_edit_error(message: &str) -> Error {
    Error::unsupported(format!("{message}; export the film without edits"))
        .with_enclosing_box(*b"elst")
}

/// Maximum time in an edit list, in ticks. Sums of a few such times fit in 64 bits.
pub(crate) const EDIT_TIME_MAX: i64 = 1 << 60;

fn check_edit_times(window: EditWindow) -> Result<EditWindow> {
    for time in [
        window.empty_lead,
        window.media_start,
        window.media_end.unwrap_or(0),
    ] {
        if time > EDIT_TIME_MAX {
            let message =
                format!("an edit has a time of {time} ticks; at most {EDIT_TIME_MAX} are read");
            return Err(Error::malformed(message).with_enclosing_box(*b"elst"));
        }
    }
    Ok(window)
}

/// The samples that remain after an edit list was applied.
pub(super) struct TrimmedSamples {
    pub samples: SampleTable,
    /// Number that the first kept sample has in the source, counted from 0.
    pub first: u32,
    /// Presentation time of a sample whose decode time and composition offset are 0.
    pub presentation_offset: i64,
    /// Number of hidden pictures at the start, and the time in ticks from the first kept sample to
    /// the start of the edit. Both are 0 if no picture was moved.
    pub hidden: (usize, i64),
}

impl TrimmedSamples {
    fn new(samples: SampleTable, first: u32, presentation_offset: i64) -> TrimmedSamples {
        TrimmedSamples {
            samples,
            first,
            presentation_offset,
            hidden: (0, 0),
        }
    }

    fn from_retimed_samples(moved: RetimedSamples, first: u32, origin: i64) -> TrimmedSamples {
        TrimmedSamples {
            first,
            samples: moved.samples,
            presentation_offset: origin + moved.decode_shift,
            hidden: (moved.count, moved.lead),
        }
    }
}

impl EditWindow {
    /// Returns the end of the window on the presentation timeline, in ticks.
    pub fn presentation_end(&self) -> Option<i64> {
        self.media_end
            .map(|end| end - self.media_start + self.empty_lead)
    }

    /// Trims `samples` to `window`. Returns `None` if the window presents no sample.
    ///
    /// `base` is the decode time of the first sample, in ticks. Video keeps the earlier samples
    /// that the first visible picture depends on. These hidden samples are presented at the start
    /// of the window if they fit there. Audio keeps the samples that start at most [`PRE_ROLL_MS`]
    /// before the window.
    pub fn trim_samples(
        samples: SampleTable,
        base: u64,
        window: &EditWindow,
        is_video: bool,
        timescale: u32,
    ) -> Option<TrimmedSamples> {
        let base = i64::try_from(base).unwrap_or(i64::MAX);
        let shown = window.first_presented_sample(&samples, base)?;
        let first = window.first_kept_sample(&samples, base, shown, is_video, timescale);
        let end = window.kept_samples_end(&samples, base, first);
        // The samples before `shown` are needed only for decoding sample `shown`. If the window
        // ends before sample `shown`, nothing is presented.
        if end <= shown {
            return None;
        }
        let begin = base.saturating_add(i64::try_from(samples.dts(first)).unwrap_or(i64::MAX));
        let origin = begin - window.media_start + window.empty_lead;
        let start = window.media_start - base;
        let move_from = |start| retime_hidden_pictures(&samples, first..end, start, timescale);
        // If the hidden pictures do not fit at the start of the edit, moves them to time zero of
        // the film, before the empty edits. In an index MP4, no empty edit precedes an edit with
        // `media_start` above 0, so both positions are the same.
        let moved = if is_video && window.media_start > 0 {
            move_from(start).or_else(|| move_from(start - window.empty_lead))
        } else {
            None
        };
        Some(match moved {
            Some(moved) => TrimmedSamples::from_retimed_samples(moved, first, origin),
            None if first == 0 && end == samples.len() => TrimmedSamples::new(samples, 0, origin),
            None => TrimmedSamples::new(slice_sample_table(&samples, first..end), first, origin),
        })
    }

    /// Returns the first sample that is at least partly presented.
    fn first_presented_sample(&self, samples: &SampleTable, base: i64) -> Option<u32> {
        if self.media_start == 0 {
            return Some(0);
        }
        let shown = samples.iter_range(0..samples.len()).position(|sample| {
            let end = composition_time(&sample, base).saturating_add(i64::from(sample.duration));
            end > self.media_start
        });
        u32::try_from(shown?).ok()
    }

    /// Returns the first sample to keep. `shown` is the first sample that is presented.
    fn first_kept_sample(
        &self,
        samples: &SampleTable,
        base: i64,
        shown: u32,
        is_video: bool,
        timescale: u32,
    ) -> u32 {
        if self.media_start == 0 {
            return 0;
        }
        if is_video || !samples.is_all_sync() {
            return samples.last_sync_until(shown).unwrap_or(0);
        }
        let settle = Time::from_ms(PRE_ROLL_MS).floor_to(timescale);
        let mut first = shown;
        while first > 0
            && composition_time(&samples.get(first - 1), base) >= self.media_start - settle
        {
            first -= 1;
        }
        first
    }

    /// Returns the end of the range of samples to keep. The range starts at `first`.
    fn kept_samples_end(&self, samples: &SampleTable, base: i64, first: u32) -> u32 {
        let mut last = samples.len();
        let Some(end) = self.media_end else {
            return last;
        };
        while last > first {
            let sample = samples.get(last - 1);
            let slack = self.rounding_slack.min(i64::from(sample.duration) / 2);
            if composition_time(&sample, base) < end - slack {
                break;
            }
            last -= 1;
        }
        last
    }
}

/// Returns the composition time of a sample, in media time.
fn composition_time(sample: &Sample, base: i64) -> i64 {
    let dts = i64::try_from(sample.dts).unwrap_or(i64::MAX);
    base.saturating_add(dts)
        .saturating_add(i64::from(sample.composition_offset))
}

fn slice_sample_table(samples: &SampleTable, range: Range<u32>) -> SampleTable {
    let mut builder = SampleTableBuilder::default();
    builder.reserve((range.end - range.start) as usize);
    samples
        .iter_range(range)
        .for_each(|sample| builder.push(sample));
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::index::index_file_in_memory;
    use crate::index::testing::{
        OffsetBase, ProgressiveLayout, SyntheticFragment, SyntheticTrack,
        build_synthetic_progressive, mux_fragmented, unplaced_sample,
    };

    fn new_edit(duration: u64, media_time: i64) -> EditListEntry {
        let rate = NORMAL_RATE;
        EditListEntry {
            duration,
            media_time,
            rate,
        }
    }

    #[test]
    fn contiguous_edit_lists_resolve_to_one_window() {
        let window = |edits: &[EditListEntry]| {
            let window = resolve_edit_list(edits, 1000, 48_000).unwrap();
            (window.empty_lead, window.media_start, window.media_end)
        };
        assert_eq!(window(&[]), (0, 0, None));
        assert_eq!(window(&[new_edit(0, 1024)]), (0, 1024, None));
        assert_eq!(window(&[new_edit(100, 1024)]), (0, 1024, Some(5824)));
        let late = [new_edit(500, -1), new_edit(250, -1), new_edit(100, 0)];
        assert_eq!(window(&late), (36_000, 0, Some(4800)));
        assert_eq!(window(&[new_edit(500, -1)]), (24_000, 0, None));
        assert_eq!(
            window(&[new_edit(100, 0), new_edit(100, -1)]),
            (0, 0, Some(4800))
        );
        // The two ranges are contiguous except for the rounding of their durations to milliseconds.
        assert_eq!(
            window(&[new_edit(100, 0), new_edit(100, 4823)]),
            (0, 0, Some(9623))
        );
    }

    #[test]
    fn other_edit_lists_are_refused() {
        let slow = EditListEntry {
            rate: 0x8000,
            ..new_edit(100, 0)
        };
        for (edits, word) in [
            (
                vec![new_edit(100, 0), new_edit(100, 9600)],
                "several ranges",
            ),
            (vec![new_edit(100, 0), new_edit(100, 0)], "several ranges"),
            (
                vec![new_edit(100, 0), new_edit(100, -1), new_edit(100, 4800)],
                "gap between",
            ),
            (vec![slow], "speed"),
        ] {
            let error = resolve_edit_list(&edits, 1000, 48_000).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
            assert!(error.message.contains(word), "{error}");
        }
        for edits in [
            [new_edit(1, -2)],
            [new_edit(1, i64::MAX)],
            [new_edit(u64::MAX, -1)],
        ] {
            let error = resolve_edit_list(&edits, 1000, 48_000).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Malformed, "{error}");
        }
        let error = resolve_edit_list(&[new_edit(1, 0)], 0, 48_000).unwrap_err();
        assert!(error.message.contains("timescale is 0"), "{error}");
    }

    /// Video with a key frame every four samples. Each sample lasts 512 ticks (40 ms) and is
    /// presented two frames (1024 ticks) after its decode time.
    fn video_with_edits(edits: &[(u32, i32)]) -> SyntheticTrack {
        let rows = (0..24).map(|n| unplaced_sample(512, 1024, 10 + n, n % 4 == 0));
        SyntheticTrack {
            edits: edits.to_vec(),
            ..SyntheticTrack::video(1, rows.collect())
        }
    }

    /// Audio with 60 samples of 1024 ticks at 48 kHz.
    fn audio_with_edits(edits: &[(u32, i32)]) -> SyntheticTrack {
        let rows = (0..60).map(|n| unplaced_sample(1024, 0, 10 + n, true));
        SyntheticTrack {
            edits: edits.to_vec(),
            ..SyntheticTrack::audio(1, rows.collect())
        }
    }

    /// Returns the numbers of the samples that the edit list keeps, the presentation offset, and
    /// the presentation time of the first sample. Sample `n` is recognized by its size of `10 + n`
    /// bytes.
    fn kept_samples(track: SyntheticTrack) -> (Range<u32>, i64, i64) {
        let index = index_file_in_memory(
            &build_synthetic_progressive(&[track], &ProgressiveLayout::default()).to_bytes(),
        )
        .unwrap();
        let track = &index.tracks[0];
        let first = track.samples.get(0);
        let from = first.size - 10;
        assert_eq!(first.dts, 0);
        let shown = i64::from(first.composition_offset) + track.presentation_offset;
        (
            from..from + track.samples.len(),
            track.presentation_offset,
            shown,
        )
    }

    #[test]
    fn video_keeps_the_samples_that_its_first_picture_needs() {
        assert_eq!(kept_samples(video_with_edits(&[])), (0..24, 0, 1024));
        assert_eq!(
            kept_samples(video_with_edits(&[(960, 1024)])),
            (0..24, -1024, 0)
        );
        assert_eq!(
            kept_samples(video_with_edits(&[(500, -1), (960, 1024)])),
            (0..24, 6400 - 1024, 6400)
        );
        // The edit starts with sample 6, which depends on samples 4 and 5. These two samples are
        // decoded immediately before sample 6. They are presented at the start of the edit, for one
        // instant each.
        let from = 6 * 512 + 1024;
        assert_eq!(
            kept_samples(video_with_edits(&[(0, from)])),
            (4..24, 6 * 512 - 2 - i64::from(from), 0)
        );
        // The edit starts within sample 7, which is still partly presented.
        assert_eq!(kept_samples(video_with_edits(&[(0, from + 700)])).0, 4..24);
        assert_eq!(kept_samples(video_with_edits(&[(0, from + 1024)])).0, 8..24);
    }

    #[test]
    fn a_trim_inside_a_gop_is_noted_with_its_cause() {
        let notes = |edits: &[(u32, i32)]| {
            let file = build_synthetic_progressive(
                &[video_with_edits(edits)],
                &ProgressiveLayout::default(),
            );
            index_file_in_memory(&file.to_bytes()).unwrap().notes
        };
        let found = notes(&[(0, 6 * 512 + 1024)]);
        assert_eq!(
            found[0].message,
            "the edit list starts 0.080 s after a key frame, inside a GOP: players decode 2 hidden pictures at the start"
        );
        assert_eq!(notes(&[(0, 4 * 512 + 1024)]), [], "at a key frame");
    }

    #[test]
    fn a_track_without_presented_samples_is_left_out() {
        // The edit starts at sample 6. The edit presents nothing, because its duration of 1 ms does
        // not exceed the rounding error.
        let track = audio_with_edits(&[(1, 6 * 1024)]);
        let tracks = [track, video_with_edits(&[])];
        let index = index_file_in_memory(
            &build_synthetic_progressive(&tracks, &ProgressiveLayout::default()).to_bytes(),
        )
        .unwrap();
        assert_eq!(index.tracks.len(), 1);
        assert!(
            index.left_out[0].reason.contains("shows none"),
            "{:?}",
            index.left_out
        );
    }

    #[test]
    fn samples_after_the_edit_are_dropped() {
        assert_eq!(kept_samples(video_with_edits(&[(400, 1024)])).0, 0..10);
        // A rounding error of one millisecond does not change which samples are kept.
        assert_eq!(kept_samples(video_with_edits(&[(401, 1024)])).0, 0..10);
        assert_eq!(kept_samples(video_with_edits(&[(399, 1024)])).0, 0..10);
        assert_eq!(kept_samples(video_with_edits(&[(420, 1024)])).0, 0..11);
        assert_eq!(kept_samples(audio_with_edits(&[(64, 0)])).0, 0..3);
        assert_eq!(kept_samples(audio_with_edits(&[(65, 0)])).0, 0..3);
        assert_eq!(kept_samples(audio_with_edits(&[(70, 0)])).0, 0..4);
    }

    #[test]
    fn audio_keeps_a_quarter_second_of_pre_roll() {
        assert_eq!(
            kept_samples(audio_with_edits(&[(0, 1024)])),
            (0..60, -1024, -1024)
        );
        let (range, origin, _) = kept_samples(audio_with_edits(&[(0, 30 * 1024)]));
        assert_eq!(range, 19..60, "11 frames of 21.3 ms are under 250 ms");
        assert_eq!(origin, -11 * 1024);
    }

    #[test]
    fn an_edit_beyond_the_end_shows_nothing() {
        let file = build_synthetic_progressive(
            &[audio_with_edits(&[(0, 60 * 1024)])],
            &ProgressiveLayout::default(),
        )
        .to_bytes();
        let error = index_file_in_memory(&file).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Empty);
    }

    #[test]
    fn edit_durations_are_ignored_in_fragmented_files() {
        let track = SyntheticTrack {
            first_dts: 9000,
            ..audio_with_edits(&[(1, 9000 + 1024)])
        };
        let all = SyntheticFragment {
            offset_base: OffsetBase::Moof,
            has_explicit_fields: true,
            has_tfdt: true,
            stray_boxes: 0,
            trafs: vec![(0, vec![60])],
        };
        let index = index_file_in_memory(&mux_fragmented(&[track], 0, &[all]).to_bytes()).unwrap();
        assert_eq!(index.tracks[0].samples.len(), 60);
        assert_eq!(index.tracks[0].presentation_offset, -1024);
    }
}
