//! A transport stream from a segment's access units, some at a time.

use super::FrameSize;
use super::mux::Muxer;
use super::served::{frames, offset};
use crate::codec::Codec;
use crate::error::Result;
use crate::plan::{AccessUnit, AccessUnits};
use std::ops::Range;

/// A transport stream made in batches of whole access units: whoever reads the file needs a small
/// buffer only, and finds what it read still in the processor's cache. What comes out is what
/// [`super::wrap`] makes.
pub struct Batches<'a> {
    muxer: Muxer,
    segment: &'a AccessUnits,
    /// Units of the batches given out.
    given: usize,
    /// Whether there was one; the first comes even if it has no units.
    begun: bool,
    /// Runs of the file given out, and bytes of the one after them.
    run: usize,
    within: u64,
}

/// Access units that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Where in the file their bytes lie, one behind the other.
    pub ranges: Vec<Range<u64>>,
    units: Range<usize>,
}

impl<'a> Batches<'a> {
    /// Begins a segment.
    ///
    /// # Errors
    /// `Unsupported` for what does not go into TS.
    pub fn new(codec: &Codec, segment: &'a AccessUnits) -> Result<Batches<'a>> {
        Ok(Batches {
            muxer: Muxer::new(codec)?,
            segment,
            given: 0,
            begun: false,
            run: 0,
            within: 0,
        })
    }

    /// No more bytes than this come of the segment, whatever the samples hold.
    ///
    /// Exact but for a few packets if lengths of NAL units have four bytes, as in nearly all files; with
    /// shorter ones up to two and a half times the samples. Damaged tables can make it very long.
    pub fn len_max(&self) -> usize {
        let size = |unit: &AccessUnit| FrameSize {
            pts: offset(unit.pts),
            dts: offset(unit.dts),
            sync: unit.sync,
            size: unit.size,
        };
        self.muxer.len_max(self.segment.units.iter().map(size))
    }

    /// The next batch: as many units as have `most` bytes together, and one at least. None after the
    /// last.
    pub fn next(&mut self, most: u64) -> Option<Batch> {
        let rest = self.segment.units.get(self.given..)?;
        if std::mem::replace(&mut self.begun, true) && rest.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let fits = |unit: &&AccessUnit| {
            let first = bytes == 0;
            bytes += u64::from(unit.size);
            first || bytes <= most
        };
        let start = self.given;
        self.given += rest.iter().take_while(fits).count();
        let taken = rest.iter().take(self.given - start);
        let bytes = taken.map(|unit| u64::from(unit.size)).sum();
        Some(Batch {
            ranges: self.take(bytes),
            units: start..self.given,
        })
    }

    /// The next so many bytes of the runs.
    fn take(&mut self, mut bytes: u64) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        while bytes > 0
            && let Some(run) = self.segment.ranges.get(self.run)
        {
            let start = run.start + self.within;
            let end = run.end.min(start.saturating_add(bytes));
            bytes -= end - start;
            self.within += end - start;
            ranges.push(start..end);
            if end == run.end {
                (self.run, self.within) = (self.run + 1, 0);
            }
        }
        ranges
    }

    /// Writes what becomes of a batch to the begin of `out`, and says how much that is. `parts` are the
    /// bytes of its ranges, cut between units only. Batches are written in their order, each once;
    /// after an error none.
    ///
    /// # Errors
    /// `Truncated` where the parts are shorter than the units, `Malformed` where a NAL unit is longer
    /// than its sample, `TooLarge` where `out` is too short.
    pub fn write(&mut self, batch: &Batch, parts: &[&[u8]], out: &mut [u8]) -> Result<usize> {
        let units = &self.segment.units;
        let last = batch.units.end == units.len();
        let units = units.get(batch.units.clone()).unwrap_or_default();
        self.muxer.write(&frames(units, parts)?, last, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::bytes;
    use crate::codec::vectors::{AVC, HVC1_PQ, MP3};
    use crate::ts::wrap;
    use proptest::prelude::*;

    fn unit(n: usize, size: usize, sync: bool) -> AccessUnit {
        let dts = n as i64 * 3600;
        AccessUnit {
            pts: dts + 7200,
            dts,
            size: size as u32,
            sync,
        }
    }

    fn segment(ranges: Vec<Range<u64>>, units: Vec<AccessUnit>) -> AccessUnits {
        AccessUnits {
            file: 0,
            ranges,
            units,
        }
    }

    /// A file with a slice of each size, of which another track's bytes part those after `runs`.
    fn film(sizes: &[(usize, bool)], runs: &[usize]) -> (Vec<u8>, AccessUnits) {
        let (mut file, mut segment) = (vec![0xee; 5], segment(Vec::new(), Vec::new()));
        for (n, (size, sync)) in sizes.iter().enumerate() {
            let start = file.len() as u64;
            file.extend_from_slice(&(*size as u32).to_be_bytes());
            file.extend((0..*size).map(|at| if at == 0 { 0x41 } else { (at + n) as u8 }));
            segment.units.push(unit(n, 4 + size, *sync));
            let end = file.len() as u64;
            match segment.ranges.last_mut() {
                Some(run) if run.end == start => run.end = end,
                _ => segment.ranges.push(start..end),
            }
            if runs.contains(&n) {
                file.extend_from_slice(b"sound");
            }
        }
        (file, segment)
    }

    fn of<'f>(file: &'f [u8], ranges: &[Range<u64>]) -> Vec<&'f [u8]> {
        let of = |range: &Range<u64>| &file[range.start as usize..range.end as usize];
        ranges.iter().map(of).collect()
    }

    proptest! {
        #[test]
        fn batches_make_what_is_made_at_once(
            sizes in prop::collection::vec((prop_oneof![0usize..600, 1000usize..70_000], any::<bool>()), 1..12),
            runs in prop::collection::vec(0usize..12, 0..6),
            most in 0u64..200_000,
            hevc: bool,
        ) {
            let codec = Codec::parse(&bytes(if hevc { HVC1_PQ } else { AVC })).unwrap();
            let (file, segment) = film(&sizes, &runs);
            let whole = wrap(&codec, &segment, &of(&file, &segment.ranges)).unwrap();
            let mut batches = Batches::new(&codec, &segment).unwrap();
            let (mut out, mut len) = (vec![0x55; batches.len_max()], 0);
            while let Some(batch) = batches.next(most) {
                let bytes: u64 = batch.ranges.iter().map(|range| range.end - range.start).sum();
                prop_assert!(bytes <= most || batch.units.len() == 1);
                // One buffer, as who reads them has, or parts.
                let joined = of(&file, &batch.ranges).concat();
                let parts = if most % 2 == 0 { vec![&joined[..]] } else { of(&file, &batch.ranges) };
                len += batches.write(&batch, &parts, &mut out[len..]).unwrap();
            }
            prop_assert!(out[..len] == whole);
        }
    }

    #[test]
    fn a_segment_of_nothing_has_its_tables() {
        let codec = Codec::parse(&bytes(AVC)).unwrap();
        let segment = segment(Vec::new(), Vec::new());
        let mut batches = Batches::new(&codec, &segment).unwrap();
        let mut out = vec![0; batches.len_max()];
        let batch = batches.next(1).unwrap();
        assert_eq!(batch.ranges, []);
        assert_eq!(batches.write(&batch, &[], &mut out).unwrap(), out.len());
        assert_eq!(batches.next(1), None);
        assert_eq!(out, wrap(&codec, &segment, &[]).unwrap());
    }

    #[test]
    fn too_few_bytes_too_little_room_and_sound_are_errors() {
        let codec = Codec::parse(&bytes(AVC)).unwrap();
        let units = vec![unit(0, 0, true), unit(0, 6, true)];
        let segment = segment(vec![7..13, 90..95], units);
        let write = |bytes: &[u8], room: usize| {
            let mut batches = Batches::new(&codec, &segment).unwrap();
            let batch = batches.next(1).unwrap();
            assert_eq!(batch.ranges.first(), Some(&(7..13)));
            batches.write(&batch, &[bytes], &mut vec![0; room])
        };
        let sample = b"\0\0\0\x02\x41\x07";
        let whole = write(sample, 10_000).unwrap();
        assert_eq!(write(sample, whole).unwrap(), whole);
        assert!(write(sample, whole - 1).is_err());
        assert!(write(&sample[..5], 10_000).is_err());
        assert!(write(b"\0\0\0\x03\x41\x07", 10_000).is_err());
        assert!(Batches::new(&Codec::parse(&bytes(MP3)).unwrap(), &segment).is_err());
    }

    #[test]
    fn tables_of_any_numbers_are_only_long() {
        let codec = Codec::parse(&bytes(AVC)).unwrap();
        let huge = AccessUnit {
            pts: i64::MAX,
            dts: i64::MIN,
            size: u32::MAX,
            sync: true,
        };
        let segment = segment(vec![u64::MAX - 9..u64::MAX, 3..3], vec![huge; 3]);
        let mut batches = Batches::new(&codec, &segment).unwrap();
        assert!(batches.len_max() > 3 * u32::MAX as usize);
        let batch = batches.next(u64::MAX).unwrap();
        assert_eq!(batch.ranges, [u64::MAX - 9..u64::MAX, 3..3]);
        assert!(batches.write(&batch, &[&[0; 9]], &mut []).is_err());
        assert_eq!(batches.next(u64::MAX), None);
    }
}
