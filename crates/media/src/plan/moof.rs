//! Heads of media segments: styp, moof and the header of mdat (ISO/IEC 14496-12, 8.8).

use super::Plan;
use crate::bytes::{write_box, write_full_box};
use crate::index::{Sample, Samples};
use std::ops::Range;

/// The only track of every segment and init segment.
pub(super) const TRACK_ID: u32 = 1;

/// Consecutive samples that become one moof and one mdat.
pub(super) struct Fragment<'a> {
    pub(super) shape: Shape<'a>,
    /// Served decode time of the first sample.
    pub(super) tfdt: u64,
    pub(super) sequence: u32,
}

/// What decides the length of a fragment.
pub(super) struct Shape<'a> {
    pub(super) samples: &'a Samples,
    pub(super) range: Range<u32>,
    /// Overrides the source's flags: decoding can start at every sample.
    pub(super) all_sync: bool,
    /// Added to composition offsets: the track's smallest is served as 0. FFmpeg takes a negative
    /// one for a delay of the whole track, and shows its pictures that much after the sound.
    pub(super) cts_shift: i64,
    /// Overrides the source's durations.
    pub(super) duration: Option<u32>,
}

/// `sample_depends_on` = 2: an I picture (8.8.3.1).
const SYNC: u32 = 0x0200_0000;
/// `sample_depends_on` = 1 and `sample_is_non_sync_sample`.
const NON_SYNC: u32 = 0x0101_0000;

/// What the samples of a fragment share is said once in tfhd, the rest a sample in trun.
struct Layout {
    duration: Option<u32>,
    size: Option<u32>,
    flags: Flags,
    /// Whether all are shown when decoded.
    no_cts: bool,
}

#[derive(PartialEq, Eq)]
enum Flags {
    All(u32),
    /// The first is a sync sample and the others are not.
    FirstSync,
    Each,
}

const STYP: &[u8; 20] = b"\0\0\0\x14stypmsdh\0\0\0\0cmfs";
const MFHD_LEN: u64 = 16;
const TFDT_LEN: u64 = 20;

impl Shape<'_> {
    /// Length of head and samples together, by arithmetic.
    pub(super) fn len(&self) -> u64 {
        let payload = self.samples.bytes(self.range.clone());
        self.head_len(&self.layout(), payload) + payload
    }

    fn layout(&self) -> Layout {
        let count = self.range.end.saturating_sub(self.range.start);
        let flags = match count {
            _ if self.all_sync => Flags::All(SYNC),
            count => match self.samples.sync_in(self.range.clone()) {
                (sync, _) if sync == count => Flags::All(SYNC),
                (0, _) => Flags::All(NON_SYNC),
                (1, true) => Flags::FirstSync,
                _ => Flags::Each,
            },
        };
        let range = || self.range.clone();
        let cts = self.samples.shared_cts(range());
        Layout {
            duration: self
                .duration
                .or_else(|| self.samples.shared_duration(range())),
            size: self.samples.shared_size(range()),
            flags,
            no_cts: cts.is_some_and(|cts| self.served_cts(cts) == 0),
        }
    }

    fn served_cts(&self, cts: i32) -> u32 {
        // In range, unless offsets span more than 32 bits can say.
        (i64::from(cts) + self.cts_shift).clamp(0, u32::MAX.into()) as u32
    }

    fn head_len(&self, layout: &Layout, payload: u64) -> u64 {
        let count = u64::from(self.range.end.saturating_sub(self.range.start));
        let tfhd = 16 + 4 * u64::from(layout.tfhd_flags().count_ones() - 1);
        let first = u64::from(layout.trun_flags() & 0x4 != 0);
        let each = u64::from((layout.trun_flags() & 0xf00).count_ones());
        let trun = 20 + 4 * (first + each * count);
        let moof = 8 + MFHD_LEN + 8 + tfhd + TFDT_LEN + trun;
        STYP.len() as u64 + moof + mdat_header_len(payload)
    }
}

impl Fragment<'_> {
    pub(super) fn plan(&self, file: usize) -> Plan {
        let payload = self.shape.samples.bytes(self.shape.range.clone());
        let layout = self.shape.layout();
        let head_len = self.shape.head_len(&layout, payload);
        let mut head = Vec::with_capacity(head_len as usize);
        let ranges = self.write(&mut head, &layout, head_len as u32);
        write_mdat_header(&mut head, payload);
        debug_assert_eq!(head.len() as u64, head_len);
        Plan {
            file,
            len: head.len() as u64 + payload,
            head,
            ranges,
        }
    }

    /// Writes styp and moof, and gives the ranges of the source that the samples are in.
    fn write(&self, out: &mut Vec<u8>, layout: &Layout, data_offset: u32) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        let Shape { samples, range, .. } = &self.shape;
        out.extend_from_slice(STYP);
        // Counted from the start of moof.
        let data_offset = data_offset - STYP.len() as u32;
        write_box(out, b"moof", |out| {
            write_full_box(out, b"mfhd", 0, 0, |out| put(out, self.sequence));
            write_box(out, b"traf", |out| {
                layout.write_tfhd(out);
                write_full_box(out, b"tfdt", 1, 0, |out| {
                    out.extend_from_slice(&self.tfdt.to_be_bytes());
                });
                // Version 0: offsets are unsigned, as all of ours are.
                write_full_box(out, b"trun", 0, layout.trun_flags(), |out| {
                    put(out, range.end.saturating_sub(range.start));
                    put(out, data_offset);
                    if layout.flags == Flags::FirstSync {
                        put(out, SYNC);
                    }
                    for sample in samples.range(range.clone()) {
                        self.write_sample(out, layout, &sample);
                        extend(&mut ranges, &sample);
                    }
                });
            });
        });
        ranges
    }

    fn write_sample(&self, out: &mut Vec<u8>, layout: &Layout, sample: &Sample) {
        if layout.duration.is_none() {
            put(out, sample.duration);
        }
        if layout.size.is_none() {
            put(out, sample.size);
        }
        if layout.flags == Flags::Each {
            put(out, if sample.sync { SYNC } else { NON_SYNC });
        }
        if !layout.no_cts {
            put(out, self.shape.served_cts(sample.cts));
        }
    }
}

impl Layout {
    fn tfhd_flags(&self) -> u32 {
        // default-base-is-moof, and which defaults are there.
        0x2_0000
            | if self.duration.is_some() { 0x8 } else { 0 }
            | if self.size.is_some() { 0x10 } else { 0 }
            | if self.flags != Flags::Each { 0x20 } else { 0 }
    }

    fn write_tfhd(&self, out: &mut Vec<u8>) {
        write_full_box(out, b"tfhd", 0, self.tfhd_flags(), |out| {
            put(out, TRACK_ID);
            let flags = match self.flags {
                Flags::All(flags) => Some(flags),
                Flags::FirstSync => Some(NON_SYNC),
                Flags::Each => None,
            };
            for default in [self.duration, self.size, flags].into_iter().flatten() {
                put(out, default);
            }
        });
    }

    fn trun_flags(&self) -> u32 {
        // data-offset, and which fields there are a sample.
        0x1 | if self.flags == Flags::FirstSync {
            0x4
        } else {
            0
        } | if self.duration.is_none() { 0x100 } else { 0 }
            | if self.size.is_none() { 0x200 } else { 0 }
            | if self.flags == Flags::Each { 0x400 } else { 0 }
            | if self.no_cts { 0 } else { 0x800 }
    }
}

/// Adds a sample's bytes, to the last range if they touch.
pub(super) fn extend(ranges: &mut Vec<Range<u64>>, sample: &Sample) {
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
    put(out, short.unwrap_or(1));
    out.extend_from_slice(b"mdat");
    if header == 16 {
        out.extend_from_slice(&(payload + header).to_be_bytes());
    }
}

fn put(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}
