//! From names in URLs to segments and key frames, and back. All look-ups are logarithmic.

use super::{Presentation, Rendition};
use crate::time::Time;
use std::ops::Range;

/// Key frames closer to the one before them than this are not offered for trick play, in
/// seconds: more than one picture a second helps nobody, and all-intra films have many.
const KEY_SPACING_SECONDS: u64 = 1;

/// Renditions that begin no later than this after the first are as good as aligned.
const LEAD_MS: u64 = 250;

impl Presentation {
    /// When segment `n` begins: its name, in the track's ticks. Its `tfdt` is the rendition's
    /// delay before.
    pub fn segment_start(&self, rendition: &Rendition, n: usize) -> u64 {
        let sample = rendition.cuts.get(n).copied().unwrap_or(u32::MAX);
        self.served_time(rendition, sample)
    }

    /// Ticks that segment `n` lasts; 0 if there is none.
    pub fn segment_ticks(&self, rendition: &Rendition, n: usize) -> u64 {
        self.segment_start(rendition, n + 1) - self.segment_start(rendition, n)
    }

    /// The samples of segment `n`; an empty range past the last.
    pub fn samples_of(&self, rendition: &Rendition, n: usize) -> Range<u32> {
        let end = rendition.cuts.last().copied().unwrap_or(0);
        let cut = |n: usize| rendition.cuts.get(n).copied().unwrap_or(end);
        cut(n)..cut(n.saturating_add(1))
    }

    /// How long segment `n` is said to last (EXTINF). A rendition that begins more than 250 ms
    /// after the first one says so in its first segment, so that playlists stay aligned.
    pub fn segment_time(&self, rendition: &Rendition, n: usize) -> Time {
        let ticks =
            self.segment_ticks(rendition, n) + if n == 0 { self.lead(rendition) } else { 0 };
        Time::new(ticks as i64, self.track(rendition).timescale)
    }

    /// Ticks from the first rendition's start to this one's, where they are worth telling.
    pub(crate) fn lead(&self, rendition: &Rendition) -> u64 {
        let timescale = self.track(rendition).timescale;
        let earliest = self.renditions.iter().map(|other| self.starts(other)).min();
        let earliest = earliest.unwrap_or(Time::ZERO).round_to(timescale).max(0) as u64;
        let lead = self.segment_start(rendition, 0).saturating_sub(earliest);
        if lead * 1000 > u64::from(timescale) * LEAD_MS {
            lead
        } else {
            0
        }
    }

    /// The segment that begins exactly then.
    pub fn segment_at(&self, rendition: &Rendition, time: u64) -> Option<usize> {
        let n = self.segment_around(rendition, time)?;
        (self.segment_start(rendition, n) == time).then_some(n)
    }

    /// The trick-play key frame whose time is exactly this, as a sample number.
    pub fn key_at(&self, rendition: &Rendition, time: u64) -> Option<u32> {
        let n = self.segment_around(rendition, time)?;
        let mut keys = self.keys_of(rendition, n);
        keys.find(|key| self.served_time(rendition, *key) == time)
    }

    /// The key frames for trick play and I-frame playlists: the first of each segment, and the
    /// later ones in it at least a second apart.
    pub fn keys<'a>(&'a self, rendition: &'a Rendition) -> impl Iterator<Item = u32> + 'a {
        (0..rendition.segments()).flat_map(move |n| self.keys_of(rendition, n))
    }

    /// The trick-play key frame after `key`, or the number of samples after the last.
    pub fn key_after(&self, rendition: &Rendition, key: u32) -> u32 {
        let n = rendition.cuts.partition_point(|cut| *cut <= key);
        let mut later = self
            .keys_of(rendition, n.saturating_sub(1))
            .skip_while(|k| *k <= key);
        later
            .next()
            .or_else(|| rendition.cuts.get(n).copied())
            .unwrap_or(u32::MAX)
    }

    /// When a rendition's first sample is shown, on the served timeline.
    pub fn starts(&self, rendition: &Rendition) -> Time {
        let ticks = self.segment_start(rendition, 0);
        Time::new(ticks as i64, self.track(rendition).timescale)
    }

    /// Served time of a sample, by which it is named and listed: the rendition's delay after it
    /// is decoded. The end for numbers past the last.
    pub(crate) fn served_time(&self, rendition: &Rendition, sample: u32) -> u64 {
        let dts = self.track(rendition).samples.dts(sample);
        (rendition.start + dts as i64).max(0) as u64
    }

    /// The segment that holds this time.
    fn segment_around(&self, rendition: &Rendition, time: u64) -> Option<usize> {
        let starts = &rendition.cuts[..rendition.segments()];
        let after = starts.partition_point(|cut| self.served_time(rendition, *cut) <= time);
        after.checked_sub(1)
    }

    fn keys_of<'a>(&'a self, rendition: &'a Rendition, n: usize) -> impl Iterator<Item = u32> + 'a {
        let track = self.track(rendition);
        let spacing = KEY_SPACING_SECONDS * u64::from(track.timescale);
        let end = rendition.cuts.get(n + 1).copied().unwrap_or(0);
        let first = rendition.cuts.get(n).copied().filter(|_| end > 0);
        std::iter::successors(first, move |key| {
            let from = track.samples.dts(*key) + spacing;
            let mut at = track.samples.sync_from(*key + 1)?;
            // Mostly that is it; else the first sync sample decoded at `from` or later.
            if track.samples.dts(at) < from {
                at = track.samples.sync_from(track.samples.at_dts(from))?;
            }
            if track.samples.dts(at) < from {
                at = track.samples.sync_from(at + 1)?;
            }
            (at < end && track.samples.dts(at) < track.samples.end()).then_some(at)
        })
    }
}
