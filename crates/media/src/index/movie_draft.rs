//! Parses the `moov` box, which describes the tracks of the film and lists all samples that are not
//! in fragments.

use super::early_parsed_tracks::EarlyParsedTracks;
use super::left_out::{describe_track, may_be_video};
use super::track_draft::{SAMPLES_MAX, TrackDraft, TrackOutcome};
use super::trak::{MediaFile, TRACKS_MAX, TrakOutcome, read_trak};
use super::{IndexNote, LeftOutTrack, Track};
use crate::bmff::{Mp4Box, mvhd::Mvhd, trex::Trex};
use crate::error::{Error, ErrorKind, Result};
use crate::protection::source_protection::push_source_pssh;
use std::collections::HashMap;

/// A film while it is being indexed.
#[derive(Debug, Default)]
pub(super) struct MovieDraft {
    /// Ticks per second of the durations in edit lists; 0 in some broken files.
    timescale: u32,
    /// Whether the film declares fragments.
    has_mvex: bool,
    /// Packageable tracks, in file order.
    pub drafts: Vec<TrackDraft>,
    /// `track_ID`s of the text tracks that contain the names of chapters.
    chapter_tracks: Vec<u32>,
    /// Number of `trak` boxes that were read so far.
    trak_count: usize,
    /// Tracks, and parts of the film, that are left out.
    left_out: Vec<LeftOutTrack>,
    /// `track_fault` is the first error in any track. `video_fault` is the first error in a track
    /// that is or may be video.
    track_fault: Option<Error>,
    video_fault: Option<Error>,
    /// `pssh` boxes of the film.
    pssh_boxes: Vec<Vec<u8>>,
    /// Default values of samples in fragments, by `track_ID`.
    pub trex_by_track: HashMap<u32, Trex>,
    /// Whether a fragment was read.
    pub has_fragments: bool,
}

/// The tracks of an indexed film.
#[derive(Debug, Default)]
pub(super) struct FinishedMovie {
    /// Video and audio tracks.
    pub tracks: Vec<Track>,
    pub text_tracks: Vec<Track>,
    pub left_out: Vec<LeftOutTrack>,
}

impl MovieDraft {
    /// Parses a `moov` box. Skips tracks whose media is not in `source`. Tracks that were parsed
    /// early are reused.
    pub fn from_moov(
        moov: &Mp4Box<'_>,
        is_quicktime: bool,
        source: &MediaFile,
        early_tracks: &mut EarlyParsedTracks,
    ) -> Result<MovieDraft> {
        if moov.find_child(b"cmov")?.is_some() {
            let message = "the moov box is compressed (cmov): rewrite the film with any muxer";
            return Err(Error::unsupported(message).with_byte_offset(moov.offset));
        }
        let mvhd = moov
            .require_child(b"mvhd")?
            .parse_body(Mvhd::parse)
            .map_err(|error| error.with_enclosing_box(*b"moov"))?;
        let mut movie = MovieDraft {
            timescale: mvhd.timescale,
            has_mvex: moov.find_child(b"mvex")?.is_some(),
            ..MovieDraft::default()
        };
        for child in moov.children() {
            let child = child.map_err(|error| error.with_enclosing_box(*b"moov"))?;
            let read = match &child.name {
                b"trak" => movie.add_trak(&child, is_quicktime, source, early_tracks),
                b"mvex" => movie.add_mvex(&child),
                b"pssh" => push_source_pssh(&mut movie.pssh_boxes, child.bytes),
                _ => Ok(()),
            };
            read.map_err(|error| {
                error
                    .with_enclosing_box(child.name)
                    .with_enclosing_box(*b"moov")
            })?;
        }
        movie.check_usable_tracks_remain()?;
        Ok(movie)
    }

    /// Refuses the film if a track is broken and no usable track remains. Also refuses the film if
    /// the broken track is or may be video, and no usable video track remains.
    fn check_usable_tracks_remain(&mut self) -> Result<()> {
        let has_video = self.drafts.iter().any(|draft| draft.is_video);
        let fault = match self.drafts.is_empty() {
            true => self.track_fault.take(),
            false => self.video_fault.take().filter(|_| !has_video),
        };
        fault.map_or(Ok(()), Err)
    }

    fn add_trak(
        &mut self,
        trak: &Mp4Box<'_>,
        is_quicktime: bool,
        source: &MediaFile,
        early_tracks: &mut EarlyParsedTracks,
    ) -> Result<()> {
        self.trak_count += 1;
        if self.trak_count > TRACKS_MAX {
            let message = format!("there are more than {TRACKS_MAX} tracks");
            return Err(Error::new(ErrorKind::TooLarge, message).with_byte_offset(trak.offset));
        }
        self.chapter_tracks.extend(find_chapter_tracks(trak));
        let parsed = match early_tracks.take_track(trak.offset, source) {
            Some(draft) => TrakOutcome::Draft(draft),
            None => match read_trak(trak, is_quicktime, source) {
                Err(fault) if is_confined_to_track(&fault) => {
                    self.leave_out_broken(trak, fault);
                    return Ok(());
                }
                parsed => parsed?,
            },
        };
        match parsed {
            TrakOutcome::OtherFile => {}
            TrakOutcome::Draft(draft) => {
                self.drafts.push(*draft);
                self.check_sample_limit()?;
            }
            TrakOutcome::Skipped { reason } => {
                let entry = LeftOutTrack::new(describe_track(trak), reason);
                self.left_out.push(entry);
            }
        }
        Ok(())
    }

    /// Checks the number of samples in all tracks. Several tracks may reference the same bytes, so
    /// the length of the file does not limit this number.
    ///
    /// # Errors
    /// `TooLarge` if the tracks have more than [`SAMPLES_MAX`] samples.
    pub fn check_sample_limit(&self) -> Result<()> {
        let counts = self.drafts.iter().map(|draft| draft.samples.len());
        let total: u64 = counts.map(u64::from).sum();
        if total <= SAMPLES_MAX {
            return Ok(());
        }
        let message =
            format!("all tracks together have {total} samples; at most {SAMPLES_MAX} are read");
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    /// Leaves out a track whose boxes are broken.
    fn leave_out_broken(&mut self, trak: &Mp4Box<'_>, fault: Error) {
        let entry = LeftOutTrack::new(describe_track(trak), fault.to_string());
        self.left_out.push(entry);
        let fault = fault
            .with_enclosing_box(*b"trak")
            .with_enclosing_box(*b"moov");
        if may_be_video(trak) {
            self.video_fault.get_or_insert_with(|| fault.clone());
        }
        self.track_fault.get_or_insert(fault);
    }

    /// Leaves out the fragment at byte `at`, because the file ends within its `moof` box.
    pub fn leave_out_fragment(&mut self, at: u64) {
        let name = format!("the fragment at byte {at}");
        let reason = "the file ends within its moof box";
        self.left_out.push(LeftOutTrack::new(name, reason));
    }

    fn add_mvex(&mut self, mvex: &Mp4Box<'_>) -> Result<()> {
        for child in mvex.children() {
            let child = child?;
            if child.name == *b"trex" {
                let trex = child.parse_body(Trex::parse)?;
                self.trex_by_track.insert(trex.track_id, trex);
            }
        }
        Ok(())
    }

    /// Returns whether the rest of the file can be skipped, because no fragment can add samples to
    /// a track.
    pub fn is_complete(&self) -> bool {
        !self.has_mvex && self.drafts.iter().any(|draft| !draft.samples.is_empty())
            || self.drafts.is_empty()
    }

    /// Resolves edit lists and packs all sample tables.
    pub fn finish(self, notes: &mut Vec<IndexNote>) -> Result<FinishedMovie> {
        let nothing = self.no_tracks_error();
        let mut finished = FinishedMovie {
            left_out: self.left_out,
            ..FinishedMovie::default()
        };
        for mut draft in self.drafts {
            draft.pssh_boxes.clone_from(&self.pssh_boxes);
            let (id, is_text) = (draft.id, draft.is_text());
            let name = format!("track {id}");
            if is_text && self.chapter_tracks.contains(&id) {
                let chapters = LeftOutTrack::new(name, "chapters are not served");
                finished.left_out.push(chapters);
                continue;
            }
            finished.left_out.extend(draft.describe_missing_end());
            let track = draft.finish(self.timescale, self.has_fragments, notes);
            match track.map_err(|error| error.with_track_id(id)) {
                Ok(TrackOutcome::Served(track)) if is_text => finished.text_tracks.push(*track),
                Ok(TrackOutcome::Served(track)) => finished.tracks.push(*track),
                Ok(TrackOutcome::LeftOut(reason)) => {
                    finished.left_out.push(LeftOutTrack::new(name, reason));
                }
                // Leaves out the text track, because the film plays without text.
                Err(error) if is_text => {
                    finished
                        .left_out
                        .push(LeftOutTrack::new(name, error.message));
                }
                Err(error) => return Err(error),
            }
        }
        if finished.tracks.is_empty() && finished.text_tracks.is_empty() {
            return Err(nothing);
        }
        Ok(finished)
    }

    /// Creates the error for a film without packageable tracks.
    fn no_tracks_error(&self) -> Error {
        let missing = |draft: &TrackDraft| Some(draft.missing_end.as_ref()?.0.clone());
        if let Some(error) = self.drafts.iter().find_map(missing) {
            return error;
        }
        if !self.drafts.is_empty() {
            let message = if self.has_mvex && !self.has_fragments {
                "there are no samples: an initialization segment without its media"
            } else {
                "there are no samples"
            };
            return Error::new(ErrorKind::Empty, message);
        }
        if self.left_out.is_empty() {
            return Error::new(ErrorKind::Empty, "the film has no tracks");
        }
        let shown = self.left_out.iter().take(8);
        let reasons: Vec<String> = shown
            .map(|track| format!("{}: {}", track.name, track.reason))
            .collect();
        Error::unsupported(format!("no track can be packaged: {}", reasons.join("; ")))
    }
}

/// Returns whether an error affects only one track. An exceeded limit affects the whole film.
/// Missing media means that the file is truncated, which also affects the other tracks.
pub(super) fn is_confined_to_track(fault: &Error) -> bool {
    let in_description = fault.location.split('/').any(|name| name == "stsd");
    fault.kind == ErrorKind::Malformed || (fault.kind == ErrorKind::Truncated && in_description)
}

/// Returns the ids of the tracks that contain the chapters of `trak` (QuickTime File Format,
/// `tref/chap`).
fn find_chapter_tracks(trak: &Mp4Box<'_>) -> Vec<u32> {
    // Ignores broken references, because the film plays without chapters.
    let tref = trak.find_child(b"tref").ok().flatten();
    let chap = tref.and_then(|tref| {
        tref.find_child(b"chap")
            .ok()
            .flatten()
            .map(|chap| chap.body)
    });
    let ids = chap.unwrap_or_default().chunks_exact(4).take(TRACKS_MAX);
    ids.filter_map(|id| id.try_into().ok().map(u32::from_be_bytes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bmff::tkhd::{IDENTITY_MATRIX, Tkhd};

    #[test]
    fn the_samples_of_all_tracks_of_a_file_are_limited_together() {
        let draft = |count: u64| {
            let tkhd = Tkhd {
                track_id: 1,
                is_enabled: true,
                matrix: IDENTITY_MATRIX,
            };
            let mut draft = TrackDraft::new(tkhd, 1000, Vec::new());
            draft.samples.sizes_mut().push_run(count as u32, 1, 0);
            draft
        };
        let check = |last: u64| {
            let movie = MovieDraft {
                drafts: vec![draft(SAMPLES_MAX / 2), draft(last)],
                ..MovieDraft::default()
            };
            movie.check_sample_limit()
        };
        assert_eq!(check(SAMPLES_MAX / 2), Ok(()));
        let error = check(SAMPLES_MAX / 2 + 1).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        assert!(error.message.contains("50000001 samples"), "{error}");
    }
}
