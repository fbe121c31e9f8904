//! Documents that were read, shared by all who fetched the same bytes from the same place.

use super::super::player::{Document, Reading};
use super::super::stream::{Stream, Wish};
use crate::client::{Digest, Outcome};
use media::Result;
use media::error::{Error, Kind};
use media::index::Indexer;
use media::manifest::read::hls::{self, Playlist};
use media::manifest::read::mpd;
use media::time::Time;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Documents kept at most; then it is begun anew.
const KEPT_MAX: usize = 4096;

type Key = [u8; 32];

/// Reads documents, each once.
#[derive(Debug, Default)]
pub struct Catalog {
    wish: Wish,
    known: Mutex<HashMap<Key, Document>>,
}

impl Catalog {
    /// A catalog of titles for viewers with this wish.
    pub fn new(wish: Wish) -> Catalog {
        Catalog {
            wish,
            known: Mutex::default(),
        }
    }

    /// What an answer holds. Two threads that ask at once may both read it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&self, reading: &Reading, outcome: &Outcome) -> Result<Option<Document>> {
        if matches!(reading, Reading::Discard) {
            return Ok(None);
        }
        let key = key(reading, outcome);
        if let Some(known) = self.known().get(&key) {
            return Ok(Some(known.clone()));
        }
        let document = self.parse(reading, outcome)?;
        let mut known = self.known();
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        known.insert(key, document.clone());
        Ok(Some(document))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Document>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parse(&self, reading: &Reading, outcome: &Outcome) -> Result<Document> {
        match reading {
            Reading::Index(index) => Ok(Document::Segments(Arc::new(index.read(&outcome.body)?))),
            Reading::Movie => movie(outcome),
            Reading::Manifest | Reading::Discard => self.manifest(outcome),
        }
    }

    fn manifest(&self, outcome: &Outcome) -> Result<Document> {
        let text = outcome
            .body
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&outcome.body);
        if !text.trim_ascii_start().starts_with(b"#EXT") {
            let title = mpd::read(&outcome.url, &outcome.body)?;
            return Ok(Document::Stream(Arc::new(Stream::new(
                title, false, &self.wish,
            )?)));
        }
        match hls::read(&outcome.url, &outcome.body)? {
            Playlist::Multivariant(title) => Ok(Document::Stream(Arc::new(Stream::new(
                title, true, &self.wish,
            )?))),
            Playlist::Media(media) if media.iframes_only => Err(Error::unsupported(
                "an I-frame playlist: nothing that plays",
            )),
            Playlist::Media(media) => Ok(Document::Segments(Arc::new(media.segments))),
        }
    }
}

fn key(reading: &Reading, outcome: &Outcome) -> Key {
    let mut digest = Digest::default();
    digest.update(outcome.url.as_str().as_bytes());
    digest.update(&[0]);
    if let Reading::Index(index) = reading {
        digest.update(format!("{index:?}").as_bytes());
    }
    digest.update(&[0]);
    digest.update(&outcome.body);
    digest.finish()
}

/// How long a file is: from its head if its `moov` lies there, in bytes from `Content-Range`.
fn movie(outcome: &Outcome) -> Result<Document> {
    let range = outcome.headers.get(http::header::CONTENT_RANGE);
    let total = range.and_then(|range| range.to_str().ok()?.rsplit_once('/')?.1.parse().ok());
    let whole = (outcome.status == 200).then_some(outcome.body_bytes);
    let bytes: u64 = total
        .or(whole)
        .ok_or_else(|| Error::malformed("the answer does not say how long the file is"))?;
    let mut indexer = Indexer::new(bytes);
    while let Some(need) = indexer.need() {
        let at = usize::try_from(need.start).ok();
        let rest = at.and_then(|at| outcome.body.get(at..)).unwrap_or_default();
        if rest.is_empty() {
            let what = "the file's moov box does not lie at its start: write it with +faststart";
            return Err(Error::new(Kind::Unsupported, what));
        }
        indexer.feed(rest)?;
    }
    let index = indexer.finish()?;
    let ends = index.tracks.iter().map(|track| {
        Time::new(
            i64::try_from(track.samples.end()).unwrap_or(i64::MAX),
            track.timescale,
        )
    });
    let duration = ends.max().unwrap_or(Time::ZERO).round_to(1_000_000);
    Ok(Document::File {
        bytes,
        duration_us: u64::try_from(duration).unwrap_or(0),
    })
}
