//! Progressive MP4s with the `moov` first, built from one or more indexes.

use super::moov::{MovieWriter, TrakWriter};
use super::sample_table::{FileChunk, collect_chunks};
use super::{FTYP, check_head_len};
use crate::bmff::dref::DataReference;
use crate::bytes::write_box;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Index, Track};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;

/// Maximum chunk duration in milliseconds. Tracks from several files are interleaved in chunks of
/// this duration.
const CHUNK_MS_MAX: i64 = 1000;
/// Maximum total length of the samples in bytes. The limit is needed because the tables of an index
/// MP4 may reference the same bytes many times.
const FILE_BYTES_MAX: u64 = 1 << 60;

/// The parts of a whole MP4: generated head bytes and ranges of source files. All parts are known
/// before any media byte is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressiveMp4 {
    /// `ftyp`, `moov` and the header of `mdat`.
    pub head: Vec<u8>,
    /// Source ranges that follow the head, each as the index of a file and the byte range in this
    /// file. Adjacent ranges of one file are merged.
    pub source_ranges: Vec<(usize, Range<u64>)>,
    /// Total length in bytes.
    pub len: u64,
}

/// A chunk with its position in the output order.
struct OrderedChunk {
    /// Index of the track, and index of the chunk within the track.
    track_and_chunk: (usize, usize),
    file_index: usize,
    /// First sort key, which is the start time of the chunk in nanoseconds, or 0 if there is only
    /// one file.
    sort_time: i64,
    chunk: FileChunk,
}

impl ProgressiveMp4 {
    /// Builds one MP4 from the tracks of these files.
    ///
    /// If there is only one file, its samples keep their order. Samples of several files are
    /// interleaved by time.
    ///
    /// # Errors
    /// `TooLarge` if the samples exceed 2^60 bytes, or if the `moov` exceeds 4 GiB. If the samples
    /// are at most 2 GiB, 32-bit chunk offsets are used, and the whole file must not exceed 4 GiB.
    pub fn new(files: &[Arc<Index>]) -> Result<ProgressiveMp4> {
        let tracks: Vec<(usize, &Track)> = files
            .iter()
            .enumerate()
            .flat_map(|(file, index)| index.tracks.iter().map(move |track| (file, track)))
            .collect();
        let mut chunks: Vec<Vec<FileChunk>> = tracks
            .iter()
            .map(|(_, track)| split_into_chunks(track))
            .collect();
        let order = order_chunks(&tracks, &chunks, files.len() > 1);
        let mdat = order.iter().fold(0u64, |sum, piece| {
            sum.saturating_add(piece.chunk.byte_count)
        });
        if mdat > FILE_BYTES_MAX {
            let message = format!(
                "the samples are {mdat} bytes; at most {FILE_BYTES_MAX} are served as one file"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        // Samples of at most 2 GiB leave room for the `moov` within 32-bit offsets. Some files over
        // 2 GiB could also use 32-bit offsets, but 64-bit offsets do no harm.
        let wide = mdat > u64::from(u32::MAX) / 2;
        place_chunks(&order, &mut chunks, 0);
        let head_len =
            write_progressive_head(&tracks, &chunks, files.len(), wide, mdat)?.len() as u64;
        if !wide && head_len + mdat > u64::from(u32::MAX) {
            return Err(Error::new(ErrorKind::TooLarge, "the tables are over 2 GiB"));
        }
        place_chunks(&order, &mut chunks, head_len);
        Ok(ProgressiveMp4 {
            head: write_progressive_head(&tracks, &chunks, files.len(), wide, mdat)?,
            source_ranges: merge_ranges(&order),
            len: head_len + mdat,
        })
    }
}

fn split_into_chunks(track: &Track) -> Vec<FileChunk> {
    let most = Time::from_ms(CHUNK_MS_MAX).ceil_to(track.timescale);
    collect_chunks(&track.samples, u64::try_from(most).unwrap_or(1))
}

/// Returns all chunks in output order.
fn order_chunks(
    tracks: &[(usize, &Track)],
    chunks: &[Vec<FileChunk>],
    by_time: bool,
) -> Vec<OrderedChunk> {
    let mut order: Vec<OrderedChunk> = Vec::with_capacity(chunks.iter().map(Vec::len).sum());
    for (track, ((file, of), chunks)) in tracks.iter().zip(chunks).enumerate() {
        order.extend(chunks.iter().enumerate().map(|(n, chunk)| {
            let shown = i64::try_from(chunk.dts)
                .unwrap_or(i64::MAX)
                .saturating_add(of.presentation_offset);
            OrderedChunk {
                track_and_chunk: (track, n),
                file_index: *file,
                sort_time: if by_time {
                    Time::new(shown, of.timescale).as_nanos()
                } else {
                    0
                },
                chunk: *chunk,
            }
        }));
    }
    order.sort_by_key(|piece| (piece.sort_time, piece.file_index, piece.chunk.offset));
    order
}

/// Assigns consecutive offsets to all chunks. The first offset is `at`, the length of the head.
fn place_chunks(order: &[OrderedChunk], chunks: &mut [Vec<FileChunk>], mut at: u64) {
    for piece in order {
        let (track, n) = piece.track_and_chunk;
        if let Some(chunk) = chunks.get_mut(track).and_then(|chunks| chunks.get_mut(n)) {
            chunk.offset = at;
        }
        at += piece.chunk.byte_count;
    }
}

fn merge_ranges(order: &[OrderedChunk]) -> Vec<(usize, Range<u64>)> {
    let mut ranges: Vec<(usize, Range<u64>)> = Vec::new();
    for piece in order.iter().filter(|piece| piece.chunk.byte_count > 0) {
        let begin = piece.chunk.offset;
        let end = begin + piece.chunk.byte_count;
        match ranges.last_mut() {
            Some((file, last)) if *file == piece.file_index && last.end == begin => last.end = end,
            _ => ranges.push((piece.file_index, begin..end)),
        }
    }
    ranges
}

fn write_progressive_head(
    tracks: &[(usize, &Track)],
    chunks: &[Vec<FileChunk>],
    files: usize,
    wide: bool,
    mdat: u64,
) -> Result<Vec<u8>> {
    let movie = MovieWriter::new(tracks.iter().map(|(_, track)| *track));
    let traks: Vec<TrakWriter<'_>> = tracks
        .iter()
        .zip(chunks)
        .enumerate()
        .map(|(n, ((_, track), chunks))| TrakWriter {
            track,
            // Several files may use the same track_ID, so their tracks are numbered again.
            track_id: if files > 1 { n as u32 + 1 } else { track.id },
            location: &DataReference::SameFile,
            chunks,
        })
        .collect();
    let mut out = FTYP.to_vec();
    write_box(&mut out, b"moov", |out| {
        movie.write_moov_content(out, &traks, wide)
    });
    check_head_len(out.len() as u64)?;
    match u32::try_from(mdat + 8) {
        Ok(len) => {
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(b"mdat");
        }
        Err(_) => {
            out.extend_from_slice(b"\0\0\0\x01mdat");
            out.extend_from_slice(&(mdat + 16).to_be_bytes());
        }
    }
    Ok(out)
}
