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
const TIME_MAX: i64 = 1 << 60;

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
        let first = window.first(&samples, base, is_video, timescale)?;
        let end = window.last(&samples, base, first);
        if end <= first {
            return None;
        }
        let begin = base.saturating_add(i64::try_from(samples.dts(first)).unwrap_or(i64::MAX));
        let origin = begin - window.start + window.lead;
        if first == 0 && end == samples.len() {
            return Some((samples, origin));
        }
        Some((slice(&samples, first..end), origin))
    }

    /// The first sample to keep.
    fn first(&self, samples: &Samples, base: i64, is_video: bool, timescale: u32) -> Option<u32> {
        if self.start == 0 {
            return Some(0);
        }
        let shown = samples.range(0..samples.len()).position(|sample| {
            let end = shown_at(&sample, base).saturating_add(i64::from(sample.duration));
            end > self.start
        });
        let shown = u32::try_from(shown?).ok()?;
        if is_video || !samples.all_sync() {
            return Some(samples.sync_until(shown).unwrap_or(0));
        }
        let settle = Time::from_ms(PRE_ROLL_MS).floor_to(timescale);
        let mut first = shown;
        while first > 0 && shown_at(&samples.get(first - 1), base) >= self.start - settle {
            first -= 1;
        }
        Some(first)
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
