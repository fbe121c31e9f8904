//! A segment as it will be sent: head bytes that we make, source ranges, and the exact length.

pub(crate) mod init;
mod moof;
#[cfg(test)]
mod tests;
mod units;

pub use units::{AccessUnit, AccessUnits};

use crate::index::Track;
use crate::presentation::{Presentation, Rendition};
use moof::{Fragment, Shape};
use std::ops::Range;

/// How to make one response. Known before any media byte is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Which of the presentation's files the ranges are of.
    pub file: usize,
    /// Bytes that go first: styp, moof and the header of mdat.
    pub head: Vec<u8>,
    /// Byte ranges of the file that follow, in order; touching ones are merged.
    pub ranges: Vec<Range<u64>>,
    /// Length of the whole, in bytes.
    pub len: u64,
}

impl Presentation {
    /// The CMAF init segment (ISO/IEC 23000-19, 7.3.1) of a rendition.
    pub fn init(&self, rendition: &Rendition) -> Vec<u8> {
        init::segment(self.track(rendition))
    }

    /// CMAF media segment `n`, from 0: one fragment. Empty past the last.
    pub fn segment(&self, rendition: &Rendition, n: usize) -> Plan {
        let shape = self.shape(rendition, self.samples_of(rendition, n));
        let fragment = self.fragment(rendition, shape, n as u32);
        fragment.plan(rendition.file)
    }

    /// Length in bytes of what [`Presentation::segment`] plans, without planning it.
    pub fn segment_len(&self, rendition: &Rendition, n: usize) -> u64 {
        self.shape(rendition, self.samples_of(rendition, n)).len()
    }

    /// One key frame as a CMAF fragment of its own, lasting until the next one that
    /// [`Presentation::keys`] lists.
    pub fn key_segment(&self, rendition: &Rendition, key: u32) -> Plan {
        let next = self.key_after(rendition, key);
        let from = self.served_time(rendition, key);
        let ticks = self.served_time(rendition, next).saturating_sub(from);
        let shape = self.key_shape(rendition, key, u32::try_from(ticks).unwrap_or(u32::MAX));
        let fragment = self.fragment(rendition, shape, key);
        fragment.plan(rendition.file)
    }

    /// Length in bytes of what [`Presentation::key_segment`] plans.
    pub(crate) fn key_segment_len(&self, rendition: &Rendition, key: u32) -> u64 {
        // However long it lasts, that is said in as many bytes.
        self.key_shape(rendition, key, 0).len()
    }

    fn key_shape<'a>(&'a self, rendition: &'a Rendition, key: u32, ticks: u32) -> Shape<'a> {
        Shape {
            duration: Some(ticks),
            all_sync: true,
            ..self.shape(rendition, key..key.saturating_add(1))
        }
    }

    fn shape<'a>(&'a self, rendition: &'a Rendition, range: Range<u32>) -> Shape<'a> {
        let track: &Track = self.track(rendition);
        Shape {
            samples: &track.samples,
            // Decoding can start at every frame of sound that we package, whatever flags say.
            all_sync: track.codec.audio().is_some(),
            cts_shift: rendition.served_cts(0),
            duration: None,
            range,
        }
    }

    /// Fragment `n` of a rendition.
    fn fragment<'a>(&self, rendition: &Rendition, shape: Shape<'a>, n: u32) -> Fragment<'a> {
        let time = self.served_time(rendition, shape.range.start);
        Fragment {
            shape,
            tfdt: time.saturating_sub(rendition.delay.into()),
            sequence: n.wrapping_add(1),
        }
    }
}
