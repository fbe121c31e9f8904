//! Parsing of the `moov` box: the tracks of the film, and their samples unless they are in
//! fragments.

use super::early_tracks::EarlyTracks;
use super::track::{MediaFile, TRACKS_MAX, TrakOutcome, read_trak};
use super::track_draft::TrackDraft;
use super::{IndexNote, Track};
use crate::bmff::{Mp4Box, mvhd::Mvhd, trex::Trex};
use crate::error::{Error, ErrorKind, Result};
use std::collections::HashMap;

/// A film while it is being indexed.
#[derive(Debug)]
pub(super) struct MovieDraft {
    /// Ticks per second of edit lists; 0 in some broken files.
    timescale: u32,
    /// Whether the film declares fragments.
    has_mvex: bool,
    /// Packageable tracks, in file order.
    pub drafts: Vec<TrackDraft>,
    /// Number of `trak` boxes so far.
    trak_count: usize,
    /// Reasons why other tracks are left out.
    skip_reasons: Vec<String>,
    /// Defaults of fragments, by track.
    pub trex_by_track: HashMap<u32, Trex>,
    /// Whether a fragment was read.
    pub has_fragments: bool,
}

impl MovieDraft {
    /// Parses the tracks of a `moov` box whose media is in `source`. Tracks that were parsed early
    /// are reused.
    pub fn parse(
        moov: &Mp4Box<'_>,
        is_quicktime: bool,
        source: &MediaFile,
        early_tracks: &mut EarlyTracks,
        notes: &mut Vec<IndexNote>,
    ) -> Result<MovieDraft> {
        if moov.find_child(b"cmov")?.is_some() {
            let message = "the moov box is compressed (cmov): rewrite the film with any muxer";
            return Err(Error::unsupported(message).at_byte(moov.offset));
        }
        let mvhd = moov
            .require_child(b"mvhd")?
            .parse_body(Mvhd::parse)
            .map_err(|error| error.in_box(*b"moov"))?;
        let mut movie = MovieDraft {
            timescale: mvhd.timescale,
            has_mvex: moov.find_child(b"mvex")?.is_some(),
            drafts: Vec::new(),
            trak_count: 0,
            skip_reasons: Vec::new(),
            trex_by_track: HashMap::new(),
            has_fragments: false,
        };
        for child in moov.children() {
            let child = child.map_err(|error| error.in_box(*b"moov"))?;
            let read = match &child.name {
                b"trak" => movie.add_trak(&child, is_quicktime, source, early_tracks, notes),
                b"mvex" => movie.add_mvex(&child),
                _ => Ok(()),
            };
            read.map_err(|error| error.in_box(child.name).in_box(*b"moov"))?;
        }
        Ok(movie)
    }

    fn add_trak(
        &mut self,
        trak: &Mp4Box<'_>,
        is_quicktime: bool,
        source: &MediaFile,
        early_tracks: &mut EarlyTracks,
        notes: &mut Vec<IndexNote>,
    ) -> Result<()> {
        self.trak_count += 1;
        if self.trak_count > TRACKS_MAX {
            let message = format!("there are more than {TRACKS_MAX} tracks");
            return Err(Error::new(ErrorKind::TooLarge, message).at_byte(trak.offset));
        }
        let parsed = match early_tracks.take_track(trak.offset, source) {
            Some(draft) => TrakOutcome::Draft(draft),
            None => read_trak(trak, is_quicktime, source)?,
        };
        match parsed {
            TrakOutcome::OtherFile => {}
            TrakOutcome::Draft(draft) => self.drafts.push(*draft),
            TrakOutcome::Skipped { id, reason } => {
                notes.push(IndexNote {
                    track_id: id,
                    time_ticks: None,
                    message: format!("the track is left out: {reason}"),
                });
                self.skip_reasons.push(format!("track {id}: {reason}"));
            }
        }
        Ok(())
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

    /// Returns whether no fragment can follow, so that the rest of the file is not read.
    pub fn is_complete(&self) -> bool {
        !self.has_mvex && self.drafts.iter().any(|draft| !draft.samples.is_empty())
            || self.drafts.is_empty()
    }

    /// Resolves edit lists and packs all tables.
    pub fn finish(self, notes: &mut Vec<IndexNote>) -> Result<Vec<Track>> {
        let nothing = self.no_tracks_error();
        let mut tracks = Vec::new();
        for draft in self.drafts {
            let id = draft.id;
            let track = draft.finish(self.timescale, self.has_fragments, notes);
            tracks.extend(track.map_err(|mut error| {
                error.message = format!("track {id}: {}", error.message);
                error
            })?);
        }
        if tracks.is_empty() {
            return Err(nothing);
        }
        Ok(tracks)
    }

    /// Creates the error for a film without packageable tracks.
    fn no_tracks_error(&self) -> Error {
        if !self.drafts.is_empty() {
            let message = if self.has_mvex && !self.has_fragments {
                "there are no samples: an initialization segment without its media"
            } else {
                "there are no samples"
            };
            return Error::new(ErrorKind::Empty, message);
        }
        if self.skip_reasons.is_empty() {
            return Error::new(ErrorKind::Empty, "the film has no tracks");
        }
        let reason = self
            .skip_reasons
            .iter()
            .take(8)
            .cloned()
            .collect::<Vec<_>>();
        Error::unsupported(format!("no track can be packaged: {}", reason.join("; ")))
    }
}
