//! Writing of `moov` boxes with whole sample tables (ISO/IEC 14496-12, 8.2 to 8.7).

use super::edit_list::{TrackEdits, build_edits, movie_timescale};
use super::sample_table::{self, FileChunk, write_words};
use crate::bmff::dref::{self, DataReference};
use crate::bytes::{write_box, write_full_box};
use crate::codec::TrackFormat;
use crate::index::{Track, write_track_user_data};
use crate::plan::init_segment::{IDENTITY_MATRIX_WORDS, display_size, pack_language, write_hdlr};

/// A track to write.
pub(super) struct TrakWriter<'a> {
    pub track: &'a Track,
    /// `track_ID`.
    pub track_id: u32,
    /// The file that contains the samples of the track.
    pub location: &'a DataReference,
    /// The chunks of the track, in decode order.
    pub chunks: &'a [FileChunk],
}

/// The timescale of a movie, and the edit lists of its tracks.
pub(super) struct MovieWriter {
    timescale: u32,
    edits: Vec<TrackEdits>,
}

impl MovieWriter {
    pub fn new<'a>(tracks: impl Iterator<Item = &'a Track> + Clone) -> MovieWriter {
        let timescale = movie_timescale(tracks.clone());
        MovieWriter {
            timescale,
            edits: tracks.map(|track| build_edits(track, timescale)).collect(),
        }
    }

    /// Returns whether the edit lists express all times exactly.
    pub fn has_exact_edits(&self) -> bool {
        self.edits.iter().all(|edits| edits.is_exact)
    }

    /// Appends the content of a `moov` with these tracks. `wide` selects 64-bit chunk offsets.
    pub fn write_moov_content(&self, out: &mut Vec<u8>, traks: &[TrakWriter<'_>], wide: bool) {
        let edits = &self.edits;
        let end = edits.iter().map(|edits| edits.movie_end).max().unwrap_or(0);
        let next = traks.iter().map(|trak| trak.track_id).max().unwrap_or(0);
        write_full_box(out, b"mvhd", 1, 0, |out| {
            // creation, modification
            write_words(out, &[0; 4]);
            write_words(out, &[self.timescale]);
            out.extend_from_slice(&end.to_be_bytes());
            // rate 1.0, volume 1.0, reserved fields
            write_words(out, &[0x1_0000, 0x0100_0000, 0, 0]);
            write_words(out, &IDENTITY_MATRIX_WORDS);
            write_words(out, &[0; 6]);
            write_words(out, &[next.wrapping_add(1)]);
        });
        for (trak, edits) in traks.iter().zip(edits) {
            write_box(out, b"trak", |out| {
                trak.write_trak_content(out, edits, wide)
            });
        }
        let protected = traks
            .iter()
            .filter_map(|trak| trak.track.protection.as_ref());
        let boxes = protected.flat_map(|source| &source.pssh_boxes);
        let mut written: Vec<&Vec<u8>> = Vec::new();
        for pssh in boxes {
            if !written.contains(&pssh) {
                out.extend_from_slice(pssh);
                written.push(pssh);
            }
        }
    }
}

impl TrakWriter<'_> {
    fn write_trak_content(&self, out: &mut Vec<u8>, edits: &TrackEdits, wide: bool) {
        self.write_tkhd(out, edits.movie_end);
        if !edits.entries.is_empty() {
            write_box(out, b"edts", |out| write_elst(out, edits));
        }
        write_box(out, b"mdia", |out| self.write_mdia(out, wide));
        write_track_user_data(out, self.track.name.as_deref(), &self.track.roles);
    }

    fn write_tkhd(&self, out: &mut Vec<u8>, duration: u64) {
        // `track_in_movie`, `track_in_preview`, and `track_enabled` if the track is enabled
        let flags = 6 | u32::from(self.track.is_enabled);
        write_full_box(out, b"tkhd", 1, flags, |out| {
            // creation, modification, track_ID, reserved
            write_words(out, &[0, 0, 0, 0, self.track_id, 0]);
            out.extend_from_slice(&duration.to_be_bytes());
            let volume = u32::from(self.track.codec.audio().is_some()) * 0x0100_0000;
            // reserved fields, layer, alternate group, volume
            write_words(out, &[0, 0, 0, volume]);
            write_words(out, &self.track.matrix.map(|value| value as u32));
            let (width, height) = display_size(self.track);
            write_words(out, &[width, height]);
        });
    }

    fn write_mdia(&self, out: &mut Vec<u8>, wide: bool) {
        let track = self.track;
        write_full_box(out, b"mdhd", 1, 0, |out| {
            write_words(out, &[0, 0, 0, 0, track.timescale]);
            out.extend_from_slice(&track.samples.total_duration().to_be_bytes());
            out.extend_from_slice(&pack_language(&track.language).to_be_bytes());
            out.extend_from_slice(&[0; 2]);
        });
        write_hdlr(out, track);
        write_box(out, b"minf", |out| self.write_minf(out, wide));
    }

    fn write_minf(&self, out: &mut Vec<u8>, wide: bool) {
        match &self.track.codec.format {
            // graphics mode: copy
            TrackFormat::Video(_) => {
                write_full_box(out, b"vmhd", 0, 1, |out| write_words(out, &[0; 2]))
            }
            // balance: centre
            TrackFormat::Audio(_) => {
                write_full_box(out, b"smhd", 0, 0, |out| write_words(out, &[0]))
            }
            TrackFormat::Text(_) => write_full_box(out, b"nmhd", 0, 0, |_| {}),
        }
        write_box(out, b"dinf", |out| dref::write_dref(out, self.location));
        write_box(out, b"stbl", |out| {
            write_full_box(out, b"stsd", 0, 0, |out| {
                write_words(out, &[1]);
                match &self.track.protection {
                    Some(source) => source.entry.write_entry(out, &self.track.codec),
                    None => self.track.codec.write_sample_entry(out),
                }
            });
            sample_table::write_sample_table(out, &self.track.samples, self.chunks, wide);
            if let Some(source) = &self.track.protection {
                source.auxiliary.write_senc(out);
            }
            // Only index MP4s contain the stored subsamples, because players of a progressive MP4
            // do not need them.
            let is_index = matches!(self.location, DataReference::External(_));
            if let Some(stored) = self.track.subsamples.as_ref().filter(|_| is_index) {
                stored.write_uuid_box(out);
            }
        });
    }
}

fn write_elst(out: &mut Vec<u8>, edits: &TrackEdits) {
    write_full_box(out, b"elst", 1, 0, |out| {
        write_words(out, &[edits.entries.len() as u32]);
        for edit in &edits.entries {
            out.extend_from_slice(&edit.duration.to_be_bytes());
            out.extend_from_slice(&edit.media_time.to_be_bytes());
            write_words(out, &[edit.rate]);
        }
    });
}
