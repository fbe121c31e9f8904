//! Muxes the access units of a segment into a transport stream, in batches.

use super::FrameInfo;
use super::ts_muxer::TsMuxer;
use super::ts_or_packed_audio::{offset_timestamp, slice_frames};
use crate::codec::Codec;
use crate::error::Result;
use crate::plan::{PlannedAccessUnit, SegmentAccessUnits};
use std::ops::Range;

/// Muxes a segment in batches of whole access units.
///
/// The caller needs only a small buffer. When the muxer copies the bytes that the caller has just
/// read, these bytes are still in the processor's cache. The output equals the output of
/// [`super::mux_ts_or_packed_audio`].
pub struct BatchedMuxer<'a> {
    muxer: TsMuxer,
    segment: &'a SegmentAccessUnits,
    /// Number of units in all batches that were returned.
    units_taken: usize,
    /// Whether a batch was returned. A segment without units has one empty batch.
    is_started: bool,
    /// Number of completely used source ranges, and number of used bytes of the next range.
    range_index: usize,
    range_bytes_taken: u64,
}

/// Consecutive access units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessUnitBatch {
    /// Byte ranges of the file that contain the units, one after another.
    pub source_ranges: Vec<Range<u64>>,
    units: Range<usize>,
}

impl<'a> BatchedMuxer<'a> {
    /// Starts a segment.
    ///
    /// # Errors
    /// `Unsupported` for codecs other than AVC and HEVC.
    pub fn new(codec: &Codec, segment: &'a SegmentAccessUnits) -> Result<BatchedMuxer<'a>> {
        Ok(BatchedMuxer {
            muxer: TsMuxer::new(codec)?,
            segment,
            units_taken: 0,
            is_started: false,
            range_index: 0,
            range_bytes_taken: 0,
        })
    }

    /// Returns the maximum length of the segment in bytes, for any content of the samples.
    ///
    /// In nearly all files, the length fields of NAL units have four bytes. The maximum then
    /// exceeds the real length by only a few packets. With shorter length fields, the maximum is up
    /// to two and a half times the size of the samples. With damaged sample tables, the maximum can
    /// be very large.
    pub fn segment_len_max(&self) -> usize {
        let size = |unit: &PlannedAccessUnit| FrameInfo {
            pts: offset_timestamp(unit.pts),
            dts: offset_timestamp(unit.dts),
            is_sync: unit.is_sync,
            size: unit.size,
        };
        self.muxer.len_max(self.segment.units.iter().map(size))
    }

    /// Returns the next batch. It contains as many units as fit into `most` source bytes, but at
    /// least one unit. `None` after the last batch.
    pub fn plan_next_batch(&mut self, most: u64) -> Option<AccessUnitBatch> {
        let rest = self.segment.units.get(self.units_taken..)?;
        if std::mem::replace(&mut self.is_started, true) && rest.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let fits = |unit: &&PlannedAccessUnit| {
            let first = bytes == 0;
            bytes += u64::from(unit.size);
            first || bytes <= most
        };
        let start = self.units_taken;
        self.units_taken += rest.iter().take_while(fits).count();
        let taken = rest.iter().take(self.units_taken - start);
        let bytes = taken.map(|unit| u64::from(unit.size)).sum();
        Some(AccessUnitBatch {
            source_ranges: self.take_ranges(bytes),
            units: start..self.units_taken,
        })
    }

    /// Returns the byte ranges of the next `bytes` bytes of the source ranges.
    fn take_ranges(&mut self, mut bytes: u64) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        while bytes > 0
            && let Some(run) = self.segment.source_ranges.get(self.range_index)
        {
            let start = run.start + self.range_bytes_taken;
            let end = run.end.min(start.saturating_add(bytes));
            bytes -= end - start;
            self.range_bytes_taken += end - start;
            ranges.push(start..end);
            if end == run.end {
                (self.range_index, self.range_bytes_taken) = (self.range_index + 1, 0);
            }
        }
        ranges
    }

    /// Writes a batch to the start of `out` and returns the number of written bytes.
    ///
    /// `parts` are the bytes of the batch's source ranges. A boundary between two parts must not be
    /// within an access unit. Write each batch once and in order. Write no batch after an error.
    ///
    /// # Errors
    /// `Truncated` if the parts are shorter than the units, `Malformed` if a NAL unit is longer
    /// than its sample, `TooLarge` if `out` is too short.
    pub fn write_batch(
        &mut self,
        batch: &AccessUnitBatch,
        parts: &[&[u8]],
        out: &mut [u8],
    ) -> Result<usize> {
        let units = &self.segment.units;
        let last = batch.units.end == units.len();
        let units = units.get(batch.units.clone()).unwrap_or_default();
        self.muxer
            .write_frames(&slice_frames(units, parts)?, last, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::sample_entry_vectors::{AVC, HVC1_PQ, MP3};
    use crate::codec::tests::decode_hex;
    use crate::ts::mux_ts_or_packed_audio;
    use proptest::prelude::*;

    fn new_unit(n: usize, size: usize, sync: bool) -> PlannedAccessUnit {
        let dts = n as i64 * 3600;
        PlannedAccessUnit {
            pts: dts + 7200,
            dts,
            size: size as u32,
            is_sync: sync,
        }
    }

    fn build_segment(ranges: Vec<Range<u64>>, units: Vec<PlannedAccessUnit>) -> SegmentAccessUnits {
        SegmentAccessUnits {
            file_index: 0,
            source_ranges: ranges,
            units,
        }
    }

    /// Builds a file with one slice for each of `sizes`. After the slices whose numbers are in
    /// `runs`, bytes of another track follow.
    fn build_film(sizes: &[(usize, bool)], runs: &[usize]) -> (Vec<u8>, SegmentAccessUnits) {
        let (mut file, mut segment) = (vec![0xee; 5], build_segment(Vec::new(), Vec::new()));
        for (n, (size, sync)) in sizes.iter().enumerate() {
            let start = file.len() as u64;
            file.extend_from_slice(&(*size as u32).to_be_bytes());
            file.extend((0..*size).map(|at| if at == 0 { 0x41 } else { (at + n) as u8 }));
            segment.units.push(new_unit(n, 4 + size, *sync));
            let end = file.len() as u64;
            match segment.source_ranges.last_mut() {
                Some(run) if run.end == start => run.end = end,
                _ => segment.source_ranges.push(start..end),
            }
            if runs.contains(&n) {
                file.extend_from_slice(b"sound");
            }
        }
        (file, segment)
    }

    fn slice_file<'f>(file: &'f [u8], ranges: &[Range<u64>]) -> Vec<&'f [u8]> {
        let slice_range = |range: &Range<u64>| &file[range.start as usize..range.end as usize];
        ranges.iter().map(slice_range).collect()
    }

    proptest! {
        #[test]
        fn batches_equal_a_segment_muxed_at_once(
            sizes in prop::collection::vec((prop_oneof![0usize..600, 1000usize..70_000], any::<bool>()), 1..12),
            runs in prop::collection::vec(0usize..12, 0..6),
            most in 0u64..200_000,
            hevc: bool,
        ) {
            let codec = Codec::from_sample_entry(&decode_hex(if hevc { HVC1_PQ } else { AVC })).unwrap();
            let (file, segment) = build_film(&sizes, &runs);
            let whole = mux_ts_or_packed_audio(&codec, &segment, &slice_file(&file, &segment.source_ranges)).unwrap();
            let mut batches = BatchedMuxer::new(&codec, &segment).unwrap();
            let (mut out, mut len) = (vec![0x55; batches.segment_len_max()], 0);
            while let Some(batch) = batches.plan_next_batch(most) {
                let bytes: u64 = batch.source_ranges.iter().map(|range| range.end - range.start).sum();
                prop_assert!(bytes <= most || batch.units.len() == 1);
                // Passes the bytes either as one buffer, as after a file read, or as several parts.
                let joined = slice_file(&file, &batch.source_ranges).concat();
                let parts = if most % 2 == 0 { vec![&joined[..]] } else { slice_file(&file, &batch.source_ranges) };
                len += batches.write_batch(&batch, &parts, &mut out[len..]).unwrap();
            }
            prop_assert!(out[..len] == whole);
        }
    }

    #[test]
    fn an_empty_segment_has_its_tables() {
        let codec = Codec::from_sample_entry(&decode_hex(AVC)).unwrap();
        let segment = build_segment(Vec::new(), Vec::new());
        let mut batches = BatchedMuxer::new(&codec, &segment).unwrap();
        let mut out = vec![0; batches.segment_len_max()];
        let batch = batches.plan_next_batch(1).unwrap();
        assert_eq!(batch.source_ranges, []);
        assert_eq!(
            batches.write_batch(&batch, &[], &mut out).unwrap(),
            out.len()
        );
        assert_eq!(batches.plan_next_batch(1), None);
        assert_eq!(out, mux_ts_or_packed_audio(&codec, &segment, &[]).unwrap());
    }

    #[test]
    fn too_few_bytes_too_little_room_and_sound_are_errors() {
        let codec = Codec::from_sample_entry(&decode_hex(AVC)).unwrap();
        let units = vec![new_unit(0, 0, true), new_unit(0, 6, true)];
        let segment = build_segment(vec![7..13, 90..95], units);
        let write = |bytes: &[u8], room: usize| {
            let mut batches = BatchedMuxer::new(&codec, &segment).unwrap();
            let batch = batches.plan_next_batch(1).unwrap();
            assert_eq!(batch.source_ranges.first(), Some(&(7..13)));
            batches.write_batch(&batch, &[bytes], &mut vec![0; room])
        };
        let sample = b"\0\0\0\x02\x41\x07";
        let whole = write(sample, 10_000).unwrap();
        assert_eq!(write(sample, whole).unwrap(), whole);
        assert!(write(sample, whole - 1).is_err());
        assert!(write(&sample[..5], 10_000).is_err());
        assert!(write(b"\0\0\0\x03\x41\x07", 10_000).is_err());
        assert!(
            BatchedMuxer::new(
                &Codec::from_sample_entry(&decode_hex(MP3)).unwrap(),
                &segment
            )
            .is_err()
        );
    }

    #[test]
    fn extreme_tables_only_give_long_estimates() {
        let codec = Codec::from_sample_entry(&decode_hex(AVC)).unwrap();
        let huge = PlannedAccessUnit {
            pts: i64::MAX,
            dts: i64::MIN,
            size: u32::MAX,
            is_sync: true,
        };
        let segment = build_segment(vec![u64::MAX - 9..u64::MAX, 3..3], vec![huge; 3]);
        let mut batches = BatchedMuxer::new(&codec, &segment).unwrap();
        assert!(batches.segment_len_max() > 3 * u32::MAX as usize);
        let batch = batches.plan_next_batch(u64::MAX).unwrap();
        assert_eq!(batch.source_ranges, [u64::MAX - 9..u64::MAX, 3..3]);
        assert!(batches.write_batch(&batch, &[&[0; 9]], &mut []).is_err());
        assert_eq!(batches.plan_next_batch(u64::MAX), None);
    }
}
