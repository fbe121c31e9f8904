//! A segment as it will be sent: head bytes that we make, source ranges, and the exact length.

pub(crate) mod init;
mod moof;
#[cfg(test)]
mod tests;
mod units;

pub use units::{AccessUnit, AccessUnits};

use crate::index::Track;
use crate::presentation::{Presentation, Rendition};
use moof::Fragment;
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
        let fragment = self.fragment(rendition, n);
        fragment.plan(rendition.file)
    }

    /// Length in bytes of what [`Presentation::segment`] plans, without planning it.
    pub fn segment_len(&self, rendition: &Rendition, n: usize) -> u64 {
        self.fragment(rendition, n).len()
    }

    /// One key frame as a CMAF fragment of its own, lasting until the next one that
    /// [`Presentation::keys`] lists.
    pub fn key_segment(&self, rendition: &Rendition, key: u32) -> Plan {
        let next = self.key_after(rendition, key);
        self.key_fragment(rendition, key, next).plan(rendition.file)
    }

    /// Length in bytes of what [`Presentation::key_segment`] plans, where `next` is the key frame
    /// after `key`.
    pub(crate) fn key_segment_len(&self, rendition: &Rendition, key: u32, next: u32) -> u64 {
        self.key_fragment(rendition, key, next).len()
    }

    fn fragment<'a>(&'a self, rendition: &'a Rendition, n: usize) -> Fragment<'a> {
        self.fragment_of(rendition, self.samples_of(rendition, n), n as u32)
    }

    fn key_fragment<'a>(&'a self, rendition: &'a Rendition, key: u32, next: u32) -> Fragment<'a> {
        let from = self.served_time(rendition, key);
        let ticks = self.served_time(rendition, next).saturating_sub(from);
        Fragment {
            duration: Some(u32::try_from(ticks).unwrap_or(u32::MAX)),
            all_sync: true,
            ..self.fragment_of(rendition, key..key.saturating_add(1), key)
        }
    }

    fn fragment_of<'a>(
        &'a self,
        rendition: &'a Rendition,
        range: Range<u32>,
        n: u32,
    ) -> Fragment<'a> {
        let track: &Track = self.track(rendition);
        Fragment {
            samples: &track.samples,
            // Decoding can start at every frame of sound that we package, whatever flags say.
            all_sync: track.codec.audio().is_some(),
            tfdt: self
                .served_time(rendition, range.start)
                .saturating_sub(rendition.delay.into()),
            cts_shift: rendition.served_cts(0),
            sequence: n.wrapping_add(1),
            duration: None,
            range,
        }
    }
}
