//! Progressive files: one moov, one mdat.

use super::{MuxTrack, Muxed, words};
use crate::bytes::{write_box, write_full_box};
use crate::index::Sample;

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
