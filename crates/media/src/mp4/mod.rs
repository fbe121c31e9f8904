//! Whole MP4 files written from indexes: index MP4s, whose samples lie in another file, and
//! progressive ones, which bring them along.

mod edits;
mod moov;
mod progressive;
mod tables;
#[cfg(test)]
mod tests;

pub use progressive::Progressive;

use crate::bmff::dref::Location;
use crate::bytes::write_box;
use crate::error::{Error, Result};
use crate::index::{Index, Mark};
use moov::{Movie, Trak};
use tables::{Chunk, chunks};

/// `isom` and nothing newer: all that is said here, its first version says.
const FTYP: &[u8; 24] = b"\0\0\0\x18ftypisom\0\0\x02\0isommp41";

/// An index MP4: the tables of `index`, and the name of its media in `dref`. Fragmented sources
/// have become plain tables. [`crate::index::Indexer::take_references`] reads it back, to the
/// same index.
///
/// # Errors
/// `Unsupported` where delays of tracks cannot all be said exactly in the movie's one clock.
pub fn index_file(index: &Index, media: &str) -> Result<Vec<u8>> {
    let location = Location::Named(media.to_owned());
    let movie = Movie::new(index.tracks.iter());
    if !movie.is_exact() {
        let what = "no movie timescale of 32 bits says when each of its tracks is shown";
        return Err(Error::unsupported(what));
    }
    let chunks: Vec<Vec<Chunk>> = index
        .tracks
        .iter()
        .map(|track| chunks(&track.samples, u64::MAX))
        .collect();
    let traks: Vec<Trak<'_>> = index
        .tracks
        .iter()
        .zip(&chunks)
        .map(|(track, chunks)| Trak {
            track,
            id: track.id,
            location: &location,
            chunks,
        })
        .collect();
    let mark = Mark {
        file_len: index.file_len,
        fingerprint: index.fingerprint,
        media_state: index.media_state,
        notes: index.notes.clone(),
    };
    let mut out = FTYP.to_vec();
    let wide = index.file_len > u64::from(u32::MAX);
    write_box(&mut out, b"moov", |out| {
        let from = out.len();
        movie.write(out, &traks, wide);
        mark.write(out, from);
    });
    Ok(out)
}
