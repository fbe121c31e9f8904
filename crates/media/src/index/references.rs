//! Index MP4s: a moov whose samples lie in other files, named by `dref` (8.7.2).

use super::fingerprint::Fingerprint;
use super::movie::Movie;
use super::track::{Source, add_locations};
use super::{Index, Mark, MediaState};
use crate::bmff::dref::Location;
use crate::bmff::{Children, Mp4Box};
use crate::error::{Error, Kind, Result};

/// How many files one index MP4 may name.
pub const PLACES_MAX: usize = 64;

/// What an index MP4 says. Of each file that it names, once that file's length is known, it
/// gives an [`Index`] without a look at that file.
#[derive(Debug, Clone)]
pub struct References {
    moov: Vec<u8>,
    /// Where the moov lies in the index MP4.
    at: u64,
    quicktime: bool,
    places: Vec<Location>,
    mark: Option<Mark>,
}

impl References {
    /// What a moov says of other files; `None` where all of its media lies in its own.
    pub(super) fn read(moov: &Mp4Box<'_>, quicktime: bool) -> Result<Option<References>> {
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
            moov: moov.whole.to_vec(),
            at: moov.at,
            quicktime,
            mark: Mark::read(moov).filter(|_| places.len() == 1),
            places,
        }))
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
    pub fn index(&self, n: usize, len: u64) -> Result<Index> {
        let place = self.places.get(n).cloned().unwrap_or(Location::Here);
        let moov = Mp4Box::first(&self.moov, self.at)?;
        let own = place == Location::Here;
        let metadata = if own {
            moov.at..moov.at + moov.whole.len() as u64
        } else {
            0..0
        };
        if let Some(mark) = &self.mark
            && mark.file_len != len
        {
            let what = format!(
                "its media is {len} bytes long, but was {} when it was indexed: index it again",
                mark.file_len
            );
            return Err(Error::new(Kind::Truncated, what));
        }
        let source = Source {
            location: place,
            len,
            metadata,
        };
        let mut notes = Vec::new();
        let movie = Movie::parse(&moov, self.quicktime, &source, &mut notes)?;
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
        hash.add(n as u64, &self.moov);
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
