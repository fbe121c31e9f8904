//! Parses tracks while their `moov` is still being received.
//!
//! Each track is parsed as soon as its whole `trak` box has arrived. When the `moov` is complete,
//! the final parse reuses the tracks whose media is in the requested file. Early parsing ignores
//! errors, because the final parse reports them.

use super::fingerprint::{FingerprintHasher, IncrementalHash};
use super::source_record::SourceRecord;
use super::track_draft::{SAMPLES_MAX, TrackDraft};
use super::trak::{
    MEDIA_HANDLERS, MediaFile, TRACKS_MAX, TrakOutcome, collect_data_references, read_trak,
};
use crate::bmff::dref::DataReference;
use crate::bmff::stsz::SampleSizes;
use crate::bmff::{BoxHeader, Mp4Box};
use crate::error::Result;
use std::ops::Range;

/// Parsed tracks and partial hash of a `moov` that is still being received.
#[derive(Debug, Default)]
pub(super) struct EarlyParsedTracks {
    /// Byte range of the `moov` in the file.
    moov_range: Range<u64>,
    is_quicktime: bool,
    file_len: u64,
    /// Offset of the next child box within the `moov`. Zero until the header of the `moov` is
    /// parsed.
    next_child_offset: usize,
    /// Number of `trak` boxes found so far.
    trak_count: usize,
    /// Whether a broken track was found. No later track is then parsed early, because the final
    /// parse may fail at the broken track.
    has_broken_track: bool,
    tracks: Vec<EarlyParsedTrack>,
    /// Hash of the `moov` bytes, computed as they arrive.
    incremental_hash: Option<IncrementalHash>,
}

/// A track that was parsed early.
#[derive(Debug)]
struct EarlyParsedTrack {
    /// Offset of the `trak` box in the file.
    offset: u64,
    /// File that contains the media of the track.
    location: DataReference,
    draft: Box<TrackDraft>,
}

impl EarlyParsedTracks {
    /// Parses the tracks that became complete since the last call.
    ///
    /// `moov` contains the bytes of the `moov` box that have arrived so far. `moov_range` is the
    /// byte range of the whole box in a file of `file_len` bytes.
    pub fn parse_available_tracks(
        &mut self,
        moov: &[u8],
        moov_range: Range<u64>,
        is_quicktime: bool,
        file_len: u64,
    ) {
        (self.moov_range, self.is_quicktime, self.file_len) = (moov_range, is_quicktime, file_len);
        self.read_complete_tracks(moov);
        if self.incremental_hash.is_none() {
            let first = self.tracks.first().map(|ready| &ready.location);
            self.incremental_hash = first.and_then(|location| self.start_hash(location, moov));
        }
        if let Some(hashing) = &mut self.incremental_hash {
            hashing.add_available(moov);
        }
    }

    /// Discards the tracks and the hash, unless they come from the `moov` at offset `at` and were
    /// parsed with the same value of `is_quicktime`.
    pub fn discard_unless_moov_at(&mut self, at: u64, is_quicktime: bool) {
        if (self.moov_range.start, self.is_quicktime) != (at, is_quicktime) {
            *self = EarlyParsedTracks::default();
        }
    }

    /// Returns the hash of the bytes `range` of `moov`. Returns `None` if early parsing did not
    /// start a hash of this range.
    pub fn take_hash(&mut self, moov: &[u8], range: Range<usize>) -> Option<FingerprintHasher> {
        self.incremental_hash.take()?.finish(moov, &range)
    }

    fn read_complete_tracks(&mut self, moov: &[u8]) {
        while self.trak_count < TRACKS_MAX && !self.has_broken_track && !self.has_too_many_samples()
        {
            let rest = moov.get(self.next_child_offset..).unwrap_or_default();
            let at = self.moov_range.start + self.next_child_offset as u64;
            let left = self.moov_range.end.saturating_sub(at);
            let Ok(Some(header)) = BoxHeader::parse(rest, left) else {
                return;
            };
            if self.next_child_offset == 0 {
                self.next_child_offset = header.header_len as usize;
                continue;
            }
            let whole = usize::try_from(header.box_size).ok();
            let Some(child) = whole.and_then(|size| rest.get(..size)) else {
                return;
            };
            self.next_child_offset += child.len();
            if header.name == *b"trak"
                && let Ok(trak) = Mp4Box::parse_first(child, at)
            {
                self.trak_count += 1;
                match self.read_track(&trak) {
                    Ok(track) => self.tracks.extend(track),
                    Err(_) => self.has_broken_track = true,
                }
            }
        }
    }

    /// Returns whether the tracks have more samples than a file may have. The final parse then
    /// reports the error.
    fn has_too_many_samples(&self) -> bool {
        let counts = self.tracks.iter().map(|track| track.draft.samples.len());
        counts.map(u64::from).sum::<u64>() > SAMPLES_MAX
    }

    /// Removes and returns the track whose `trak` box is at offset `at`, if `source` contains all
    /// media of the track.
    pub fn take_track(&mut self, at: u64, source: &MediaFile) -> Option<Box<TrackDraft>> {
        let is = |ready: &EarlyParsedTrack| ready.offset == at && ready.location == source.location;
        let found = self.tracks.iter().position(is)?;
        let mut draft = self.tracks.swap_remove(found).draft;
        draft.set_file_len(source.len).then_some(draft)
    }

    /// Parses a track if it can be packaged and all its media is in one file. The length of an
    /// external media file is not known yet, so a track with external media must also list a size
    /// for each sample.
    fn read_track(&self, trak: &Mp4Box<'_>) -> Result<Option<EarlyParsedTrack>> {
        let mut locations = Vec::new();
        collect_data_references(trak, &MEDIA_HANDLERS, &mut locations)?;
        let [location] = &locations[..] else {
            return Ok(None);
        };
        let source = match location {
            DataReference::SameFile => {
                MediaFile::containing_moov(self.file_len, self.moov_range.clone())
            }
            DataReference::External(_) if has_per_sample_sizes(trak) => {
                MediaFile::from_external_file(location.clone(), u64::MAX)
            }
            DataReference::External(_) => return Ok(None),
        };
        let TrakOutcome::Draft(draft) = read_trak(trak, self.is_quicktime, &source)? else {
            return Ok(None);
        };
        Ok(Some(EarlyParsedTrack {
            offset: trak.offset,
            location: source.location,
            draft,
        }))
    }

    /// Starts the hash that the final parse needs.
    ///
    /// If the media is in the same file, the hash covers the whole `moov`. In an index MP4, the
    /// hash covers the tables before the source record. The length of the source record is not
    /// known yet, so the hash assumes a record without notes.
    fn start_hash(&self, location: &DataReference, moov: &[u8]) -> Option<IncrementalHash> {
        let len = usize::try_from(self.moov_range.end - self.moov_range.start).ok()?;
        if *location == DataReference::SameFile {
            let mut hash = FingerprintHasher::new(self.file_len);
            hash.begin_box(self.moov_range.start, len);
            return Some(IncrementalHash::new(hash, 0..len));
        }
        let header = BoxHeader::parse(moov, len as u64).ok()??;
        let tables = header.header_len as usize..len.checked_sub(SourceRecord::BYTES_MIN)?;
        Some(IncrementalHash::new(
            SourceRecord::start_tables_hash(tables.len()),
            tables,
        ))
    }
}

/// Returns whether the track lists a size for each sample. If so, the length of the `stsz` box
/// limits the number of samples. If all samples share one size, only the length of the media file
/// limits the number of samples.
fn has_per_sample_sizes(trak: &Mp4Box<'_>) -> bool {
    let stbl = trak
        .require_child(b"mdia")
        .and_then(|mdia| mdia.require_child(b"minf"));
    let stbl = stbl.and_then(|minf| minf.require_child(b"stbl"));
    let stsz = stbl.and_then(|stbl| stbl.find_child(b"stsz"));
    match stsz {
        Ok(Some(stsz)) => !matches!(
            stsz.parse_body(SampleSizes::parse_stsz),
            Ok(SampleSizes::Constant(..))
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{
        ProgressiveLayout, SyntheticTrack, build_synthetic_progressive, unplaced_sample,
    };
    use crate::index::{Index, Indexer, index_file_in_memory};
    use crate::mp4;

    /// Builds the index of a film whose video samples differ in size and whose audio samples share
    /// one size.
    fn build_film_index() -> Index {
        let pictures = (0..900).map(|n| unplaced_sample(512, 0, 10 + n % 7, n % 4 == 0));
        let sound = (0..900).map(|_| unplaced_sample(1024, 0, 4, true));
        let tracks = [
            SyntheticTrack::video(1, pictures.collect()),
            SyntheticTrack::audio(2, sound.collect()),
        ];
        index_file_in_memory(
            &build_synthetic_progressive(&tracks, &ProgressiveLayout::default()).to_bytes(),
        )
        .unwrap()
    }

    fn find_moov(file: &[u8]) -> Mp4Box<'_> {
        let ftyp = Mp4Box::parse_first(file, 0).unwrap();
        Mp4Box::parse_first(&file[ftyp.bytes.len()..], ftyp.bytes.len() as u64).unwrap()
    }

    #[test]
    fn complete_tracks_are_read_early_if_the_file_bounds_them() {
        let index = build_film_index();
        let file = mp4::write_index_mp4(&index, "film.mp4").unwrap();
        let moov = find_moov(&file);
        let moov_range = moov.offset..file.len() as u64;
        let mut early_tracks = EarlyParsedTracks::default();
        let traks = moov.children().map(Result::unwrap);
        let traks: Vec<_> = traks.filter(|child| child.name == *b"trak").collect();
        let end = |trak: &Mp4Box<'_>| (trak.offset - moov.offset) as usize + trak.bytes.len();
        for (bytes, tracks) in [
            (0, 0),
            (20, 0),
            (end(&traks[0]) - 1, 0),
            (end(&traks[0]), 1),
            (moov.bytes.len(), 1),
        ] {
            early_tracks.parse_available_tracks(
                &moov.bytes[..bytes],
                moov_range.clone(),
                false,
                file.len() as u64,
            );
            assert_eq!(early_tracks.tracks.len(), tracks, "{bytes} bytes");
        }
        let source = |name: &str, len| {
            MediaFile::from_external_file(DataReference::External(name.to_owned()), len)
        };
        assert!(
            early_tracks
                .take_track(traks[0].offset, &source("other.mp4", 1 << 20))
                .is_none()
        );
        let draft = early_tracks.take_track(traks[0].offset, &source("film.mp4", index.file_len));
        assert_eq!(draft.unwrap().samples.len(), 900);
    }

    #[test]
    fn no_track_is_read_early_after_a_broken_one() {
        let pictures = |id| {
            SyntheticTrack::video(
                id,
                (0..9).map(|n| unplaced_sample(512, 0, n, true)).collect(),
            )
        };
        let tracks = [pictures(1), pictures(2), pictures(3)];
        let layout = ProgressiveLayout {
            moov_first: true,
            ..ProgressiveLayout::default()
        };
        let file = build_synthetic_progressive(&tracks, &layout).to_bytes();
        let moov = find_moov(&file);
        let second = moov.children().map(Result::unwrap);
        let second = second
            .filter(|child| child.name == *b"trak")
            .nth(1)
            .unwrap();
        let moov_range = moov.offset..moov.offset + moov.bytes.len() as u64;
        let tracks_of = |moov: &[u8]| {
            let mut early_tracks = EarlyParsedTracks::default();
            early_tracks.parse_available_tracks(moov, moov_range.clone(), false, file.len() as u64);
            early_tracks.tracks.len()
        };
        assert_eq!(tracks_of(moov.bytes), 3);
        let mut broken = moov.bytes.to_vec();
        let stsc = broken
            .windows(4)
            .enumerate()
            .filter(|(_, name)| name == b"stsc");
        let stsc = stsc
            .map(|(at, _)| at)
            .find(|at| *at as u64 > second.offset - moov.offset);
        // Sets the first chunk number in `stsc` to 0, which is invalid.
        broken[stsc.unwrap() + 12..][..4].fill(0);
        assert_eq!(tracks_of(&broken), 1);
    }

    #[test]
    fn tables_beyond_the_media_are_refused_as_without_early_reading() {
        let index = build_film_index();
        let mut file = mp4::write_index_mp4(&index, "film.mp4").unwrap();
        // Changes the hash in the source record. The record is then ignored, so any media length is
        // accepted.
        let last = file.len() - 1;
        file[last - SourceRecord::BYTES_MIN + 26] ^= 1;
        let read = |piece: usize| {
            let mut indexer = Indexer::new(file.len() as u64);
            while let Some(need) = indexer.needed_range() {
                let (start, end) = (need.start as usize, need.end as usize);
                indexer.feed(&file[start..end.min(start + piece)]).unwrap();
            }
            indexer.take_references().unwrap()
        };
        for len in [10, 1000, index.file_len - 1, index.file_len] {
            let outcome = |piece| format!("{:?}", read(piece).build_index(0, len));
            assert_eq!(outcome(100), outcome(file.len()), "{len} bytes of media");
        }
    }
}
