//! Segments as access units with 90 kHz times, for transport streams and packed audio.

use super::moof::append_range;
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use std::ops::Range;

/// One access unit of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedAccessUnit {
    /// Presentation time on the served timeline, in 1/90000 s.
    pub pts: i64,
    /// Decode time in 1/90000 s; never after `pts` and never negative.
    pub dts: i64,
    /// Size in bytes.
    pub size: u32,
    /// Whether decoding can start at this unit.
    pub is_sync: bool,
}

/// The access units of one segment and their byte ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentAccessUnits {
    /// Index into [`Presentation::files`] of the file that contains the ranges.
    pub file_index: usize,
    /// Byte ranges of the file, which contain the units one after another. Adjacent ranges are
    /// merged.
    pub source_ranges: Vec<Range<u64>>,
    /// Units in decode order. The sum of the units' sizes is the total length of the ranges.
    pub units: Vec<PlannedAccessUnit>,
}

impl Presentation {
    /// Returns the access units of segment `n`, counted from 0. Past the last segment, there are no
    /// units.
    pub fn plan_access_units(&self, rendition: &Rendition, n: usize) -> SegmentAccessUnits {
        SegmentAccessUnits {
            file_index: rendition.file_index,
            source_ranges: self.segment_ranges(rendition, n),
            units: self.access_unit_times(rendition, n).collect(),
        }
    }

    /// Returns the byte ranges of segment `n` in the rendition's file. Past the last segment, there
    /// are no ranges. Adjacent ranges are merged.
    pub fn segment_ranges(&self, rendition: &Rendition, n: usize) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        let samples = self.segment_samples(rendition, n);
        let samples = self.track(rendition).samples.iter_range(samples);
        samples.for_each(|sample| append_range(&mut ranges, &sample));
        ranges
    }

    /// Iterates over the access units of segment `n`, without their byte ranges.
    pub(crate) fn access_unit_times<'a>(
        &'a self,
        rendition: &'a Rendition,
        n: usize,
    ) -> impl ExactSizeIterator<Item = PlannedAccessUnit> + 'a {
        let track = self.track(rendition);
        let all_sync = track.codec.audio().is_some();
        let clock = |ticks: i64| Time::new(ticks, track.timescale).round_to(90_000);
        let samples = track.samples.iter_range(self.segment_samples(rendition, n));
        samples.map(move |sample| {
            let decoded =
                rendition.start_ticks + sample.dts as i64 - i64::from(rendition.decode_delay);
            PlannedAccessUnit {
                pts: clock(
                    decoded + rendition.served_composition_offset(sample.composition_offset),
                ),
                dts: clock(decoded),
                size: sample.size,
                is_sync: sample.is_sync || all_sync,
            }
        })
    }
}
