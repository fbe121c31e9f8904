//! Index MP4s. The `moov` of an index MP4 describes samples in other files, which its `dref` boxes
//! name (ISO/IEC 14496-12, 8.7.2).

use super::early_parsed_tracks::EarlyParsedTracks;
use super::fingerprint::FingerprintHasher;
use super::movie_draft::{FinishedMovie, MovieDraft, is_confined_to_track};
use super::trak::{MEDIA_HANDLERS, MediaFile, TEXT_HANDLERS, collect_data_references};
use super::{Index, MediaVersion, SourceRecord};
use crate::bmff::dref::DataReference;
use crate::bmff::{BoxIterator, Mp4Box};
use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;

/// Maximum number of files that one index MP4 may reference.
pub const LOCATIONS_MAX: usize = 64;

/// The parsed `moov` of an index MP4.
///
/// [`ExternalReferences::build_index`] creates the [`Index`] of each referenced file. Only the
/// length of the referenced file is needed, not its content.
#[derive(Debug)]
pub struct ExternalReferences {
    /// Bytes of the index MP4. `moov_range` is the range of the `moov` within these bytes.
    bytes: Vec<u8>,
    moov_range: Range<usize>,
    /// Offset of the `moov` in the index MP4.
    moov_offset: u64,
    /// Tracks that were parsed while the `moov` arrived.
    early_tracks: EarlyParsedTracks,
    is_quicktime: bool,
    locations: Vec<DataReference>,
    source_record: Option<SourceRecord>,
}

impl ExternalReferences {
    /// Reads the references of a `moov`. Returns `None` if all media is in the file of the `moov`.
    /// The references of text tracks count only if there is neither video nor audio.
    ///
    /// If there are references, the caller passes the bytes that contain the `moov` to
    /// [`ExternalReferences::store_moov_bytes`].
    pub(super) fn from_moov(
        moov: &Mp4Box<'_>,
        is_quicktime: bool,
        early_tracks: &mut EarlyParsedTracks,
    ) -> Result<Option<ExternalReferences>> {
        let mut locations = collect_locations(moov, &MEDIA_HANDLERS)?;
        if locations.is_empty() {
            locations = collect_locations(moov, &TEXT_HANDLERS)?;
        }
        if locations
            .iter()
            .all(|location| *location == DataReference::SameFile)
        {
            return Ok(None);
        }
        Ok(Some(ExternalReferences {
            bytes: Vec::new(),
            moov_range: 0..moov.bytes.len(),
            moov_offset: moov.offset,
            early_tracks: EarlyParsedTracks::default(),
            is_quicktime,
            source_record: SourceRecord::read_from_moov(moov, early_tracks)
                .filter(|_| locations.len() == 1),
            locations,
        }))
    }

    /// Stores `bytes` and the tracks that were parsed early. The `moov` starts at byte `from` of
    /// `bytes`.
    pub(super) fn store_moov_bytes(
        &mut self,
        bytes: Vec<u8>,
        from: usize,
        early_tracks: EarlyParsedTracks,
    ) {
        self.moov_range = from..from + self.moov_range.len();
        (self.bytes, self.early_tracks) = (bytes, early_tracks);
    }

    fn moov_bytes(&self) -> &[u8] {
        self.bytes.get(self.moov_range.clone()).unwrap_or_default()
    }

    /// Returns the files that contain the media, without duplicates. The index MP4 itself may be
    /// one of these files.
    pub fn data_references(&self) -> &[DataReference] {
        &self.locations
    }

    /// Returns the length that the media file had when it was indexed, in bytes. Returns `None` if
    /// there is no source record.
    ///
    /// If there is a source record, the index that [`ExternalReferences::build_index`] returns has
    /// the recorded fingerprint of the media file. Otherwise, the fingerprint is a hash of the
    /// `moov` and of the length of the media file. If only the content of the media file
    /// changes, this fingerprint stays the same.
    pub fn recorded_media_len(&self) -> Option<u64> {
        self.source_record.as_ref().map(|mark| mark.file_len)
    }

    /// Returns the hash of the entity tag that the media had when it was indexed, if the hash is
    /// recorded.
    pub fn recorded_entity_tag_hash(&self) -> Option<u64> {
        match self.source_record.as_ref()?.media_state? {
            MediaVersion::EntityTagHash(hash) => Some(hash),
            MediaVersion::ContentHash(_) => None,
        }
    }

    /// Builds the index of file `n` of [`ExternalReferences::data_references`]. The file is `len` bytes
    /// long.
    ///
    /// # Errors
    /// Any error in the sample tables. `Truncated` if samples are beyond the end of the file, or if
    /// `len` differs from the recorded length.
    pub fn build_index(&mut self, n: usize, len: u64) -> Result<Index> {
        if let Some(mark) = &self.source_record
            && mark.file_len != len
        {
            let message = format!(
                "the media is {len} bytes long, but was {} when it was indexed: index it again",
                mark.file_len
            );
            return Err(Error::new(ErrorKind::Truncated, message));
        }
        let mut early_tracks = std::mem::take(&mut self.early_tracks);
        let moov = Mp4Box::parse_first(self.moov_bytes(), self.moov_offset)?;
        let source = match self.locations.get(n) {
            None | Some(DataReference::SameFile) => {
                MediaFile::containing_moov(len, moov.offset..moov.offset + moov.bytes.len() as u64)
            }
            Some(named) => MediaFile::from_external_file(named.clone(), len),
        };
        let mut notes = Vec::new();
        let movie = MovieDraft::from_moov(&moov, self.is_quicktime, &source, &mut early_tracks);
        self.early_tracks = early_tracks;
        let movie = movie?;
        let FinishedMovie {
            tracks,
            text_tracks,
            left_out,
        } = movie.finish(&mut notes)?;
        let (fingerprint, media_state) = match &self.source_record {
            Some(mark) => (mark.fingerprint, mark.media_state),
            None => (self.compute_fingerprint(n, len), None),
        };
        let (notes, left_out) = match &self.source_record {
            Some(mark) => (mark.notes.clone(), mark.left_out.clone()),
            None => (notes, left_out),
        };
        let recorded = self.source_record.as_ref();
        let caption_channels = recorded.and_then(|mark| mark.caption_channels.clone());
        Ok(Index {
            tracks,
            text_tracks,
            file_len: len,
            fingerprint,
            media_version: media_state,
            notes,
            left_out,
            caption_channels,
        })
    }

    fn compute_fingerprint(&self, n: usize, len: u64) -> u64 {
        let mut hash = FingerprintHasher::new(len);
        hash.add_box(n as u64, self.moov_bytes());
        hash.finish()
    }

    /// Creates the error for an index MP4 that is used as a media file.
    pub(super) fn index_as_media_error(&self) -> Error {
        let names = self.locations.iter().filter_map(|location| match location {
            DataReference::SameFile => None,
            DataReference::External(name) => Some(name.as_str()),
        });
        let names: Vec<&str> = names.take(4).collect();
        let message = format!("the media is in other files: {}", names.join(", "));
        Error::unsupported(message)
    }
}

/// Returns the files that contain the media of the tracks with these handler types.
fn collect_locations(moov: &Mp4Box<'_>, handlers: &[[u8; 4]]) -> Result<Vec<DataReference>> {
    let mut locations = Vec::new();
    for child in BoxIterator::new(moov.body, moov.body_offset()) {
        // Ignores the error, because parsing the tracks reports the same error.
        let Ok(child) = child else { break };
        if child.name == *b"trak" {
            match collect_data_references(&child, handlers, &mut locations) {
                // Ignores the error, because parsing the track reports the same error.
                Err(fault) if is_confined_to_track(&fault) => {}
                added => added.map_err(|error| {
                    error
                        .with_enclosing_box(*b"trak")
                        .with_enclosing_box(*b"moov")
                })?,
            }
        }
        if locations.len() > LOCATIONS_MAX {
            let message = format!("the media is in more than {LOCATIONS_MAX} files");
            return Err(Error::new(ErrorKind::TooLarge, message).with_enclosing_box(*b"moov"));
        }
    }
    Ok(locations)
}
