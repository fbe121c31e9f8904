//! Writes progressive files with one `moov` and one `mdat`.

use super::{SyntheticMediaFile, SyntheticTrack, write_words};
use crate::bytes::{write_box, write_full_box};
use crate::index::Sample;

/// Layout of a progressive file.
#[derive(Debug, Clone, Default)]
pub struct ProgressiveLayout {
    pub moov_first: bool,
    /// Whether chunk offsets and the size of the `mdat` have 64 bits.
    pub is_64_bit: bool,
    /// Whether sample sizes are in an `stz2` box, with 16 bits each.
    pub has_stz2: bool,
    /// Chunks in file order, as (index of the track, number of samples). The remaining samples
    /// follow in one chunk per track.
    pub chunks: Vec<(usize, u32)>,
    /// Number of unused bytes between two chunks.
    pub gap_bytes: u64,
    /// Whether an `mvex` box announces fragments.
    pub has_mvex: bool,
}

type ChunkPlacement = (u32, u32, u64);

/// Writes a file with one `moov` and one `mdat`.
pub fn build_synthetic_progressive(
    tracks: &[SyntheticTrack],
    layout: &ProgressiveLayout,
) -> SyntheticMediaFile {
    let (mut chunks, media) = place_chunks(tracks, layout);
    let mut ftyp = Vec::new();
    write_box(&mut ftyp, b"ftyp", |out| out.extend(b"isom\0\0\0\0isom"));
    let mut mdat = Vec::new();
    match layout.is_64_bit {
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
        start += write_moov(tracks, &chunks, layout).len() as u64;
    }
    chunks
        .iter_mut()
        .flatten()
        .for_each(|chunk| chunk.2 += start);
    let moov = write_moov(tracks, &chunks, layout);
    let expected = tracks
        .iter()
        .zip(&chunks)
        .map(|(track, chunks)| place_samples(track, chunks))
        .collect();
    let (before, after) = match layout.moov_first {
        true => ([ftyp, moov, mdat].concat(), Vec::new()),
        false => ([ftyp, mdat].concat(), moov),
    };
    SyntheticMediaFile {
        bytes_before_media: before,
        media_len: media,
        bytes_after_media: after,
        expected_samples: expected,
    }
}

/// Returns the chunks of each track, as (first sample, number of samples, offset within the media).
/// Also returns the size of the media in bytes.
fn place_chunks(
    tracks: &[SyntheticTrack],
    layout: &ProgressiveLayout,
) -> (Vec<Vec<ChunkPlacement>>, u64) {
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
            at += layout.gap_bytes + rows.iter().map(|row| u64::from(row.size)).sum::<u64>();
        }
    }
    (chunks, at)
}

fn place_samples(track: &SyntheticTrack, chunks: &[ChunkPlacement]) -> Vec<Sample> {
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

fn write_moov(
    tracks: &[SyntheticTrack],
    chunks: &[Vec<ChunkPlacement>],
    layout: &ProgressiveLayout,
) -> Vec<u8> {
    let mut out = Vec::new();
    write_box(&mut out, b"moov", |out| {
        write_full_box(out, b"mvhd", 0, 0, |out| {
            write_words(out, &[0, 0, 1000, 0]);
            out.resize(out.len() + 80, 0);
        });
        for (track, chunks) in tracks.iter().zip(chunks) {
            write_box(out, b"trak", |out| write_trak(out, track, chunks, layout));
        }
        if layout.has_mvex {
            write_box(out, b"mvex", |out| {
                for track in tracks {
                    let defaults = [track.id, track.description_index, 0, 0, 0];
                    write_full_box(out, b"trex", 0, 0, |out| write_words(out, &defaults));
                }
            });
        }
    });
    out
}

fn write_trak(
    out: &mut Vec<u8>,
    track: &SyntheticTrack,
    chunks: &[ChunkPlacement],
    layout: &ProgressiveLayout,
) {
    write_full_box(out, b"tkhd", 0, 3, |out| {
        write_words(out, &[0, 0, track.id, 0, 0, 0, 0, 0, 0]);
        write_words(out, &[1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30, 0, 0]);
    });
    if !track.edits.is_empty() {
        write_box(out, b"edts", |out| {
            write_full_box(out, b"elst", 0, 0, |out| {
                write_words(out, &[track.edits.len() as u32]);
                for (duration, media_time) in &track.edits {
                    write_words(out, &[*duration, *media_time as u32, 1 << 16]);
                }
            });
        });
    }
    write_box(out, b"mdia", |out| {
        write_full_box(out, b"mdhd", 0, 0, |out| {
            write_words(out, &[0, 0, track.timescale, 0, 0x15c7_0000]);
        });
        write_full_box(out, b"hdlr", 0, 0, |out| {
            write_words(out, &[0, u32::from_be_bytes(track.handler), 0, 0, 0]);
            out.extend(b"SoundHandler\0");
        });
        write_box(out, b"minf", |out| {
            write_box(out, b"stbl", |out| write_stbl(out, track, chunks, layout));
        });
    });
}

fn write_stbl(
    out: &mut Vec<u8>,
    track: &SyntheticTrack,
    chunks: &[ChunkPlacement],
    layout: &ProgressiveLayout,
) {
    write_full_box(out, b"stsd", 0, 0, |out| {
        write_words(out, &[track.entries.len() as u32]);
        track.entries.iter().for_each(|entry| out.extend(entry));
    });
    let rows = &track.rows[..chunks.iter().map(|chunk| chunk.1 as usize).sum()];
    let durations = runs_of_equal(rows.iter().map(|row| row.duration));
    write_full_box(out, b"stts", 0, 0, |out| write_table(out, &durations));
    if rows.iter().any(|row| row.composition_offset != 0) {
        let offsets = runs_of_equal(rows.iter().map(|row| row.composition_offset as u32));
        write_full_box(out, b"ctts", 1, 0, |out| write_table(out, &offsets));
    }
    if rows.iter().any(|row| !row.is_sync) {
        let sync = rows.iter().enumerate().filter(|(_, row)| row.is_sync);
        let sync: Vec<_> = sync.map(|(n, _)| [n as u32 + 1]).collect();
        write_full_box(out, b"stss", 0, 0, |out| write_table(out, &sync));
    }
    let mut chunk = 0;
    let per_chunk: Vec<_> = runs_of_equal(chunks.iter().map(|chunk| chunk.1))
        .iter()
        .map(|[count, samples]| {
            chunk += count;
            [chunk - count + 1, *samples, track.description_index]
        })
        .collect();
    write_full_box(out, b"stsc", 0, 0, |out| write_table(out, &per_chunk));
    write_sizes(out, rows, layout);
    let name = if layout.is_64_bit { b"co64" } else { b"stco" };
    write_full_box(out, name, 0, 0, |out| {
        write_words(out, &[chunks.len() as u32]);
        for chunk in chunks {
            match layout.is_64_bit {
                true => out.extend(chunk.2.to_be_bytes()),
                false => out.extend((chunk.2 as u32).to_be_bytes()),
            }
        }
    });
}

fn write_sizes(out: &mut Vec<u8>, rows: &[Sample], layout: &ProgressiveLayout) {
    let same = rows.first().map_or(0, |row| row.size);
    if layout.has_stz2 && rows.iter().all(|row| row.size <= 0xffff) {
        write_full_box(out, b"stz2", 0, 0, |out| {
            write_words(out, &[16, rows.len() as u32]);
            rows.iter()
                .for_each(|row| out.extend((row.size as u16).to_be_bytes()));
        });
    } else if same > 0 && rows.iter().all(|row| row.size == same) {
        write_full_box(out, b"stsz", 0, 0, |out| {
            write_words(out, &[same, rows.len() as u32])
        });
    } else {
        write_full_box(out, b"stsz", 0, 0, |out| {
            write_words(out, &[0, rows.len() as u32]);
            rows.iter().for_each(|row| write_words(out, &[row.size]));
        });
    }
}

fn runs_of_equal(values: impl Iterator<Item = u32>) -> Vec<[u32; 2]> {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some(run) if run[1] == value => run[0] += 1,
            _ => runs.push([1, value]),
        }
    }
    runs
}

fn write_table<const N: usize>(out: &mut Vec<u8>, entries: &[[u32; N]]) {
    write_words(out, &[entries.len() as u32]);
    entries.iter().for_each(|entry| write_words(out, entry));
}
