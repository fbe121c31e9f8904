//! A muxer for tests: sample tables in, MP4 files out, in every layout that the indexer reads.
//! It shares nothing with the indexer but the writing of box headers.

use crate::bytes::{write_box, write_full_box};
use crate::index::Sample;
use std::ops::Range;

/// A track to write. Of its rows, `dts` and `offset` are not looked at.
#[derive(Debug, Clone)]
pub struct MuxTrack {
    pub id: u32,
    pub video: bool,
    pub timescale: u32,
    pub rows: Vec<Sample>,
    /// Decode time of the first row, where it is in fragments.
    pub base: u64,
    /// Duration in milliseconds, media time.
    pub edits: Vec<(u32, i32)>,
    pub entries: Vec<Vec<u8>>,
    /// Sample entry that all rows use, from 1.
    pub description: u32,
    pub handler: [u8; 4],
}

impl MuxTrack {
    pub fn video(id: u32, rows: Vec<Sample>) -> MuxTrack {
        MuxTrack {
            id,
            video: true,
            timescale: 12_800,
            rows,
            base: 0,
            edits: Vec::new(),
            entries: vec![hex(AVC)],
            description: 1,
            handler: *b"vide",
        }
    }

    pub fn audio(id: u32, rows: Vec<Sample>) -> MuxTrack {
        MuxTrack {
            video: false,
            timescale: 48_000,
            entries: vec![hex(AAC)],
            handler: *b"soun",
            ..MuxTrack::video(id, rows)
        }
    }
}

/// A row: duration, composition offset, size, sync.
pub fn row(duration: u32, cts: i32, size: u32, sync: bool) -> Sample {
    let (dts, offset) = (0, 0);
    Sample {
        dts,
        duration,
        cts,
        size,
        sync,
        offset,
    }
}

/// A file whose media bytes are all zero, and so need not be kept.
#[derive(Debug, Clone)]
pub struct Muxed {
    pub before: Vec<u8>,
    pub media: u64,
    pub after: Vec<u8>,
    /// Per track, the rows with their times and places.
    pub expected: Vec<Vec<Sample>>,
}

impl Muxed {
    pub fn len(&self) -> u64 {
        self.before.len() as u64 + self.media + self.after.len() as u64
    }

    pub fn file(&self) -> Vec<u8> {
        self.read(0..self.len())
    }

    pub fn read(&self, range: Range<u64>) -> Vec<u8> {
        let (start, after) = (
            self.before.len() as u64,
            self.before.len() as u64 + self.media,
        );
        let mut out = Vec::with_capacity((range.end - range.start) as usize);
        let part = |at: u64| at.min(start) as usize;
        out.extend_from_slice(&self.before[part(range.start)..part(range.end)]);
        let zeros = range.end.clamp(start, after) - range.start.clamp(start, after);
        out.resize(out.len() + zeros as usize, 0);
        let part = |at: u64| at.saturating_sub(after) as usize;
        out.extend_from_slice(&self.after[part(range.start)..part(range.end)]);
        out
    }
}

/// How a progressive file is laid out.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub moov_first: bool,
    /// 64-bit chunk offsets and mdat size.
    pub wide: bool,
    /// Sizes in an stz2 box, of 16 bits.
    pub halves: bool,
    /// (track, samples), in file order; what is left of the tracks follows in one chunk each.
    pub chunks: Vec<(usize, u32)>,
    /// Unused bytes between chunks.
    pub gap: u64,
    /// Whether an mvex box says that fragments may follow.
    pub mvex: bool,
}

type Chunk = (u32, u32, u64);

/// Writes a file with one moov and one mdat.
pub fn progressive(tracks: &[MuxTrack], layout: &Layout) -> Muxed {
    let (mut chunks, media) = place(tracks, layout);
    let mut ftyp = Vec::new();
    write_box(&mut ftyp, b"ftyp", |out| out.extend(b"isom\0\0\0\0isom"));
    let mut mdat = Vec::new();
    match layout.wide {
        true => {
            mdat.extend(b"\0\0\0\x01mdat");
            mdat.extend((media + 16).to_be_bytes());
        }
        false => {
            mdat.extend((media as u32 + 8).to_be_bytes());
            mdat.extend(b"mdat");
        }
    }
    let mut start = (ftyp.len() + mdat.len()) as u64;
    if layout.moov_first {
        start += moov(tracks, &chunks, layout).len() as u64;
    }
    chunks
        .iter_mut()
        .flatten()
        .for_each(|chunk| chunk.2 += start);
    let moov = moov(tracks, &chunks, layout);
    let expected = tracks
        .iter()
        .zip(&chunks)
        .map(|(track, chunks)| placed(track, chunks))
        .collect();
    let (before, after) = match layout.moov_first {
        true => ([ftyp, moov, mdat].concat(), Vec::new()),
        false => ([ftyp, mdat].concat(), moov),
    };
    Muxed {
        before,
        media,
        after,
        expected,
    }
}

/// Per track its chunks (first sample, samples, offset within the media), and the media's size.
fn place(tracks: &[MuxTrack], layout: &Layout) -> (Vec<Vec<Chunk>>, u64) {
    let mut chunks = vec![Vec::new(); tracks.len()];
    let mut next = vec![0u32; tracks.len()];
    let mut at = 0;
    let rest = (0..tracks.len()).map(|track| (track, u32::MAX));
    for (track, count) in layout.chunks.iter().copied().chain(rest) {
        let first = next[track];
        let count = count.min(tracks[track].rows.len() as u32 - first);
        if count > 0 {
            chunks[track].push((first, count, at));
            next[track] += count;
            let rows = &tracks[track].rows[first as usize..(first + count) as usize];
            at += layout.gap + rows.iter().map(|row| u64::from(row.size)).sum::<u64>();
        }
    }
    (chunks, at)
}

fn placed(track: &MuxTrack, chunks: &[Chunk]) -> Vec<Sample> {
    let mut dts = 0;
    let mut out = Vec::new();
    for (first, count, mut offset) in chunks.iter().copied() {
        for row in &track.rows[first as usize..(first + count) as usize] {
            out.push(Sample {
                dts,
                offset,
                ..*row
            });
            dts += u64::from(row.duration);
            offset += u64::from(row.size);
        }
    }
    out
}

fn moov(tracks: &[MuxTrack], chunks: &[Vec<Chunk>], layout: &Layout) -> Vec<u8> {
    let mut out = Vec::new();
    write_box(&mut out, b"moov", |out| {
        write_full_box(out, b"mvhd", 0, 0, |out| {
            words(out, &[0, 0, 1000, 0]);
            out.resize(out.len() + 80, 0);
        });
        for (track, chunks) in tracks.iter().zip(chunks) {
            write_box(out, b"trak", |out| trak(out, track, chunks, layout));
        }
        if layout.mvex {
            write_box(out, b"mvex", |out| {
                for track in tracks {
                    let defaults = [track.id, track.description, 0, 0, 0];
                    write_full_box(out, b"trex", 0, 0, |out| words(out, &defaults));
                }
            });
        }
    });
    out
}

fn trak(out: &mut Vec<u8>, track: &MuxTrack, chunks: &[Chunk], layout: &Layout) {
    write_full_box(out, b"tkhd", 0, 3, |out| {
        words(out, &[0, 0, track.id, 0, 0, 0, 0, 0, 0]);
        words(out, &[1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30, 0, 0]);
    });
    if !track.edits.is_empty() {
        write_box(out, b"edts", |out| {
            write_full_box(out, b"elst", 0, 0, |out| {
                words(out, &[track.edits.len() as u32]);
                for (duration, media_time) in &track.edits {
                    words(out, &[*duration, *media_time as u32, 1 << 16]);
                }
            });
        });
    }
    write_box(out, b"mdia", |out| {
        write_full_box(out, b"mdhd", 0, 0, |out| {
            words(out, &[0, 0, track.timescale, 0, 0x15c7_0000]);
        });
        write_full_box(out, b"hdlr", 0, 0, |out| {
            words(out, &[0, u32::from_be_bytes(track.handler), 0, 0, 0]);
            out.extend(b"SoundHandler\0");
        });
        write_box(out, b"minf", |out| {
            write_box(out, b"stbl", |out| stbl(out, track, chunks, layout));
        });
    });
}

fn stbl(out: &mut Vec<u8>, track: &MuxTrack, chunks: &[Chunk], layout: &Layout) {
    write_full_box(out, b"stsd", 0, 0, |out| {
        words(out, &[track.entries.len() as u32]);
        track.entries.iter().for_each(|entry| out.extend(entry));
    });
    let rows = &track.rows[..chunks.iter().map(|chunk| chunk.1 as usize).sum()];
    let durations = runs(rows.iter().map(|row| row.duration));
    write_full_box(out, b"stts", 0, 0, |out| table(out, &durations));
    if rows.iter().any(|row| row.cts != 0) {
        let offsets = runs(rows.iter().map(|row| row.cts as u32));
        write_full_box(out, b"ctts", 1, 0, |out| table(out, &offsets));
    }
    if rows.iter().any(|row| !row.sync) {
        let sync = rows.iter().enumerate().filter(|(_, row)| row.sync);
        let sync: Vec<_> = sync.map(|(n, _)| [n as u32 + 1]).collect();
        write_full_box(out, b"stss", 0, 0, |out| table(out, &sync));
    }
    let mut chunk = 0;
    let per_chunk: Vec<_> = runs(chunks.iter().map(|chunk| chunk.1))
        .iter()
        .map(|[count, samples]| {
            chunk += count;
            [chunk - count + 1, *samples, track.description]
        })
        .collect();
    write_full_box(out, b"stsc", 0, 0, |out| table(out, &per_chunk));
    sizes(out, rows, layout);
    let name = if layout.wide { b"co64" } else { b"stco" };
    write_full_box(out, name, 0, 0, |out| {
        words(out, &[chunks.len() as u32]);
        for chunk in chunks {
            match layout.wide {
                true => out.extend(chunk.2.to_be_bytes()),
                false => out.extend((chunk.2 as u32).to_be_bytes()),
            }
        }
    });
}

fn sizes(out: &mut Vec<u8>, rows: &[Sample], layout: &Layout) {
    let same = rows.first().map_or(0, |row| row.size);
    if layout.halves && rows.iter().all(|row| row.size <= 0xffff) {
        write_full_box(out, b"stz2", 0, 0, |out| {
            words(out, &[16, rows.len() as u32]);
            rows.iter()
                .for_each(|row| out.extend((row.size as u16).to_be_bytes()));
        });
    } else if same > 0 && rows.iter().all(|row| row.size == same) {
        write_full_box(out, b"stsz", 0, 0, |out| {
            words(out, &[same, rows.len() as u32])
        });
    } else {
        write_full_box(out, b"stsz", 0, 0, |out| {
            words(out, &[0, rows.len() as u32]);
            rows.iter().for_each(|row| words(out, &[row.size]));
        });
    }
}

fn runs(values: impl Iterator<Item = u32>) -> Vec<[u32; 2]> {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some(run) if run[1] == value => run[0] += 1,
            _ => runs.push([1, value]),
        }
    }
    runs
}

fn table<const N: usize>(out: &mut Vec<u8>, entries: &[[u32; N]]) {
    words(out, &[entries.len() as u32]);
    entries.iter().for_each(|entry| words(out, entry));
}

pub fn words(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

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

/// Bytes written as hexadecimal.
pub fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks_exact(2);
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, |digit| digit as u8);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Sample entry of High 4:4:4 video, 32 by 32, as FFmpeg writes it.
pub const AVC: &str = "000000ac61766331000000000000000100000000000000000000000000000000002000200048\
    000000480000000000000001154c61766335392e33372e313030206c696278323634000000000000000000000018ffff\
    000000326176634301f4000affe1001667f4000a919d92d80880000003008000000a0789129c01000568ce0f1920fff8\
    f800000000107061737000000001000000010000001462747274000000000000727a0000727a";

/// Sample entry of stereo AAC, 48 kHz, as FFmpeg writes it.
pub const AAC: &str = "0000006e6d703461000000000000000100000000000000000002001000000000bb8000000000\
    0036657364730000000003808080250001000480808017401500000000011cc700011cc70580808005118856e5000680\
    8080010200000014627472740000000000011cc700011cc7";
