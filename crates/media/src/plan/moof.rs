//! Heads of media segments: `styp`, `moof` and the header of `mdat` (ISO/IEC 14496-12, 8.8).

use super::{Plan, TRACK_ID};
use crate::bytes::{write_box, write_full_box};
use crate::index::{Sample, SampleTable};
use crate::protection::SampleAuxiliary;
use std::ops::Range;

/// Consecutive samples that become one moof and one mdat.
pub(super) struct FragmentWriter<'a> {
    pub(super) shape: FragmentShape<'a>,
    /// Served decode time of the first sample, in ticks.
    pub(super) tfdt: u64,
    pub(super) sequence_number: u32,
    /// Encryption boxes of a protected track, which are written after `trun`.
    pub(super) auxiliary: Option<SampleAuxiliary>,
}

/// The properties that decide the length of a fragment.
pub(super) struct FragmentShape<'a> {
    pub(super) samples: &'a SampleTable,
    pub(super) sample_range: Range<u32>,
    /// Whether every sample is marked as a sync sample, regardless of the source's flags.
    pub(super) is_all_sync: bool,
    /// Ticks added to all composition offsets, so that the smallest served offset of the track is
    /// 0. FFmpeg treats a negative offset as a delay of the whole track, and shows the pictures too
    /// late by this delay.
    pub(super) composition_shift: i64,
    /// Duration of each sample in ticks; `None` keeps the durations of the source.
    pub(super) duration: Option<u32>,
}

/// `sample_depends_on` = 2: an I picture (8.8.3.1).
pub(crate) const SYNC: u32 = 0x0200_0000;
/// `sample_depends_on` = 1 and `sample_is_non_sync_sample`.
const NON_SYNC: u32 = 0x0101_0000;

/// Field values that all samples share. Shared values are stored once in `tfhd`, and other values
/// are stored per sample in `trun`.
struct SharedSampleFields {
    duration: Option<u32>,
    size: Option<u32>,
    flags: SampleFlagsPattern,
    /// Whether the served composition offset of every sample is 0.
    has_zero_offsets: bool,
}

#[derive(PartialEq, Eq)]
enum SampleFlagsPattern {
    All(u32),
    /// Only the first sample is a sync sample.
    FirstSync,
    Each,
}

/// `styp` of media segments (ISO/IEC 23000-19, 7.3.3.1).
pub(crate) const STYP: &[u8; 20] = b"\0\0\0\x14stypmsdh\0\0\0\0cmfs";
const MFHD_LEN: u64 = 16;
const TFDT_LEN: u64 = 20;

impl FragmentShape<'_> {
    /// Returns the length of the head and the samples in bytes, without building the head.
    pub(super) fn len(&self) -> u64 {
        let payload = self.samples.byte_count(self.sample_range.clone());
        self.head_len(&self.find_shared_sample_fields(), payload) + payload
    }

    fn find_shared_sample_fields(&self) -> SharedSampleFields {
        let count = self
            .sample_range
            .end
            .saturating_sub(self.sample_range.start);
        let flags = match count {
            _ if self.is_all_sync => SampleFlagsPattern::All(SYNC),
            count => match self.samples.count_sync_samples(self.sample_range.clone()) {
                (sync, _) if sync == count => SampleFlagsPattern::All(SYNC),
                (0, _) => SampleFlagsPattern::All(NON_SYNC),
                (1, true) => SampleFlagsPattern::FirstSync,
                _ => SampleFlagsPattern::Each,
            },
        };
        let range = || self.sample_range.clone();
        let composition_offset = self.samples.shared_composition_offset(range());
        SharedSampleFields {
            duration: self
                .duration
                .or_else(|| self.samples.shared_duration(range())),
            size: self.samples.shared_size(range()),
            flags,
            has_zero_offsets: composition_offset.is_some_and(|composition_offset| {
                self.served_composition_offset(composition_offset) == 0
            }),
        }
    }

    fn served_composition_offset(&self, composition_offset: i32) -> u32 {
        // Clamping changes a value only if the offsets of the track span more than 32 bits.
        (i64::from(composition_offset) + self.composition_shift).clamp(0, u32::MAX.into()) as u32
    }

    fn head_len(&self, shared: &SharedSampleFields, payload: u64) -> u64 {
        let count = u64::from(
            self.sample_range
                .end
                .saturating_sub(self.sample_range.start),
        );
        let tfhd = 16 + 4 * u64::from(shared.tfhd_flags().count_ones() - 1);
        let first = u64::from(shared.trun_flags() & 0x4 != 0);
        let each = u64::from((shared.trun_flags() & 0xf00).count_ones());
        let trun = 20 + 4 * (first + each * count);
        let moof = 8 + MFHD_LEN + 8 + tfhd + TFDT_LEN + trun;
        STYP.len() as u64 + moof + mdat_header_len(payload)
    }
}

impl FragmentWriter<'_> {
    pub(super) fn assemble_plan(&self, file: usize) -> Plan {
        let payload = self
            .shape
            .samples
            .byte_count(self.shape.sample_range.clone());
        let shared = self.shape.find_shared_sample_fields();
        let auxiliary_len = self.auxiliary.as_ref().map_or(0, SampleAuxiliary::len);
        let head_len = self.shape.head_len(&shared, payload) + auxiliary_len;
        let mut head = Vec::with_capacity(head_len as usize);
        let ranges = self.write_styp_and_moof(&mut head, &shared, head_len as u32);
        write_mdat_header(&mut head, payload);
        debug_assert_eq!(head.len() as u64, head_len);
        Plan {
            file_index: file,
            len: head.len() as u64 + payload,
            head,
            source_ranges: ranges,
        }
    }

    /// Writes `styp` and `moof`, and returns the source ranges of the samples.
    fn write_styp_and_moof(
        &self,
        out: &mut Vec<u8>,
        shared: &SharedSampleFields,
        data_offset: u32,
    ) -> Vec<Range<u64>> {
        // A segment of an interleaved film has about 16 chunks.
        let mut ranges = Vec::with_capacity(16);
        let FragmentShape {
            samples,
            sample_range: range,
            ..
        } = &self.shape;
        out.extend_from_slice(STYP);
        // The data offset counts from the start of `moof`.
        let data_offset = data_offset - STYP.len() as u32;
        write_box(out, b"moof", |out| {
            write_full_box(out, b"mfhd", 0, 0, |out| {
                write_u32(out, self.sequence_number)
            });
            write_box(out, b"traf", |out| {
                shared.write_tfhd(out);
                write_full_box(out, b"tfdt", 1, 0, |out| {
                    out.extend_from_slice(&self.tfdt.to_be_bytes());
                });
                // In version 0, composition offsets are unsigned. This suffices, because served
                // offsets are never negative.
                write_full_box(out, b"trun", 0, shared.trun_flags(), |out| {
                    write_u32(out, range.end.saturating_sub(range.start));
                    write_u32(out, data_offset);
                    if shared.flags == SampleFlagsPattern::FirstSync {
                        write_u32(out, SYNC);
                    }
                    for sample in samples.iter_range(range.clone()) {
                        self.write_trun_entry(out, shared, &sample);
                        append_range(&mut ranges, &sample);
                    }
                });
                if let Some(auxiliary) = &self.auxiliary {
                    auxiliary.write_auxiliary_boxes(out, STYP.len());
                }
            });
        });
        ranges
    }

    #[inline]
    fn write_trun_entry(&self, out: &mut Vec<u8>, shared: &SharedSampleFields, sample: &Sample) {
        if shared.duration.is_none() {
            write_u32(out, sample.duration);
        }
        if shared.size.is_none() {
            write_u32(out, sample.size);
        }
        if shared.flags == SampleFlagsPattern::Each {
            write_u32(out, if sample.is_sync { SYNC } else { NON_SYNC });
        }
        if !shared.has_zero_offsets {
            write_u32(
                out,
                self.shape
                    .served_composition_offset(sample.composition_offset),
            );
        }
    }
}

impl SharedSampleFields {
    fn tfhd_flags(&self) -> u32 {
        // default-base-is-moof, and one bit for each default that is present.
        0x2_0000
            | if self.duration.is_some() { 0x8 } else { 0 }
            | if self.size.is_some() { 0x10 } else { 0 }
            | if self.flags != SampleFlagsPattern::Each {
                0x20
            } else {
                0
            }
    }

    fn write_tfhd(&self, out: &mut Vec<u8>) {
        write_full_box(out, b"tfhd", 0, self.tfhd_flags(), |out| {
            write_u32(out, TRACK_ID);
            let flags = match self.flags {
                SampleFlagsPattern::All(flags) => Some(flags),
                SampleFlagsPattern::FirstSync => Some(NON_SYNC),
                SampleFlagsPattern::Each => None,
            };
            for default in [self.duration, self.size, flags].into_iter().flatten() {
                write_u32(out, default);
            }
        });
    }

    fn trun_flags(&self) -> u32 {
        // data-offset-present, and the bits of the fields that `trun` contains.
        0x1 | if self.flags == SampleFlagsPattern::FirstSync {
            0x4
        } else {
            0
        } | if self.duration.is_none() { 0x100 } else { 0 }
            | if self.size.is_none() { 0x200 } else { 0 }
            | if self.flags == SampleFlagsPattern::Each {
                0x400
            } else {
                0
            }
            | if self.has_zero_offsets { 0 } else { 0x800 }
    }
}

/// Appends the byte range of a sample, or extends the last range if the sample is adjacent to it.
pub(super) fn append_range(ranges: &mut Vec<Range<u64>>, sample: &Sample) {
    let end = sample.offset.saturating_add(sample.size.into());
    match ranges.last_mut() {
        _ if sample.size == 0 => {}
        Some(last) if last.end == sample.offset => last.end = end,
        _ => ranges.push(sample.offset..end),
    }
}

fn mdat_header_len(payload: u64) -> u64 {
    if payload + 8 > u64::from(u32::MAX) {
        16
    } else {
        8
    }
}

fn write_mdat_header(out: &mut Vec<u8>, payload: u64) {
    let header = mdat_header_len(payload);
    let short = u32::try_from(payload + header).ok().filter(|_| header == 8);
    write_u32(out, short.unwrap_or(1));
    out.extend_from_slice(b"mdat");
    if header == 16 {
        out.extend_from_slice(&(payload + header).to_be_bytes());
    }
}

fn write_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}
