//! Fragmented files: a moov, then moofs with their mdats.

use super::{Layout, MuxTrack, Muxed, progressive, words};
use crate::bytes::{write_box, write_full_box};
use crate::index::Sample;

/// Where data offsets count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    Absolute,
    Moof,
    Implicit,
}

/// One fragment: a moof, and its mdat.
#[derive(Debug, Clone)]
pub struct Fragment {
    pub base: Base,
    /// All fields in trun, or in tfhd where samples share them.
    pub explicit: bool,
    pub tfdt: bool,
    /// Boxes before the moof, by number.
    pub stray: u8,
    /// Per traf: the track, and the samples of each of its runs.
    pub trafs: Vec<(usize, Vec<u32>)>,
}

const STRAY: [&[u8; 4]; 6] = [b"styp", b"prft", b"emsg", b"free", b"uuid", b"meta"];

/// Writes an ftyp, a moov that holds `in_moov` samples of each track, and fragments.
pub fn fragmented(tracks: &[MuxTrack], in_moov: u32, fragments: &[Fragment]) -> Muxed {
    let heads: Vec<MuxTrack> = tracks.iter().map(|track| head(track, in_moov)).collect();
    let layout = Layout {
        moov_first: true,
        mvex: true,
        ..Layout::default()
    };
    let start = progressive(&heads, &layout);
    let mut file = start.file();
    let mut expected = start.expected;
    let mut cursor = Cursor::new(&expected);
    for fragment in fragments {
        for (n, name) in STRAY.iter().enumerate() {
            if fragment.stray & (1 << n) != 0 {
                write_box(&mut file, name, |out| out.extend([7; 21]));
            }
        }
        append(&mut file, tracks, fragment, &mut cursor);
        for (track, row) in cursor.rows.drain(..) {
            expected[track].push(row);
        }
    }
    Muxed {
        before: file,
        media: 0,
        after: Vec::new(),
        expected,
    }
}

fn head(track: &MuxTrack, samples: u32) -> MuxTrack {
    let mut track = track.clone();
    track.rows.truncate(samples as usize);
    track
}

/// How far each track is written, and the rows of the fragment at hand.
#[derive(Clone)]
struct Cursor {
    /// Per track: rows written, and their ticks.
    done: Vec<(usize, u64)>,
    rows: Vec<(usize, Sample)>,
}

impl Cursor {
    fn new(expected: &[Vec<Sample>]) -> Cursor {
        let ticks = |rows: &Vec<Sample>| rows.iter().map(|row| u64::from(row.duration)).sum();
        Cursor {
            done: expected
                .iter()
                .map(|rows| (rows.len(), ticks(rows)))
                .collect(),
            rows: Vec::new(),
        }
    }

    fn push(&mut self, track: usize, row: &Sample, offset: u64) {
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

fn append(file: &mut Vec<u8>, tracks: &[MuxTrack], fragment: &Fragment, cursor: &mut Cursor) {
    let at = file.len() as u64;
    let size = moof(at, 0, tracks, fragment, &mut cursor.clone()).len() as u64;
    file.extend(moof(at, at + size + 8, tracks, fragment, cursor));
    let media: usize = cursor.rows.iter().map(|(_, row)| row.size as usize).sum();
    write_box(file, b"mdat", |out| out.resize(out.len() + media, 0));
}

fn moof(
    at: u64,
    media: u64,
    tracks: &[MuxTrack],
    fragment: &Fragment,
    cursor: &mut Cursor,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut next = media;
    write_box(&mut out, b"moof", |out| {
        write_full_box(out, b"mfhd", 0, 0, |out| words(out, &[1]));
        for (n, (track, runs)) in fragment.trafs.iter().enumerate() {
            let base = match fragment.base {
                Base::Absolute => 1,
                Base::Implicit if n > 0 => next,
                _ => at,
            };
            let (which, track) = (*track, &tracks[*track]);
            write_box(out, b"traf", |out| {
                next = traf(out, (base, next), (which, track), runs, fragment, cursor);
            });
        }
    });
    out
}

const NON_SYNC: u32 = 0x0101_0000;
const SYNC: u32 = 0x0200_0000;

fn flags(row: &Sample) -> u32 {
    if row.sync { SYNC } else { NON_SYNC }
}

/// What a traf says once for all its samples, and which fields each sample has.
struct Shared {
    duration: Option<u32>,
    size: Option<u32>,
    flags: Option<u32>,
    /// A sync sample first and none after: what first_sample_flags is for.
    opener: bool,
    cts: bool,
}

impl Shared {
    fn new(rows: &[Sample], explicit: bool, runs: usize) -> Shared {
        let shared = |value: &dyn Fn(&Sample) -> u32| {
            let same = rows
                .windows(2)
                .all(|pair| value(&pair[0]) == value(&pair[1]));
            (!explicit && same && !rows.is_empty()).then(|| value(&rows[0]))
        };
        let opener = !explicit
            && runs == 1
            && rows.len() > 1
            && rows[0].sync
            && rows[1..].iter().all(|row| !row.sync);
        Shared {
            duration: shared(&|row| row.duration),
            size: shared(&|row| row.size),
            flags: if opener {
                Some(NON_SYNC)
            } else {
                shared(&flags)
            },
            opener,
            cts: rows.iter().any(|row| row.cts != 0),
        }
    }

    /// Whether each sample has a duration, a size, flags, an offset.
    fn has(&self) -> [bool; 4] {
        let each = [self.duration, self.size, self.flags].map(|shared| shared.is_none());
        [each[0], each[1], each[2], self.cts]
    }

    fn tfhd(&self, out: &mut Vec<u8>, track: u32, base: u64, style: Base) {
        let mut present = if style == Base::Moof { 0x02_0000 } else { 0 };
        let mut fields = vec![track];
        if style == Base::Absolute {
            present |= 1;
            fields.extend([0, base as u32]);
        }
        for (bit, value) in [(8, self.duration), (0x10, self.size), (0x20, self.flags)] {
            if let Some(value) = value {
                present |= bit;
                fields.push(value);
            }
        }
        write_full_box(out, b"tfhd", 0, present, |out| words(out, &fields));
    }

    fn trun(&self, out: &mut Vec<u8>, rows: &[Sample], offset: Option<i64>) {
        let mut present = u32::from(offset.is_some());
        present |= if self.opener { 4 } else { 0 };
        for (bit, has) in [0x100, 0x200, 0x400, 0x800].iter().zip(self.has()) {
            present |= if has { *bit } else { 0 };
        }
        write_full_box(out, b"trun", 1, present, |out| {
            words(out, &[rows.len() as u32]);
            offset
                .iter()
                .for_each(|offset| words(out, &[*offset as u32]));
            words(out, if self.opener { &[SYNC] } else { &[] });
            for row in rows {
                let values = [row.duration, row.size, flags(row), row.cts as u32];
                let values = values.iter().zip(self.has()).filter(|(_, has)| *has);
                values.for_each(|(value, _)| words(out, &[*value]));
            }
        });
    }
}

/// Writes one traf whose bytes begin at `next`, and tells where they end.
fn traf(
    out: &mut Vec<u8>,
    (base, mut next): (u64, u64),
    (which, track): (usize, &MuxTrack),
    runs: &[u32],
    fragment: &Fragment,
    cursor: &mut Cursor,
) -> u64 {
    let (done, dts) = cursor.done[which];
    let mut rest = &track.rows[done..];
    let count = runs.iter().sum::<u32>() as usize;
    let rows = &rest[..count.min(rest.len())];
    let shared = Shared::new(rows, fragment.explicit, runs.len());
    shared.tfhd(out, track.id, base, fragment.base);
    if fragment.tfdt {
        let tfdt = (track.base + dts).to_be_bytes();
        write_full_box(out, b"tfdt", 1, 0, |out| out.extend(tfdt));
    }
    for (n, count) in runs.iter().enumerate() {
        let (run, after) = rest.split_at((*count as usize).min(rest.len()));
        rest = after;
        // A run may leave out its offset where it follows the one before.
        let follows = fragment.base == Base::Implicit && (n > 0 || base == next);
        let offset = (!follows).then(|| next as i64 - base as i64);
        shared.trun(out, run, offset);
        for row in run {
            cursor.push(which, row, next);
            next += u64::from(row.size);
        }
    }
    next
}
