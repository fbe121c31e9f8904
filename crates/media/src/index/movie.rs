//! The moov box: what the film is made of, and its samples where they are not in fragments.

use super::ahead::Ahead;
use super::draft::Draft;
use super::track::{Parsed, Source, read_trak};
use super::{Note, Track};
use crate::bmff::{Mp4Box, mvhd::Mvhd, trex::Trex};
use crate::error::{Error, Kind, Result};
use std::collections::HashMap;

/// How many tracks a file may have.
pub(super) const TRACKS_MAX: usize = 1000;

/// A film while it is being indexed.
#[derive(Debug)]
pub(super) struct Movie {
    /// Ticks a second of edit lists; 0 in some broken files.
    timescale: u32,
    /// Whether the film says that it has fragments.
    fragmented: bool,
    /// Tracks that can be packaged, in file order.
    pub drafts: Vec<Draft>,
    /// How many trak boxes were met.
    traks: usize,
    /// Why other tracks cannot.
    skipped: Vec<String>,
    /// Defaults of fragments, by track.
    pub trex: HashMap<u32, Trex>,
    /// Whether any fragment came.
    pub has_fragments: bool,
}

impl Movie {
    /// Reads of a moov box what concerns the media of `source`, but for tracks that were read `ahead`.
    pub fn parse(
        moov: &Mp4Box<'_>,
        quicktime: bool,
        source: &Source,
        ahead: &mut Ahead,
        notes: &mut Vec<Note>,
    ) -> Result<Movie> {
        if moov.find(b"cmov")?.is_some() {
            let what = "the moov box is compressed (cmov): write the film anew with any muxer";
            return Err(Error::unsupported(what).at(moov.at));
        }
        let mvhd = moov
            .need(b"mvhd")?
            .read(Mvhd::parse)
            .map_err(|error| error.inside(*b"moov"))?;
        let mut movie = Movie {
            timescale: mvhd.timescale,
            fragmented: moov.find(b"mvex")?.is_some(),
            drafts: Vec::new(),
            traks: 0,
            skipped: Vec::new(),
            trex: HashMap::new(),
            has_fragments: false,
        };
        for child in moov.children() {
            let child = child.map_err(|error| error.inside(*b"moov"))?;
            let read = match &child.name {
                b"trak" => movie.add_trak(&child, quicktime, source, ahead, notes),
                b"mvex" => movie.add_mvex(&child),
                _ => Ok(()),
            };
            read.map_err(|error| error.inside(child.name).inside(*b"moov"))?;
        }
        Ok(movie)
    }

    fn add_trak(
        &mut self,
        trak: &Mp4Box<'_>,
        quicktime: bool,
        source: &Source,
        ahead: &mut Ahead,
        notes: &mut Vec<Note>,
    ) -> Result<()> {
        self.traks += 1;
        if self.traks > TRACKS_MAX {
            let what = format!("there are more than {TRACKS_MAX} tracks");
            return Err(Error::new(Kind::TooLarge, what).at(trak.at));
        }
        let parsed = match ahead.take(trak.at, source) {
            Some(draft) => Parsed::Draft(draft),
            None => read_trak(trak, quicktime, source)?,
        };
        match parsed {
            Parsed::Elsewhere => {}
            Parsed::Draft(draft) => self.drafts.push(*draft),
            Parsed::Skipped { id, why } => {
                notes.push(Note {
                    track: id,
                    at: None,
                    what: format!("the track is left out: {why}"),
                });
                self.skipped.push(format!("track {id}: {why}"));
            }
        }
        Ok(())
    }

    fn add_mvex(&mut self, mvex: &Mp4Box<'_>) -> Result<()> {
        for child in mvex.children() {
            let child = child?;
            if child.name == *b"trex" {
                let trex = child.read(Trex::parse)?;
                self.trex.insert(trex.track, trex);
            }
        }
        Ok(())
    }

    /// Whether no fragment can follow, so that the rest of the file need not be walked.
    pub fn is_complete(&self) -> bool {
        !self.fragmented && self.drafts.iter().any(|draft| !draft.samples.is_empty())
            || self.drafts.is_empty()
    }

    /// Resolves edit lists and packs all tables.
    pub fn finish(self, notes: &mut Vec<Note>) -> Result<Vec<Track>> {
        let nothing = self.nothing();
        let mut tracks = Vec::new();
        for draft in self.drafts {
            let id = draft.id;
            let track = draft.finish(self.timescale, self.has_fragments, notes);
            tracks.extend(track.map_err(|mut error| {
                error.what = format!("track {id}: {}", error.what);
                error
            })?);
        }
        if tracks.is_empty() {
            return Err(nothing);
        }
        Ok(tracks)
    }

    /// The error for a film of which no track is left.
    fn nothing(&self) -> Error {
        if !self.drafts.is_empty() {
            let what = if self.fragmented && !self.has_fragments {
                "there are no samples: an initialization segment without its media"
            } else {
                "there are no samples"
            };
            return Error::new(Kind::Empty, what);
        }
        if self.skipped.is_empty() {
            return Error::new(Kind::Empty, "the film has no tracks");
        }
        let why = self.skipped.iter().take(8).cloned().collect::<Vec<_>>();
        Error::unsupported(format!("no track can be packaged: {}", why.join("; ")))
    }
}
