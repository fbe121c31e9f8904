//! Progressive MP4s, moov first: what an index MP4 stands for.

use super::FTYP;
use super::moov::{Movie, Trak};
use super::tables::{Chunk, chunks};
use crate::bmff::dref::Location;
use crate::bytes::write_box;
use crate::error::{Error, Kind, Result};
use crate::index::{Index, Track};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;

/// Longest chunk, in milliseconds: how finely tracks of several files are interleaved.
const CHUNK_MS: i64 = 1000;
/// Longest file that is made, in bytes. Tables of an index MP4 may name the same bytes again and
/// again.
const LEN_MAX: u64 = 1 << 60;

/// A whole MP4 as head bytes that we make and ranges of the media. Known, with its length, before
/// any media byte is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progressive {
    /// ftyp, moov and the header of mdat.
    pub head: Vec<u8>,
    /// What follows: which of the files, and where in it. Ranges of one file that touch each
    /// other are merged.
    pub ranges: Vec<(usize, Range<u64>)>,
    /// Length of the whole, in bytes.
    pub len: u64,
}

/// A chunk on its way into the file.
struct Piece {
    /// Which track of all, and which of its chunks.
    place: (usize, usize),
    file: usize,
    /// By what they are put in order: when it is shown where there are several files, else 0.
    when: i64,
    chunk: Chunk,
}

impl Progressive {
    /// The film of these files' tracks. One file's samples stay in the order in which they lie
    /// there; those of several files are interleaved by time.
    ///
    /// # Errors
    /// `TooLarge` past 2^60 bytes, or past the 4 GiB that a moov may have.
    pub fn new(files: &[Arc<Index>]) -> Result<Progressive> {
        let tracks: Vec<(usize, &Track)> = files
            .iter()
            .enumerate()
            .flat_map(|(file, index)| index.tracks.iter().map(move |track| (file, track)))
            .collect();
        let mut chunks: Vec<Vec<Chunk>> = tracks.iter().map(|(_, track)| split(track)).collect();
        let order = order(&tracks, &chunks, files.len() > 1);
        let mdat = order
            .iter()
            .fold(0u64, |sum, piece| sum.saturating_add(piece.chunk.bytes));
        if mdat > LEN_MAX {
            let what =
                format!("its samples are {mdat} bytes; at most {LEN_MAX} are served as one file");
            return Err(Error::new(Kind::TooLarge, what));
        }
        // Room for a moov: a little early for 64 bits does no harm.
        let wide = mdat > u64::from(u32::MAX) / 2;
        place(&order, &mut chunks, 0);
        let head_len = head(&tracks, &chunks, files.len(), wide, mdat)?.len() as u64;
        if !wide && head_len + mdat > u64::from(u32::MAX) {
            return Err(Error::new(Kind::TooLarge, "its tables are over 2 GiB"));
        }
        place(&order, &mut chunks, head_len);
        Ok(Progressive {
            head: head(&tracks, &chunks, files.len(), wide, mdat)?,
            ranges: ranges(&order),
            len: head_len + mdat,
        })
    }
}

fn split(track: &Track) -> Vec<Chunk> {
    let most = Time::from_ms(CHUNK_MS).ceil_to(track.timescale);
    chunks(&track.samples, u64::try_from(most).unwrap_or(1))
}

/// All chunks in the order in which they will lie.
fn order(tracks: &[(usize, &Track)], chunks: &[Vec<Chunk>], by_time: bool) -> Vec<Piece> {
    let mut order: Vec<Piece> = Vec::with_capacity(chunks.iter().map(Vec::len).sum());
    for (track, ((file, of), chunks)) in tracks.iter().zip(chunks).enumerate() {
        order.extend(chunks.iter().enumerate().map(|(n, chunk)| {
            let shown = i64::try_from(chunk.dts)
                .unwrap_or(i64::MAX)
                .saturating_add(of.origin);
            Piece {
                place: (track, n),
                file: *file,
                when: if by_time {
                    Time::new(shown, of.timescale).nanos()
                } else {
                    0
                },
                chunk: *chunk,
            }
        }));
    }
    order.sort_by_key(|piece| (piece.when, piece.file, piece.chunk.offset));
    order
}

/// Gives each chunk its place behind a head of `at` bytes.
fn place(order: &[Piece], chunks: &mut [Vec<Chunk>], mut at: u64) {
    for piece in order {
        let (track, n) = piece.place;
        if let Some(chunk) = chunks.get_mut(track).and_then(|chunks| chunks.get_mut(n)) {
            chunk.offset = at;
        }
        at += piece.chunk.bytes;
    }
}

fn ranges(order: &[Piece]) -> Vec<(usize, Range<u64>)> {
    let mut ranges: Vec<(usize, Range<u64>)> = Vec::new();
    for piece in order.iter().filter(|piece| piece.chunk.bytes > 0) {
        let begin = piece.chunk.offset;
        let end = begin + piece.chunk.bytes;
        match ranges.last_mut() {
            Some((file, last)) if *file == piece.file && last.end == begin => last.end = end,
            _ => ranges.push((piece.file, begin..end)),
        }
    }
    ranges
}

fn head(
    tracks: &[(usize, &Track)],
    chunks: &[Vec<Chunk>],
    files: usize,
    wide: bool,
    mdat: u64,
) -> Result<Vec<u8>> {
    let movie = Movie::new(tracks.iter().map(|(_, track)| *track));
    let traks: Vec<Trak<'_>> = tracks
        .iter()
        .zip(chunks)
        .enumerate()
        .map(|(n, ((_, track), chunks))| Trak {
            track,
            // Several files may use the same number.
            id: if files > 1 { n as u32 + 1 } else { track.id },
            location: &Location::Here,
            chunks,
        })
        .collect();
    let mut out = FTYP.to_vec();
    write_box(&mut out, b"moov", |out| movie.write(out, &traks, wide));
    if out.len() as u64 > u64::from(u32::MAX) {
        return Err(Error::new(Kind::TooLarge, "its tables are over 4 GiB"));
    }
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
