//! A cache of parsed documents. All viewers who fetched the same bytes from the same URL share one
//! parsed document.

use super::super::cmcd::without_cmcd_report;
use super::super::player_interface::{DocumentFormat, ParsedDocument};
use super::super::text_choice::TextPreference;
use super::super::title_ladder::{AudioPreference, TitleLadder};
use crate::client::{BodyDigest, RequestOutcome, Url};
use media::Result;
use media::error::{Error, ErrorKind};
use media::index::Indexer;
use media::manifest::read::hls::{self, ParsedPlaylist};
use media::manifest::read::{ParsedManifest, mpd};
use media::time::Time;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of cached documents. A full cache is cleared.
const DOCUMENTS_MAX: usize = 4096;

/// Maximum total length of the texts of the cached documents. A full cache is cleared.
const TEXT_BYTES_MAX: usize = 64 << 20;

type DocumentKey = [u8; 32];

/// Parses documents, and caches the parsed documents.
#[derive(Debug, Default)]
pub struct DocumentCache {
    audio_preference: AudioPreference,
    text_preference: TextPreference,
    known: Mutex<KnownDocuments>,
}

#[derive(Debug, Default)]
struct KnownDocuments {
    documents: HashMap<DocumentKey, ParsedDocument>,
    /// Total length of the texts of `documents`.
    text_bytes: usize,
}

impl KnownDocuments {
    /// Adds a parsed document whose text has `text_bytes` bytes. Clears a full cache first.
    fn insert(&mut self, key: DocumentKey, document: ParsedDocument, text_bytes: usize) {
        let is_full = self.documents.len() >= DOCUMENTS_MAX
            || self.text_bytes.saturating_add(text_bytes) > TEXT_BYTES_MAX;
        if is_full {
            *self = KnownDocuments::default();
        }
        if self.documents.insert(key, document).is_none() {
            self.text_bytes += text_bytes;
        }
    }
}

impl DocumentCache {
    /// Creates a cache for viewers with these preferences.
    pub fn new(
        audio_preference: AudioPreference,
        text_preference: TextPreference,
    ) -> DocumentCache {
        DocumentCache {
            audio_preference,
            text_preference,
            known: Mutex::default(),
        }
    }

    /// Returns the parsed document of a response, or `None` if the response is not a document. No
    /// lock is held while a document is parsed, so two threads can parse the same document at the
    /// same time.
    ///
    /// # Errors
    /// The document is malformed or unsupported.
    pub fn get_or_parse(
        &self,
        format: &DocumentFormat,
        outcome: &RequestOutcome,
    ) -> Result<Option<ParsedDocument>> {
        if matches!(format, DocumentFormat::Discard) {
            return Ok(None);
        }
        // The report in the URL differs between viewers. Without it, all viewers share the document.
        let url = without_cmcd_report(&outcome.url);
        let key = document_key(format, &url, &outcome.body);
        if let Some(known) = self.lock_documents().documents.get(&key) {
            return Ok(Some(known.clone()));
        }
        let document = self.parse_document(format, &url, outcome)?;
        self.lock_documents()
            .insert(key, document.clone(), outcome.body.len());
        Ok(Some(document))
    }

    fn lock_documents(&self) -> std::sync::MutexGuard<'_, KnownDocuments> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parse_document(
        &self,
        format: &DocumentFormat,
        url: &Url,
        outcome: &RequestOutcome,
    ) -> Result<ParsedDocument> {
        match format {
            DocumentFormat::Index(index) => Ok(ParsedDocument::Segments(Arc::new(
                index.parse_segments(&outcome.body)?,
            ))),
            DocumentFormat::Movie => read_size_and_duration(outcome),
            DocumentFormat::Manifest | DocumentFormat::Discard => {
                self.parse_manifest(url, &outcome.body)
            }
        }
    }

    fn parse_manifest(&self, url: &Url, body: &[u8]) -> Result<ParsedDocument> {
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        if !text.trim_ascii_start().starts_with(b"#EXT") {
            return self.build_ladder(mpd::parse_mpd(url, body)?, false);
        }
        match hls::parse_playlist(url, body)? {
            ParsedPlaylist::Multivariant(title) => self.build_ladder(title, true),
            ParsedPlaylist::Media(media) if media.is_iframes_only => {
                Err(Error::unsupported("I-frame playlists cannot be played"))
            }
            ParsedPlaylist::Media(media) => Ok(ParsedDocument::Segments(Arc::new(media.segments))),
        }
    }

    fn build_ladder(&self, title: ParsedManifest, is_hls: bool) -> Result<ParsedDocument> {
        let text = self.text_preference.choose_text(&title)?;
        let ladder = TitleLadder::new(title, is_hls, &self.audio_preference)?;
        Ok(ParsedDocument::TitleLadder(Arc::new(
            ladder.with_text(text),
        )))
    }
}

fn document_key(format: &DocumentFormat, url: &Url, body: &[u8]) -> DocumentKey {
    let mut digest = BodyDigest::default();
    digest.hash_bytes(url.as_str().as_bytes());
    digest.hash_bytes(&[0]);
    if let DocumentFormat::Index(index) = format {
        digest.hash_bytes(format!("{index:?}").as_bytes());
    }
    digest.hash_bytes(&[0]);
    digest.hash_bytes(body);
    digest.into_sha256()
}

/// Reads the size and the duration of an MP4 file whose `moov` box is at the start of the file. The
/// size is taken from `Content-Range`, or from the length of a complete response (status 200).
fn read_size_and_duration(outcome: &RequestOutcome) -> Result<ParsedDocument> {
    let range = outcome.headers.get(http::header::CONTENT_RANGE);
    let total = range.and_then(|range| range.to_str().ok()?.rsplit_once('/')?.1.parse().ok());
    let whole = (outcome.status == 200).then_some(outcome.body_bytes);
    let bytes: u64 = total
        .or(whole)
        .ok_or_else(|| Error::malformed("the response does not contain the length of the file"))?;
    let mut indexer = Indexer::new(bytes);
    while let Some(need) = indexer.needed_range() {
        let at = usize::try_from(need.start).ok();
        let rest = at.and_then(|at| outcome.body.get(at..)).unwrap_or_default();
        if rest.is_empty() {
            let purpose =
                "the moov box is not at the start of the file; write it with -movflags +faststart";
            return Err(Error::new(ErrorKind::Unsupported, purpose));
        }
        indexer.feed(rest)?;
    }
    let index = indexer.finish()?;
    let ends = index.tracks.iter().map(|track| {
        Time::new(
            i64::try_from(track.samples.total_duration()).unwrap_or(i64::MAX),
            track.timescale,
        )
    });
    let duration = ends.max().unwrap_or(Time::ZERO).round_to(1_000_000);
    Ok(ParsedDocument::File {
        bytes,
        duration_us: u64::try_from(duration).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_document() -> ParsedDocument {
        ParsedDocument::File {
            bytes: 1,
            duration_us: 1,
        }
    }

    fn outcome_of(url: &str) -> RequestOutcome {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXT-X-ENDLIST\n";
        let now = std::time::Instant::now();
        RequestOutcome {
            status: 200,
            headers: http::HeaderMap::new(),
            body_bytes: text.len() as u64,
            body: text.into(),
            due: now,
            sent: Some(now),
            first_byte: Some(now),
            last_byte: now,
            fault: None,
            detail: None,
            url: Url::parse(url).unwrap(),
            redirects: 0,
            connection: None,
        }
    }

    #[test]
    fn viewers_share_documents_although_their_reports_differ() {
        let cache = DocumentCache::default();
        for (url, documents) in [
            ("http://o.test/m.m3u8?a=b&CMCD=sid%3D1", 1),
            ("http://o.test/m.m3u8?a=b&CMCD=sid%3D2", 1),
            ("http://o.test/m.m3u8?a=c&CMCD=sid%3D2", 2),
        ] {
            let format = DocumentFormat::Manifest;
            let parsed = cache.get_or_parse(&format, &outcome_of(url)).unwrap();
            assert!(matches!(parsed, Some(ParsedDocument::Segments(_))));
            assert_eq!(cache.lock_documents().documents.len(), documents, "{url}");
        }
    }

    #[test]
    fn cached_documents_are_limited_in_bytes() {
        let mut known = KnownDocuments::default();
        for number in 0..100 {
            known.insert([number; 32], test_document(), TEXT_BYTES_MAX / 10);
            assert!(known.text_bytes <= TEXT_BYTES_MAX);
        }
        assert!((1..=10).contains(&known.documents.len()));
    }
}
