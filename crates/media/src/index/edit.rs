//! Edit lists (ISO/IEC 14496-12, 8.6.6) resolved: which samples are shown, and from when.

use super::{Sample, Samples, SamplesBuilder};
use crate::bmff::elst::Edit;
use crate::error::{Error, Result};
use crate::time::Time;
use std::ops::Range;

/// Sound kept before the edit begins, so that decoders can settle, in milliseconds.
const PRE_ROLL_MS: i64 = 250;
/// A rate of 1, as 16.16.
const NORMAL_RATE: u32 = 0x0001_0000;

/// The one stretch of the media that an edit list shows, in ticks of the track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// How long nothing is shown first.
    pub lead: i64,
    /// Media time that is shown first.
    pub start: i64,
    /// Media time that is shown no more; `None`: all that there is.
    pub end: Option<i64>,
    /// How much an edit's length may be off, because it was rounded to the movie's clock.
    pub slack: i64,
}

/// Reads an edit list as one window.
///
/// # Errors
/// `Unsupported` for several stretches that are not contiguous, for gaps between them, and for
/// speeds other than 1; `Malformed` where a time makes no sense.
pub(super) fn resolve(edits: &[Edit], movie_timescale: u32, timescale: u32) -> Result<Window> {
    let mut window = Window {
        lead: 0,
        start: 0,
        end: None,
        slack: 0,
    };
    if edits.is_empty() {
        return Ok(window);
    }
    if movie_timescale == 0 {
        let error = Error::malformed("there is an edit list, but the movie's timescale is 0");
        return Err(error.inside(*b"mvhd"));
    }
    let ticks = |duration: u64| {
        let duration = i64::try_from(duration).unwrap_or(i64::MAX);
        Time::new(duration, movie_timescale).round_to(timescale)
    };
    window.slack = Time::new(1, movie_timescale).ceil_to(timescale);
    let leading = edits
        .iter()
        .take_while(|edit| edit.media_time == -1)
        .count();
    let (empty, mut shown) = edits.split_at(leading);
    window.lead = empty
        .iter()
        .map(|edit| ticks(edit.duration))
        .fold(0, i64::saturating_add);
    while let [rest @ .., last] = shown
        && last.media_time == -1
    {
        shown = rest;
    }
    if let Some(first) = shown.first() {
        window.start = first.media_time;
    }
    let mut end = window.start;
    for edit in shown {
        check(edit)?;
        if (edit.media_time - end).abs() > window.slack {
            return Err(fancy("its edit list shows several stretches of the media"));
        }
        let length = ticks(edit.duration);
        end = edit.media_time.saturating_add(length);
        window.end = (length > 0).then_some(end);
    }
    sane(window)
}

fn check(edit: &Edit) -> Result<()> {
    if edit.media_time == -1 {
        return Err(fancy(
            "its edit list has a gap between stretches of the media",
        ));
    }
    if edit.media_time < 0 {
        let what = format!("an edit begins at media time {}", edit.media_time);
        return Err(Error::malformed(what).inside(*b"elst"));
    }
    if edit.rate != NORMAL_RATE {
        return Err(fancy("its edit list changes the speed"));
    }
    Ok(())
}

fn fancy(what: &str) -> Error {
    Error::unsupported(format!("{what}: export the film without edits")).inside(*b"elst")
}

/// Times beyond this, in ticks, are no times of a film; sums of a few stay in 64 bits.
pub(crate) const TIME_MAX: i64 = 1 << 60;

fn sane(window: Window) -> Result<Window> {
    for time in [window.lead, window.start, window.end.unwrap_or(0)] {
        if time > TIME_MAX {
            let what = format!("an edit speaks of {time} ticks; at most {TIME_MAX} are read");
            return Err(Error::malformed(what).inside(*b"elst"));
        }
    }
    Ok(window)
}

impl Window {
    /// When nothing is shown any more, on the film's timeline.
    pub fn shown_until(&self) -> Option<i64> {
        self.end.map(|end| end - self.start + self.lead)
    }

    /// Cuts `samples`, the first of which is decoded at media time `base`, to what the window
    /// needs, and tells their origin. `None`: the window shows none.
    ///
    /// Video keeps what decoding the first picture needs, sound [`PRE_ROLL_MS`] before it.
    pub fn cut(
        samples: Samples,
        base: u64,
        window: &Window,
        is_video: bool,
        timescale: u32,
    ) -> Option<(Samples, i64)> {
        let base = i64::try_from(base).unwrap_or(i64::MAX);
        let shown = window.shown(&samples, base)?;
        let first = window.first(&samples, base, shown, is_video, timescale);
        let end = window.last(&samples, base, first);
        // What comes before the first sample that is shown is only there to decode it.
        if end <= shown {
            return None;
        }
        let begin = base.saturating_add(i64::try_from(samples.dts(first)).unwrap_or(i64::MAX));
        let origin = begin - window.start + window.lead;
        if first == 0 && end == samples.len() {
            return Some((samples, origin));
        }
        Some((slice(&samples, first..end), origin))
    }

    /// The first sample of which anything is shown.
    fn shown(&self, samples: &Samples, base: i64) -> Option<u32> {
        if self.start == 0 {
            return Some(0);
        }
        let shown = samples.range(0..samples.len()).position(|sample| {
            let end = shown_at(&sample, base).saturating_add(i64::from(sample.duration));
            end > self.start
        });
        u32::try_from(shown?).ok()
    }

    /// The first sample to keep, where `shown` is the first that is shown.
    fn first(
        &self,
        samples: &Samples,
        base: i64,
        shown: u32,
        is_video: bool,
        timescale: u32,
    ) -> u32 {
        if self.start == 0 {
            return 0;
        }
        if is_video || !samples.all_sync() {
            return samples.sync_until(shown).unwrap_or(0);
        }
        let settle = Time::from_ms(PRE_ROLL_MS).floor_to(timescale);
        let mut first = shown;
        while first > 0 && shown_at(&samples.get(first - 1), base) >= self.start - settle {
            first -= 1;
        }
        first
    }

    /// The end of the samples to keep, which begin at `first`.
    fn last(&self, samples: &Samples, base: i64, first: u32) -> u32 {
        let mut last = samples.len();
        let Some(end) = self.end else {
            return last;
        };
        while last > first {
            let sample = samples.get(last - 1);
            let slack = self.slack.min(i64::from(sample.duration) / 2);
            if shown_at(&sample, base) < end - slack {
                break;
            }
            last -= 1;
        }
        last
    }
}

/// When a sample is shown, in media time.
fn shown_at(sample: &Sample, base: i64) -> i64 {
    let dts = i64::try_from(sample.dts).unwrap_or(i64::MAX);
    base.saturating_add(dts)
        .saturating_add(i64::from(sample.cts))
}

fn slice(samples: &Samples, range: Range<u32>) -> Samples {
    let mut builder = SamplesBuilder::default();
    builder.reserve((range.end - range.start) as usize);
    samples.range(range).for_each(|sample| builder.push(sample));
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::index::index_bytes;
    use crate::index::testing::{Base, Fragment, Layout, MuxTrack, fragmented, progressive, row};

    fn edit(duration: u64, media_time: i64) -> Edit {
        let rate = NORMAL_RATE;
        Edit {
            duration,
            media_time,
            rate,
        }
    }

    #[test]
    fn lists_that_are_one_window() {
        let window = |edits: &[Edit]| {
            let window = resolve(edits, 1000, 48_000).unwrap();
            (window.lead, window.start, window.end)
        };
        assert_eq!(window(&[]), (0, 0, None));
        assert_eq!(window(&[edit(0, 1024)]), (0, 1024, None));
        assert_eq!(window(&[edit(100, 1024)]), (0, 1024, Some(5824)));
        let late = [edit(500, -1), edit(250, -1), edit(100, 0)];
        assert_eq!(window(&late), (36_000, 0, Some(4800)));
        assert_eq!(window(&[edit(500, -1)]), (24_000, 0, None));
        assert_eq!(window(&[edit(100, 0), edit(100, -1)]), (0, 0, Some(4800)));
        // Contiguous, but for the rounding of lengths to milliseconds.
        assert_eq!(window(&[edit(100, 0), edit(100, 4823)]), (0, 0, Some(9623)));
    }

    #[test]
    fn lists_that_are_not() {
        let slow = Edit {
            rate: 0x8000,
            ..edit(100, 0)
        };
        for (edits, word) in [
            (vec![edit(100, 0), edit(100, 9600)], "several stretches"),
            (vec![edit(100, 0), edit(100, 0)], "several stretches"),
            (
                vec![edit(100, 0), edit(100, -1), edit(100, 4800)],
                "gap between",
            ),
            (vec![slow], "speed"),
        ] {
            let error = resolve(&edits, 1000, 48_000).unwrap_err();
            assert_eq!(error.kind, Kind::Unsupported, "{error}");
            assert!(error.what.contains(word), "{error}");
        }
        for edits in [[edit(1, -2)], [edit(1, i64::MAX)], [edit(u64::MAX, -1)]] {
            let error = resolve(&edits, 1000, 48_000).unwrap_err();
            assert_eq!(error.kind, Kind::Malformed, "{error}");
        }
        let error = resolve(&[edit(1, 0)], 0, 48_000).unwrap_err();
        assert!(error.what.contains("timescale is 0"), "{error}");
    }

    /// Key frames at every fourth sample, 512 ticks (40 ms) each, shown two frames later.
    fn video(edits: &[(u32, i32)]) -> MuxTrack {
        let rows = (0..24).map(|n| row(512, 1024, 10 + n, n % 4 == 0));
        MuxTrack {
            edits: edits.to_vec(),
            ..MuxTrack::video(1, rows.collect())
        }
    }

    /// 1024 ticks at 48 kHz each.
    fn audio(edits: &[(u32, i32)]) -> MuxTrack {
        let rows = (0..60).map(|n| row(1024, 0, 10 + n, true));
        MuxTrack {
            edits: edits.to_vec(),
            ..MuxTrack::audio(1, rows.collect())
        }
    }

    /// Samples kept (told by their sizes), origin, and when the first is shown.
    fn kept(track: MuxTrack) -> (Range<u32>, i64, i64) {
        let index = index_bytes(&progressive(&[track], &Layout::default()).file()).unwrap();
        let track = &index.tracks[0];
        let first = track.samples.get(0);
        let from = first.size - 10;
        assert_eq!(first.dts, 0);
        let shown = i64::from(first.cts) + track.origin;
        (from..from + track.samples.len(), track.origin, shown)
    }

    #[test]
    fn video_keeps_what_its_first_picture_needs() {
        assert_eq!(kept(video(&[])), (0..24, 0, 1024));
        assert_eq!(kept(video(&[(960, 1024)])), (0..24, -1024, 0));
        assert_eq!(
            kept(video(&[(500, -1), (960, 1024)])),
            (0..24, 6400 - 1024, 6400)
        );
        // The edit begins with sample 6, which needs those from 4 on.
        let from = 6 * 512 + 1024;
        assert_eq!(
            kept(video(&[(0, from)])),
            (4..24, 4 * 512 - i64::from(from), -1024)
        );
        // Within sample 7: it is still shown.
        assert_eq!(kept(video(&[(0, from + 700)])).0, 4..24);
        assert_eq!(kept(video(&[(0, from + 1024)])).0, 8..24);
    }

    #[test]
    fn what_is_only_there_to_decode_what_is_not_shown_is_no_track() {
        // Shown from sample 6 on, but for no longer than nothing.
        let track = audio(&[(1, 6 * 1024)]);
        let tracks = [track, video(&[])];
        let index = index_bytes(&progressive(&tracks, &Layout::default()).file()).unwrap();
        assert_eq!(index.tracks.len(), 1);
        assert!(
            index.notes[0].what.contains("shows none"),
            "{:?}",
            index.notes
        );
    }

    #[test]
    fn samples_after_the_edit_are_dropped() {
        assert_eq!(kept(video(&[(400, 1024)])).0, 0..10);
        // A millisecond of rounding, up or down, neither keeps nor drops a sample.
        assert_eq!(kept(video(&[(401, 1024)])).0, 0..10);
        assert_eq!(kept(video(&[(399, 1024)])).0, 0..10);
        assert_eq!(kept(video(&[(420, 1024)])).0, 0..11);
        assert_eq!(kept(audio(&[(64, 0)])).0, 0..3);
        assert_eq!(kept(audio(&[(65, 0)])).0, 0..3);
        assert_eq!(kept(audio(&[(70, 0)])).0, 0..4);
    }

    #[test]
    fn sound_keeps_a_quarter_second_of_pre_roll() {
        assert_eq!(kept(audio(&[(0, 1024)])), (0..60, -1024, -1024));
        let (range, origin, _) = kept(audio(&[(0, 30 * 1024)]));
        assert_eq!(range, 19..60, "11 frames of 21.3 ms are under 250 ms");
        assert_eq!(origin, -11 * 1024);
    }

    #[test]
    fn an_edit_beyond_the_end_shows_nothing() {
        let file = progressive(&[audio(&[(0, 60 * 1024)])], &Layout::default()).file();
        let error = index_bytes(&file).unwrap_err();
        assert_eq!(error.kind, Kind::Empty);
    }

    #[test]
    fn the_length_of_an_edit_means_nothing_in_fragments() {
        let track = MuxTrack {
            base: 9000,
            ..audio(&[(1, 9000 + 1024)])
        };
        let all = Fragment {
            base: Base::Moof,
            explicit: true,
            tfdt: true,
            stray: 0,
            trafs: vec![(0, vec![60])],
        };
        let index = index_bytes(&fragmented(&[track], 0, &[all]).file()).unwrap();
        assert_eq!(index.tracks[0].samples.len(), 60);
        assert_eq!(index.tracks[0].origin, -1024);
    }
}
