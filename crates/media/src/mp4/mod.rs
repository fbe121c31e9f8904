//! Writing of whole MP4 files from indexes. The samples of an index MP4 are in another file. A
//! progressive MP4 contains its samples.

mod edit_list;
mod moov;
mod progressive;
mod sample_table;
#[cfg(test)]
mod tests;

pub use progressive::ProgressiveMp4;

use crate::bmff::dref::DataReference;
use crate::bytes::write_box;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Index, SourceRecord};
use moov::{MovieWriter, TrakWriter};
use sample_table::{FileChunk, collect_chunks};

/// The `ftyp` box, which declares the brands `isom` and `mp41`.
const FTYP: &[u8; 24] = b"\0\0\0\x18ftypisom\0\0\x02\0isommp41";

/// Writes an index MP4, which contains the tables of `index`. Its `dref` box contains the name of
/// the media file (ISO/IEC 14496-12, 8.7.2).
///
/// The samples are listed in plain sample tables, even if the source is fragmented. The same index
/// can be built from the references that [`crate::index::Indexer::take_references`] returns for
/// this file.
///
/// # Errors
/// `Unsupported` if no movie timescale expresses the edit lists of all tracks exactly. `TooLarge`
/// if the tables exceed 4 GiB.
pub fn write_index_mp4(index: &Index, media: &str) -> Result<Vec<u8>> {
    let location = DataReference::External(media.to_owned());
    let tracks = || index.tracks.iter().chain(&index.text_tracks);
    let movie = MovieWriter::new(tracks());
    if !movie.has_exact_edits() {
        let message = "no 32-bit movie timescale expresses the times of all tracks exactly";
        return Err(Error::unsupported(message));
    }
    let chunks: Vec<Vec<FileChunk>> = tracks()
        .map(|track| collect_chunks(&track.samples, u64::MAX))
        .collect();
    let traks: Vec<TrakWriter<'_>> = tracks()
        .zip(&chunks)
        .map(|(track, chunks)| TrakWriter {
            track,
            track_id: track.id,
            location: &location,
            chunks,
        })
        .collect();
    let mark = SourceRecord {
        file_len: index.file_len,
        fingerprint: index.fingerprint,
        media_state: index.media_version,
        notes: index.notes.clone(),
        left_out: index.left_out.clone(),
        caption_channels: index.caption_channels.clone(),
    };
    let mut out = FTYP.to_vec();
    let wide = index.file_len > u64::from(u32::MAX);
    write_box(&mut out, b"moov", |out| {
        let from = out.len();
        movie.write_moov_content(out, &traks, wide);
        mark.append_to_moov(out, from);
    });
    check_head_len(out.len() as u64)?;
    Ok(out)
}

/// Checks the length of `ftyp` and `moov`, because the size field of a `moov` has 32 bits.
///
/// # Errors
/// `TooLarge` if the length exceeds 4 GiB.
fn check_head_len(len: u64) -> Result<()> {
    match u32::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::new(ErrorKind::TooLarge, "the tables are over 4 GiB")),
    }
}
