//! A segment as access units with clocks of 90 kHz: what transport streams and packed audio want.

use super::moof::extend;
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use std::ops::Range;

/// One access unit of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessUnit {
    /// When it is shown on the served timeline, in 1/90000 s.
    pub pts: i64,
    /// When it is decoded, never after `pts` and never negative.
    pub dts: i64,
    /// Bytes.
    pub size: u32,
    /// Whether decoding can start here.
    pub sync: bool,
}

/// The access units of one segment and where their bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessUnits {
    /// Which of the presentation's files the ranges are of.
    pub file: usize,
    /// Byte ranges of the file, in order; touching ones are merged. The units lie in them one
    /// after another.
    pub ranges: Vec<Range<u64>>,
    /// In decode order; their sizes add up to the ranges'.
    pub units: Vec<AccessUnit>,
}

impl Presentation {
    /// The access units of segment `n`, from 0. None past the last.
    pub fn units(&self, rendition: &Rendition, n: usize) -> AccessUnits {
        AccessUnits {
            file: rendition.file,
            ranges: self.ranges(rendition, n),
            units: self.unit_times(rendition, n).collect(),
        }
    }

    /// Where in the rendition's file segment `n` lies; touching ranges are merged. None past the
    /// last.
    pub fn ranges(&self, rendition: &Rendition, n: usize) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        let samples = self.samples_of(rendition, n);
        let samples = self.track(rendition).samples.range(samples);
        samples.for_each(|sample| extend(&mut ranges, &sample));
        ranges
    }

    /// The access units of segment `n`, without where they lie.
    pub(crate) fn unit_times<'a>(
        &'a self,
        rendition: &'a Rendition,
        n: usize,
    ) -> impl ExactSizeIterator<Item = AccessUnit> + 'a {
        let track = self.track(rendition);
        let all_sync = track.codec.audio().is_some();
        let clock = |ticks: i64| Time::new(ticks, track.timescale).round_to(90_000);
        let samples = track.samples.range(self.samples_of(rendition, n));
        samples.map(move |sample| {
            let decoded = rendition.start + sample.dts as i64 - i64::from(rendition.delay);
            AccessUnit {
                pts: clock(decoded + rendition.served_cts(sample.cts)),
                dts: clock(decoded),
                size: sample.size,
                sync: sample.sync || all_sync,
            }
        })
    }
}
