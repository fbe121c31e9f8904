//! Tracks of a moov that is still coming: each is read as soon as all of it is there.
//!
//! Whoever reads the whole moov afterwards takes them instead of reading them once more, if they are
//! of the media that it is about. What went wrong here is left to be found again there, where it is
//! known what else the moov says.

use super::draft::Draft;
use super::fingerprint::{Fingerprint, Hashing};
use super::mark::Mark;
use super::movie::TRACKS_MAX;
use super::track::{Parsed, Source, add_locations, read_trak};
use crate::bmff::dref::Location;
use crate::bmff::stsz::Sizes;
use crate::bmff::{Header, Mp4Box};
use crate::error::Result;
use std::ops::Range;

/// What is known of a moov of which not all is there.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Where it lies.
    place: Range<u64>,
    quicktime: bool,
    file_len: u64,
    /// Where the next box in it begins, from its own begin; 0: not known yet.
    next: usize,
    /// How many trak boxes were looked at.
    traks: usize,
    /// Whether one of them cannot be read: whoever reads the whole moov gets no further either.
    stuck: bool,
    tracks: Vec<Ready>,
    /// A hash that will be wanted of it.
    hashing: Option<Hashing>,
}

/// A track that was read.
#[derive(Debug)]
struct Ready {
    /// Where its box lies.
    at: u64,
    /// Where its media lies.
    location: Location,
    draft: Box<Draft>,
}

impl Ahead {
    /// Looks at the begin of a moov that lies at `place` of a file of `file_len` bytes, no more of it
    /// than there is, and reads the tracks that have come since the last time.
    pub fn look(&mut self, moov: &[u8], place: Range<u64>, quicktime: bool, file_len: u64) {
        (self.place, self.quicktime, self.file_len) = (place, quicktime, file_len);
        self.look_for_tracks(moov);
        if self.hashing.is_none() {
            let first = self.tracks.first().map(|ready| &ready.location);
            self.hashing = first.and_then(|location| self.hashing(location, moov));
        }
        if let Some(hashing) = &mut self.hashing {
            hashing.add(moov);
        }
    }

    /// Forgets all if it turned out that the moov is another one.
    pub fn settle(&mut self, at: u64, quicktime: bool) {
        if (self.place.start, self.quicktime) != (at, quicktime) {
            *self = Ahead::default();
        }
    }

    /// The hash of a `range` of a whole moov, if it was begun.
    pub fn hash(&mut self, moov: &[u8], range: Range<usize>) -> Option<Fingerprint> {
        self.hashing.take()?.finish(moov, &range)
    }

    fn look_for_tracks(&mut self, moov: &[u8]) {
        while self.traks < TRACKS_MAX && !self.stuck {
            let rest = moov.get(self.next..).unwrap_or_default();
            let at = self.place.start + self.next as u64;
            let left = self.place.end.saturating_sub(at);
            let Ok(Some(header)) = Header::read(rest, left) else {
                return;
            };
            if self.next == 0 {
                self.next = header.len as usize;
                continue;
            }
            let whole = usize::try_from(header.size).ok();
            let Some(child) = whole.and_then(|size| rest.get(..size)) else {
                return;
            };
            self.next += child.len();
            if header.name == *b"trak"
                && let Ok(trak) = Mp4Box::first(child, at)
            {
                self.traks += 1;
                match self.read(&trak) {
                    Ok(track) => self.tracks.extend(track),
                    Err(_) => self.stuck = true,
                }
            }
        }
    }

    /// The track whose box lies at `at`, if its media is that of `source`.
    pub fn take(&mut self, at: u64, source: &Source) -> Option<Box<Draft>> {
        let is = |ready: &Ready| ready.at == at && ready.location == source.location;
        let found = self.tracks.iter().position(is)?;
        let mut draft = self.tracks.swap_remove(found).draft;
        draft.is_within(source.len).then_some(draft)
    }

    /// A track, if it can be packaged and its media lies in one file. How long that is may not be
    /// known before all of the moov is there, or later.
    fn read(&self, trak: &Mp4Box<'_>) -> Result<Option<Ready>> {
        let mut locations = Vec::new();
        add_locations(trak, &mut locations)?;
        let [location] = &locations[..] else {
            return Ok(None);
        };
        let source = match location {
            Location::Here => Source::own(self.file_len, self.place.clone()),
            Location::Named(_) if are_listed(trak) => Source::other(location.clone(), u64::MAX),
            Location::Named(_) => return Ok(None),
        };
        let Parsed::Draft(draft) = read_trak(trak, self.quicktime, &source)? else {
            return Ok(None);
        };
        Ok(Some(Ready {
            at: trak.at,
            location: source.location,
            draft,
        }))
    }

    /// What will be hashed of a moov whose first track lies at `location`: all of it, as whoever
    /// reads a film does; or what comes before the mark of an index MP4, which mostly has no notes.
    fn hashing(&self, location: &Location, moov: &[u8]) -> Option<Hashing> {
        let len = usize::try_from(self.place.end - self.place.start).ok()?;
        if *location == Location::Here {
            let mut hash = Fingerprint::new(self.file_len);
            hash.begin(self.place.start, len);
            return Some(Hashing::new(hash, 0..len));
        }
        let header = Header::read(moov, len as u64).ok()??;
        let tables = header.len as usize..len.checked_sub(Mark::BYTES_MIN)?;
        Some(Hashing::new(Mark::hashing(tables.len()), tables))
    }
}

/// Whether the size of each sample of a track is told, so that there are no more than the bytes of
/// its box; else only the length of the media bounds what it may claim.
fn are_listed(trak: &Mp4Box<'_>) -> bool {
    let stbl = trak.need(b"mdia").and_then(|mdia| mdia.need(b"minf"));
    let stbl = stbl.and_then(|minf| minf.need(b"stbl"));
    let stsz = stbl.and_then(|stbl| stbl.find(b"stsz"));
    match stsz {
        Ok(Some(stsz)) => !matches!(stsz.read(Sizes::stsz), Ok(Sizes::Same(..))),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{Layout, MuxTrack, progressive, row};
    use crate::index::{Index, Indexer, index_bytes};
    use crate::mp4;

    /// Pictures of different sizes, and sound whose samples all have one.
    fn film() -> Index {
        let pictures = (0..900).map(|n| row(512, 0, 10 + n % 7, n % 4 == 0));
        let sound = (0..900).map(|_| row(1024, 0, 4, true));
        let tracks = [
            MuxTrack::video(1, pictures.collect()),
            MuxTrack::audio(2, sound.collect()),
        ];
        index_bytes(&progressive(&tracks, &Layout::default()).file()).unwrap()
    }

    fn moov(file: &[u8]) -> Mp4Box<'_> {
        let ftyp = Mp4Box::first(file, 0).unwrap();
        Mp4Box::first(&file[ftyp.whole.len()..], ftyp.whole.len() as u64).unwrap()
    }

    #[test]
    fn tracks_are_read_as_they_come_where_the_file_bounds_them() {
        let index = film();
        let file = mp4::index_file(&index, "film.mp4").unwrap();
        let moov = moov(&file);
        let place = moov.at..file.len() as u64;
        let mut ahead = Ahead::default();
        let traks = moov.children().map(Result::unwrap);
        let traks: Vec<_> = traks.filter(|child| child.name == *b"trak").collect();
        let end = |trak: &Mp4Box<'_>| (trak.at - moov.at) as usize + trak.whole.len();
        for (bytes, tracks) in [
            (0, 0),
            (20, 0),
            (end(&traks[0]) - 1, 0),
            (end(&traks[0]), 1),
            (moov.whole.len(), 1),
        ] {
            ahead.look(
                &moov.whole[..bytes],
                place.clone(),
                false,
                file.len() as u64,
            );
            assert_eq!(ahead.tracks.len(), tracks, "{bytes} bytes");
        }
        let source = |name: &str, len| Source::other(Location::Named(name.to_owned()), len);
        assert!(
            ahead
                .take(traks[0].at, &source("other.mp4", 1 << 20))
                .is_none()
        );
        let draft = ahead.take(traks[0].at, &source("film.mp4", index.file_len));
        assert_eq!(draft.unwrap().samples.len(), 900);
    }

    #[test]
    fn nothing_is_read_after_a_track_that_cannot_be() {
        let pictures = |id| MuxTrack::video(id, (0..9).map(|n| row(512, 0, n, true)).collect());
        let tracks = [pictures(1), pictures(2), pictures(3)];
        let layout = Layout {
            moov_first: true,
            ..Layout::default()
        };
        let file = progressive(&tracks, &layout).file();
        let moov = moov(&file);
        let second = moov.children().map(Result::unwrap);
        let second = second
            .filter(|child| child.name == *b"trak")
            .nth(1)
            .unwrap();
        let place = moov.at..moov.at + moov.whole.len() as u64;
        let tracks_of = |moov: &[u8]| {
            let mut ahead = Ahead::default();
            ahead.look(moov, place.clone(), false, file.len() as u64);
            ahead.tracks.len()
        };
        assert_eq!(tracks_of(moov.whole), 3);
        let mut broken = moov.whole.to_vec();
        let stsc = broken
            .windows(4)
            .enumerate()
            .filter(|(_, name)| name == b"stsc");
        let stsc = stsc
            .map(|(at, _)| at)
            .find(|at| *at as u64 > second.at - moov.at);
        // Chunks that are not in order.
        broken[stsc.unwrap() + 12..][..4].fill(0);
        assert_eq!(tracks_of(&broken), 1);
    }

    #[test]
    fn what_does_not_fit_its_media_is_refused_as_if_it_was_not_read_ahead() {
        let index = film();
        let mut file = mp4::index_file(&index, "film.mp4").unwrap();
        // Void the mark, so that any length may be told.
        let last = file.len() - 1;
        file[last - Mark::BYTES_MIN + 26] ^= 1;
        let read = |piece: usize| {
            let mut indexer = Indexer::new(file.len() as u64);
            while let Some(need) = indexer.need() {
                let (start, end) = (need.start as usize, need.end as usize);
                indexer.feed(&file[start..end.min(start + piece)]).unwrap();
            }
            indexer.take_references().unwrap()
        };
        for len in [10, 1000, index.file_len - 1, index.file_len] {
            let outcome = |piece| format!("{:?}", read(piece).index(0, len));
            assert_eq!(outcome(100), outcome(file.len()), "{len} bytes of media");
        }
    }
}
