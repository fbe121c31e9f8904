//! A moov box with whole sample tables (ISO/IEC 14496-12, 8.2 to 8.7).

use super::edits::{Edits, edits, movie_timescale};
use super::tables::{self, Chunk, put};
use crate::bmff::dref::{self, Location};
use crate::bytes::{write_box, write_full_box};
use crate::codec::Media;
use crate::index::Track;
use crate::plan::init::{MATRIX, display_size, packed_language, write_hdlr};

/// A track to be written.
pub(super) struct Trak<'a> {
    pub track: &'a Track,
    /// `track_ID`.
    pub id: u32,
    /// Where its samples lie.
    pub location: &'a Location,
    /// The same, piece by piece.
    pub chunks: &'a [Chunk],
}

/// What all tracks share.
pub(super) struct Movie {
    timescale: u32,
    edits: Vec<Edits>,
}

impl Movie {
    pub fn new<'a>(tracks: impl Iterator<Item = &'a Track> + Clone) -> Movie {
        let timescale = movie_timescale(tracks.clone());
        Movie {
            timescale,
            edits: tracks.map(|track| edits(track, timescale)).collect(),
        }
    }

    /// Whether all times are said exactly.
    pub fn is_exact(&self) -> bool {
        self.edits.iter().all(|edits| edits.exact)
    }

    /// Appends what a moov of these tracks holds. `wide`: offsets need 64 bits.
    pub fn write(&self, out: &mut Vec<u8>, traks: &[Trak<'_>], wide: bool) {
        let edits = &self.edits;
        let end = edits.iter().map(|edits| edits.end).max().unwrap_or(0);
        let next = traks.iter().map(|trak| trak.id).max().unwrap_or(0);
        write_full_box(out, b"mvhd", 1, 0, |out| {
            // creation, modification
            put(out, &[0; 4]);
            put(out, &[self.timescale]);
            out.extend_from_slice(&end.to_be_bytes());
            // rate 1.0, volume 1.0 and reserved, reserved
            put(out, &[0x1_0000, 0x0100_0000, 0, 0]);
            put(out, &MATRIX);
            put(out, &[0; 6]);
            put(out, &[next.wrapping_add(1)]);
        });
        for (trak, edits) in traks.iter().zip(edits) {
            write_box(out, b"trak", |out| trak.write(out, edits, wide));
        }
    }
}

impl Trak<'_> {
    fn write(&self, out: &mut Vec<u8>, edits: &Edits, wide: bool) {
        self.tkhd(out, edits.end);
        if !edits.list.is_empty() {
            write_box(out, b"edts", |out| elst(out, edits));
        }
        write_box(out, b"mdia", |out| self.mdia(out, wide));
        if let Some(name) = &self.track.name {
            write_box(out, b"udta", |out| {
                write_box(out, b"name", |out| out.extend_from_slice(name.as_bytes()));
            });
        }
    }

    fn tkhd(&self, out: &mut Vec<u8>, duration: u64) {
        // in movie, in preview; and enabled
        let flags = 6 | u32::from(self.track.enabled);
        write_full_box(out, b"tkhd", 1, flags, |out| {
            // creation, modification, track_ID, reserved
            put(out, &[0, 0, 0, 0, self.id, 0]);
            out.extend_from_slice(&duration.to_be_bytes());
            let volume = u32::from(self.track.codec.audio().is_some()) * 0x0100_0000;
            // reserved, layer and group
            put(out, &[0, 0, 0, volume]);
            put(out, &self.track.matrix.map(|value| value as u32));
            let (width, height) = display_size(self.track);
            put(out, &[width, height]);
        });
    }

    fn mdia(&self, out: &mut Vec<u8>, wide: bool) {
        let track = self.track;
        write_full_box(out, b"mdhd", 1, 0, |out| {
            put(out, &[0, 0, 0, 0, track.timescale]);
            out.extend_from_slice(&track.samples.end().to_be_bytes());
            out.extend_from_slice(&packed_language(&track.language).to_be_bytes());
            out.extend_from_slice(&[0; 2]);
        });
        write_hdlr(out, track);
        write_box(out, b"minf", |out| self.minf(out, wide));
    }

    fn minf(&self, out: &mut Vec<u8>, wide: bool) {
        match &self.track.codec.media {
            // graphics mode: copy
            Media::Video(_) => write_full_box(out, b"vmhd", 0, 1, |out| put(out, &[0; 2])),
            // balance: centre
            Media::Audio(_) => write_full_box(out, b"smhd", 0, 0, |out| put(out, &[0])),
        }
        write_box(out, b"dinf", |out| dref::write(out, self.location));
        write_box(out, b"stbl", |out| {
            write_full_box(out, b"stsd", 0, 0, |out| {
                put(out, &[1]);
                self.track.codec.write_entry(out);
            });
            tables::write(out, &self.track.samples, self.chunks, wide);
        });
    }
}

fn elst(out: &mut Vec<u8>, edits: &Edits) {
    write_full_box(out, b"elst", 1, 0, |out| {
        put(out, &[edits.list.len() as u32]);
        for edit in &edits.list {
            out.extend_from_slice(&edit.duration.to_be_bytes());
            out.extend_from_slice(&edit.media_time.to_be_bytes());
            put(out, &[edit.rate]);
        }
    });
}
