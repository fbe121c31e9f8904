//! The index of one media file: compact sample tables for each track.

mod chunk_table;
mod column_builder;
mod duration_table;
mod early_parsed_tracks;
mod edit_list;
mod external_references;
mod fingerprint;
mod fragment;
mod hidden_pictures;
mod indexer;
mod left_out;
#[cfg(test)]
mod malformed_file_tests;
mod movie_draft;
mod packed_integers;
mod sample_table;
mod sample_table_builder;
mod size_table;
mod source_record;
mod stbl;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod track_draft;
mod track_role;
mod trak;

pub(crate) use edit_list::EDIT_TIME_MAX;
pub use external_references::ExternalReferences;
pub use indexer::{Indexer, index_file_in_memory};
pub use left_out::LeftOutTrack;
pub use packed_integers::PackedIntegers;
pub use sample_table::{Sample, SampleTable};
pub use sample_table_builder::SampleTableBuilder;
pub(crate) use source_record::SourceRecord;
pub(crate) use track_role::write_track_user_data;
pub use track_role::{AUDIO_PURPOSE_SCHEME, DASH_ROLE_SCHEME, TrackRole};

use crate::codec::Codec;
use crate::protection::{SourceProtection, StoredSubsamples};
use crate::text::CaptionChannel;
use crate::time::Time;
use std::sync::Arc;

/// Everything that is needed to package one file without reading its metadata again.
#[derive(Debug, Clone)]
pub struct Index {
    /// Video and audio tracks that can be packaged, in file order. May be empty if the file has
    /// text tracks.
    pub tracks: Vec<Track>,
    /// Text tracks, in file order.
    pub text_tracks: Vec<Track>,
    /// Size of the file in bytes at the time of indexing.
    pub file_len: u64,
    /// Hash of all metadata bytes (`moov` and `moof` boxes). It changes with the size, time or
    /// offset of any sample.
    pub fingerprint: u64,
    /// Version of the media, if the caller knows the version. An index MP4 stores the version, so
    /// that a replaced media file of the same length is detected.
    pub media_version: Option<MediaVersion>,
    /// Properties of the file that may cause problems in players, for reports.
    pub notes: Vec<IndexNote>,
    /// Tracks of the file, and parts of tracks, that are not served.
    pub left_out: Vec<LeftOutTrack>,
    /// Captions that the video contains; `None` if the caller did not search the media for
    /// captions. An index MP4 stores the result, so that the media is searched only once.
    pub caption_channels: Option<Vec<CaptionChannel>>,
}

/// Identifies a version of a media file, even among versions of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaVersion {
    /// A hash of some bytes of the media.
    ContentHash(u64),
    /// A hash of the entity tag of the media in storage.
    EntityTagHash(u64),
}

/// One track of a file.
#[derive(Debug, Clone)]
pub struct Track {
    /// `track_ID` of the tkhd box.
    pub id: u32,
    /// Ticks per second for all times of this track; never zero.
    pub timescale: u32,
    /// ISO 639-2/T code, or a BCP 47 tag from `elng`; `und` if unspecified.
    pub language: String,
    /// Name that the author gave the track, from `udta/name` or `hdlr`. Stock phrases of muxers are
    /// ignored.
    pub name: Option<String>,
    /// Whether the enabled flag of `tkhd` is set, which marks a default track.
    pub is_enabled: bool,
    /// Purposes that the author declared, without duplicates.
    pub roles: Vec<TrackRole>,
    /// The codec, with the sample entry for init segments.
    pub codec: Codec,
    /// The samples that the edit list keeps. Never empty. Decode times start at 0.
    pub samples: SampleTable,
    /// Presentation time, with the edit list applied, of a sample whose decode time and composition
    /// offset are 0, in ticks.
    ///
    /// A sample is shown at `dts + composition_offset + presentation_offset`. The value is negative
    /// if the track starts with priming samples, and positive if the track starts late.
    pub presentation_offset: i64,
    /// End of the presentation according to the edit list, in ticks; `None` means the end of the
    /// last sample. Segments contain whole samples, so the last segment may end later.
    pub presentation_end: Option<i64>,
    /// Encryption that the source already has. The encrypted samples are served unchanged.
    pub protection: Option<Arc<SourceProtection>>,
    /// Subsamples of all samples for Common Encryption, if the subsamples are known.
    pub subsamples: Option<Arc<StoredSubsamples>>,
    /// Matrix of `tkhd`, which rotates or mirrors the picture. Phones write such matrices.
    pub matrix: [i32; 9],
}

/// A note about a property of a file. The property is valid, but may cause problems in players.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexNote {
    /// `track_ID` of the track; 0 for the whole file.
    pub track_id: u32,
    /// Time that the note refers to, in ticks of the track; `None` if the note refers to no
    /// specific time.
    pub time_ticks: Option<u64>,
    /// Description as one sentence.
    pub message: String,
}

impl Track {
    /// Returns the presentation time of sample `n` on the film's own timeline.
    pub fn presentation_time(&self, n: u32) -> Time {
        let sample = self.samples.get(n);
        Time::new(
            sample.dts as i64 + i64::from(sample.composition_offset) + self.presentation_offset,
            self.timescale,
        )
    }

    /// Sum of all sample durations.
    pub fn duration(&self) -> Time {
        Time::new(self.samples.total_duration() as i64, self.timescale)
    }
}

impl Index {
    /// Memory of this index in bytes, for cache budgets.
    pub fn heap_bytes(&self) -> usize {
        let tracks = self.tracks.iter().chain(&self.text_tracks).map(|track| {
            let protection = track.protection.as_ref();
            size_of::<Track>()
                + track.samples.heap_bytes()
                + track.codec.heap_bytes()
                + protection.map_or(0, |own| own.heap_bytes())
                + track.subsamples.as_ref().map_or(0, |own| own.heap_bytes())
        });
        let notes = self.notes.iter();
        let notes = notes.map(|note| size_of::<IndexNote>() + note.message.len());
        let left_out = self.left_out.iter();
        let left_out =
            left_out.map(|part| size_of::<LeftOutTrack>() + part.name.len() + part.reason.len());
        size_of::<Index>() + tracks.sum::<usize>() + notes.sum::<usize>() + left_out.sum::<usize>()
    }
}
