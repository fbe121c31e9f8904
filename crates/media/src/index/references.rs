//! Index MP4s: a moov whose samples lie in other files, named by `dref` (8.7.2).

use super::ahead::Ahead;
use super::fingerprint::Fingerprint;
use super::movie::Movie;
use super::track::{Source, add_locations};
use super::{Index, Mark, MediaState};
use crate::bmff::dref::Location;
use crate::bmff::{Children, Mp4Box};
use crate::error::{Error, Kind, Result};
use std::ops::Range;

/// How many files one index MP4 may name.
pub const PLACES_MAX: usize = 64;

/// What an index MP4 says. Of each file that it names, once that file's length is known, it
/// gives an [`Index`] without a look at that file.
#[derive(Debug)]
pub struct References {
    /// Bytes of the index MP4, and where in them the moov lies.
    bytes: Vec<u8>,
    moov: Range<usize>,
    /// Where the moov lies in the index MP4.
    at: u64,
    /// Its tracks, as far as they were read while it came.
    ahead: Ahead,
    quicktime: bool,
    places: Vec<Location>,
    mark: Option<Mark>,
}

impl References {
    /// What a moov says of other files; `None` where all of its media lies in its own. Its bytes are
    /// to be brought by [`References::hold`].
    pub(super) fn read(
        moov: &Mp4Box<'_>,
        quicktime: bool,
        ahead: &mut Ahead,
    ) -> Result<Option<References>> {
        let mut places = Vec::new();
        for child in Children::new(moov.body, moov.body_at()) {
            // What is wrong with the rest is said by whoever reads the tracks.
            let Ok(child) = child else { break };
            if child.name == *b"trak" {
                add_locations(&child, &mut places)
                    .map_err(|error| error.inside(*b"trak").inside(*b"moov"))?;
            }
            if places.len() > PLACES_MAX {
                let what = format!("its media lies in more than {PLACES_MAX} files");
                return Err(Error::new(Kind::TooLarge, what).inside(*b"moov"));
            }
        }
        if places.iter().all(|place| *place == Location::Here) {
            return Ok(None);
        }
        Ok(Some(References {
            bytes: Vec::new(),
            moov: 0..moov.whole.len(),
            at: moov.at,
            ahead: Ahead::default(),
            quicktime,
            mark: Mark::read(moov, ahead).filter(|_| places.len() == 1),
            places,
        }))
    }

    /// Takes the bytes in which the moov lies from `from` on, and tracks that were read of it.
    pub(super) fn hold(&mut self, bytes: Vec<u8>, from: usize, ahead: Ahead) {
        self.moov = from..from + self.moov.len();
        (self.bytes, self.ahead) = (bytes, ahead);
    }

    fn moov(&self) -> &[u8] {
        self.bytes.get(self.moov.clone()).unwrap_or_default()
    }

    /// The files that it names, each once: as written, or the index MP4 itself.
    pub fn places(&self) -> &[Location] {
        &self.places
    }

    /// How long its media was when it was indexed, in bytes, where it says so. Then the index that
    /// [`References::index`] gives has the fingerprint of the media file itself; else it is but a
    /// hash of the index MP4, which knows nothing of the media's bytes.
    pub fn media_len(&self) -> Option<u64> {
        self.mark.as_ref().map(|mark| mark.file_len)
    }

    /// Hash of the entity tag that its media had when it was indexed, where it says so.
    pub fn media_tag(&self) -> Option<u64> {
        match self.mark.as_ref()?.media_state? {
            MediaState::Tag(hash) => Some(hash),
            MediaState::Bytes(_) => None,
        }
    }

    /// The index of file `n` of [`References::places`], which is `len` bytes long.
    ///
    /// # Errors
    /// What is wrong with the tables; `Truncated` where samples lie beyond the end of the file,
    /// or it has another length than it had when the index MP4 was made.
    pub fn index(&mut self, n: usize, len: u64) -> Result<Index> {
        if let Some(mark) = &self.mark
            && mark.file_len != len
        {
            let what = format!(
                "its media is {len} bytes long, but was {} when it was indexed: index it again",
                mark.file_len
            );
            return Err(Error::new(Kind::Truncated, what));
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        let moov = Mp4Box::first(self.moov(), self.at)?;
        let source = match self.places.get(n) {
            None | Some(Location::Here) => {
                Source::own(len, moov.at..moov.at + moov.whole.len() as u64)
            }
            Some(named) => Source::other(named.clone(), len),
        };
        let mut notes = Vec::new();
        let movie = Movie::parse(&moov, self.quicktime, &source, &mut ahead, &mut notes);
        self.ahead = ahead;
        let movie = movie?;
        let tracks = movie.finish(&mut notes)?;
        let (fingerprint, media_state, notes) = match &self.mark {
            Some(mark) => (mark.fingerprint, mark.media_state, mark.notes.clone()),
            None => (self.fingerprint(n, len), None, notes),
        };
        Ok(Index {
            tracks,
            file_len: len,
            fingerprint,
            media_state,
            notes,
        })
    }

    fn fingerprint(&self, n: usize, len: u64) -> u64 {
        let mut hash = Fingerprint::new(len);
        hash.add(n as u64, self.moov());
        hash.finish()
    }

    /// Why it is no index of its own file.
    pub(super) fn refusal(&self) -> Error {
        let names = self.places.iter().filter_map(|place| match place {
            Location::Here => None,
            Location::Named(name) => Some(name.as_str()),
        });
        let names: Vec<&str> = names.take(4).collect();
        let what = format!("its media lies in other files: {}", names.join(", "));
        Error::unsupported(what)
    }
}
