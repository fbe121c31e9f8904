//! Writes fragmented files: a `moov`, followed by pairs of `moof` and `mdat`.

use super::{
    ProgressiveLayout, SyntheticMediaFile, SyntheticTrack, build_synthetic_progressive, write_words,
};
use crate::bytes::{write_box, write_full_box};
use crate::index::Sample;

/// Base of the data offsets in `trun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetBase {
    Absolute,
    Moof,
    Implicit,
}

/// One fragment: a `moof` and its `mdat`.
#[derive(Debug, Clone)]
pub struct SyntheticFragment {
    pub offset_base: OffsetBase,
    /// Whether `trun` contains all fields of each sample. Otherwise, `tfhd` contains the values
    /// that all samples share.
    pub has_explicit_fields: bool,
    pub has_tfdt: bool,
    /// Bit mask that selects the [`STRAY`] boxes in front of the `moof`.
    pub stray_boxes: u8,
    /// For each `traf`, the index of its track, and the number of samples in each run.
    pub trafs: Vec<(usize, Vec<u32>)>,
}

const STRAY: [&[u8; 4]; 6] = [b"styp", b"prft", b"emsg", b"free", b"uuid", b"meta"];

/// Writes an `ftyp`, a `moov` with the first `in_moov` samples of each track, and fragments.
pub fn mux_fragmented(
    tracks: &[SyntheticTrack],
    in_moov: u32,
    fragments: &[SyntheticFragment],
) -> SyntheticMediaFile {
    let heads: Vec<SyntheticTrack> = tracks
        .iter()
        .map(|track| truncate_track(track, in_moov))
        .collect();
    let layout = ProgressiveLayout {
        moov_first: true,
        has_mvex: true,
        ..ProgressiveLayout::default()
    };
    let start = build_synthetic_progressive(&heads, &layout);
    let mut file = start.to_bytes();
    let mut expected = start.expected_samples;
    let mut cursor = FragmentCursor::new(&expected);
    for fragment in fragments {
        for (n, name) in STRAY.iter().enumerate() {
            if fragment.stray_boxes & (1 << n) != 0 {
                write_box(&mut file, name, |out| out.extend([7; 21]));
            }
        }
        append_fragment(&mut file, tracks, fragment, &mut cursor);
        for (track, row) in cursor.rows.drain(..) {
            expected[track].push(row);
        }
    }
    SyntheticMediaFile {
        bytes_before_media: file,
        media_len: 0,
        bytes_after_media: Vec::new(),
        expected_samples: expected,
    }
}

fn truncate_track(track: &SyntheticTrack, samples: u32) -> SyntheticTrack {
    let mut track = track.clone();
    track.rows.truncate(samples as usize);
    track
}

/// The number of samples that are already written of each track, and the samples of the current
/// fragment.
#[derive(Clone)]
struct FragmentCursor {
    /// For each track, the number of written samples and their total duration in ticks.
    done: Vec<(usize, u64)>,
    rows: Vec<(usize, Sample)>,
}

impl FragmentCursor {
    fn new(expected: &[Vec<Sample>]) -> FragmentCursor {
        let ticks = |rows: &Vec<Sample>| rows.iter().map(|row| u64::from(row.duration)).sum();
        FragmentCursor {
            done: expected
                .iter()
                .map(|rows| (rows.len(), ticks(rows)))
                .collect(),
            rows: Vec::new(),
        }
    }

    fn record_sample(&mut self, track: usize, row: &Sample, offset: u64) {
        let (done, dts) = &mut self.done[track];
        let dts_now = *dts;
        *done += 1;
        *dts += u64::from(row.duration);
        let dts = dts_now;
        self.rows.push((
            track,
            Sample {
                dts,
                offset,
                ..*row
            },
        ));
    }
}

fn append_fragment(
    file: &mut Vec<u8>,
    tracks: &[SyntheticTrack],
    fragment: &SyntheticFragment,
    cursor: &mut FragmentCursor,
) {
    let at = file.len() as u64;
    let size = write_moof(at, 0, tracks, fragment, &mut cursor.clone()).len() as u64;
    file.extend(write_moof(at, at + size + 8, tracks, fragment, cursor));
    let media: usize = cursor.rows.iter().map(|(_, row)| row.size as usize).sum();
    write_box(file, b"mdat", |out| out.resize(out.len() + media, 0));
}

fn write_moof(
    at: u64,
    media: u64,
    tracks: &[SyntheticTrack],
    fragment: &SyntheticFragment,
    cursor: &mut FragmentCursor,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut next = media;
    write_box(&mut out, b"moof", |out| {
        write_full_box(out, b"mfhd", 0, 0, |out| write_words(out, &[1]));
        for (n, (track, runs)) in fragment.trafs.iter().enumerate() {
            let base = match fragment.offset_base {
                OffsetBase::Absolute => 1,
                OffsetBase::Implicit if n > 0 => next,
                _ => at,
            };
            let (which, track) = (*track, &tracks[*track]);
            write_box(out, b"traf", |out| {
                next = write_traf(out, (base, next), (which, track), runs, fragment, cursor);
            });
        }
    });
    out
}

const NON_SYNC: u32 = 0x0101_0000;
const SYNC: u32 = 0x0200_0000;

fn sample_flags(row: &Sample) -> u32 {
    if row.is_sync { SYNC } else { NON_SYNC }
}

/// Values that a `traf` stores once for all its samples. If a value is `None`, the `traf` stores it
/// for each sample.
struct SharedFields {
    duration: Option<u32>,
    size: Option<u32>,
    flags: Option<u32>,
    /// Whether only the first sample is a sync sample. If so, `trun` contains `first_sample_flags`.
    is_first_sync_only: bool,
    has_composition_offsets: bool,
}

impl SharedFields {
    fn new(rows: &[Sample], explicit: bool, runs: usize) -> SharedFields {
        let shared = |value: &dyn Fn(&Sample) -> u32| {
            let same = rows
                .windows(2)
                .all(|pair| value(&pair[0]) == value(&pair[1]));
            (!explicit && same && !rows.is_empty()).then(|| value(&rows[0]))
        };
        let opener = !explicit
            && runs == 1
            && rows.len() > 1
            && rows[0].is_sync
            && rows[1..].iter().all(|row| !row.is_sync);
        SharedFields {
            duration: shared(&|row| row.duration),
            size: shared(&|row| row.size),
            flags: if opener {
                Some(NON_SYNC)
            } else {
                shared(&sample_flags)
            },
            is_first_sync_only: opener,
            has_composition_offsets: rows.iter().any(|row| row.composition_offset != 0),
        }
    }

    /// Returns which fields `trun` contains for each sample, in the order duration, size, flags and
    /// composition offset.
    fn present_fields(&self) -> [bool; 4] {
        let each = [self.duration, self.size, self.flags].map(|shared| shared.is_none());
        [each[0], each[1], each[2], self.has_composition_offsets]
    }

    fn write_tfhd(&self, out: &mut Vec<u8>, track: u32, base: u64, style: OffsetBase) {
        let mut present = if style == OffsetBase::Moof {
            0x02_0000
        } else {
            0
        };
        let mut fields = vec![track];
        if style == OffsetBase::Absolute {
            present |= 1;
            fields.extend([0, base as u32]);
        }
        for (bit, value) in [(8, self.duration), (0x10, self.size), (0x20, self.flags)] {
            if let Some(value) = value {
                present |= bit;
                fields.push(value);
            }
        }
        write_full_box(out, b"tfhd", 0, present, |out| write_words(out, &fields));
    }

    fn write_trun(&self, out: &mut Vec<u8>, rows: &[Sample], offset: Option<i64>) {
        let mut present = u32::from(offset.is_some());
        present |= if self.is_first_sync_only { 4 } else { 0 };
        for (bit, has) in [0x100, 0x200, 0x400, 0x800]
            .iter()
            .zip(self.present_fields())
        {
            present |= if has { *bit } else { 0 };
        }
        write_full_box(out, b"trun", 1, present, |out| {
            write_words(out, &[rows.len() as u32]);
            offset
                .iter()
                .for_each(|offset| write_words(out, &[*offset as u32]));
            write_words(
                out,
                if self.is_first_sync_only {
                    &[SYNC]
                } else {
                    &[]
                },
            );
            for row in rows {
                let values = [
                    row.duration,
                    row.size,
                    sample_flags(row),
                    row.composition_offset as u32,
                ];
                let values = values
                    .iter()
                    .zip(self.present_fields())
                    .filter(|(_, has)| *has);
                values.for_each(|(value, _)| write_words(out, &[*value]));
            }
        });
    }
}

/// Writes one `traf` whose sample data starts at file offset `next`. Returns the offset at which
/// the data ends.
fn write_traf(
    out: &mut Vec<u8>,
    (base, mut next): (u64, u64),
    (which, track): (usize, &SyntheticTrack),
    runs: &[u32],
    fragment: &SyntheticFragment,
    cursor: &mut FragmentCursor,
) -> u64 {
    let (done, dts) = cursor.done[which];
    let mut rest = &track.rows[done..];
    let count = runs.iter().sum::<u32>() as usize;
    let rows = &rest[..count.min(rest.len())];
    let shared = SharedFields::new(rows, fragment.has_explicit_fields, runs.len());
    shared.write_tfhd(out, track.id, base, fragment.offset_base);
    if fragment.has_tfdt {
        let tfdt = (track.first_dts + dts).to_be_bytes();
        write_full_box(out, b"tfdt", 1, 0, |out| out.extend(tfdt));
    }
    for (n, count) in runs.iter().enumerate() {
        let (run, after) = rest.split_at((*count as usize).min(rest.len()));
        rest = after;
        // A run may omit its data offset if its data directly follows the data of the previous run.
        let follows = fragment.offset_base == OffsetBase::Implicit && (n > 0 || base == next);
        let offset = (!follows).then(|| next as i64 - base as i64);
        shared.write_trun(out, run, offset);
        for row in run {
            cursor.record_sample(which, row, next);
            next += u64::from(row.size);
        }
    }
    next
}
