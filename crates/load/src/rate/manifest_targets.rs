//! Lists all segments of a manifest as request targets.

use super::{RequestKind, RequestTarget};
use crate::client::{ClientRequest, Dialer, ExpectedBody, FailureKind, HttpClient, range_value};
use media::manifest::read::hls::{self, ParsedPlaylist};
use media::manifest::read::{
    MANIFEST_BYTES_MAX, ManifestRendition, ParsedManifest, ResourceRange, SegmentList,
    SegmentListSource, mpd,
};
use url::Url;

/// Maximum number of manifests, playlists and indexes that are fetched.
const FETCHES_MAX: usize = 1000;

/// Maximum number of targets of a manifest.
const TARGETS_MAX: usize = 1_000_000;

/// The weights of segments. A segment with a larger weight is requested more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SegmentWeighting {
    /// All segments have the same weight.
    #[default]
    Even,
    /// Segment n of a rendition (from 0) has weight 1/(n+1), as if many viewers left early.
    Start,
}

/// The reason why the segments of a manifest cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A request failed. Contains the URL, the kind of failure, and details.
    #[error("cannot fetch {0}: {1}: {2}; check the URL, and that the server runs")]
    Fetch(Box<Url>, FailureKind, Box<str>),
    /// The server responded with a status other than 2xx.
    #[error("cannot fetch {0}: the server responded with status {1}")]
    Status(Box<Url>, u16),
    /// A manifest, playlist or index is malformed.
    #[error("cannot read {0}: {1}")]
    Parse(Box<Url>, media::Error),
    /// The URL of a segment cannot be built.
    #[error("cannot form the address of a segment: {0}")]
    Address(media::Error),
    /// The manifest refers to too many playlists and indexes.
    #[error("the manifest refers to more than {FETCHES_MAX} playlists and indexes")]
    TooManyPlaylists,
    /// The manifest lists too many segments.
    #[error(
        "the manifest lists more than {TARGETS_MAX} playlists and segments; use a shorter title"
    )]
    TooManyTargets,
    /// The manifest lists no segments.
    #[error("{0} lists no segment; use the URL of an HLS or DASH manifest")]
    NoSegments(Box<Url>),
}

/// Fetches a manifest and its playlists. Returns the manifest, the playlists, the init segments and
/// the segments as targets.
///
/// # Errors
/// A document cannot be fetched or parsed, or there are no segments.
pub async fn list_manifest_targets(
    dialer: &Dialer,
    url: &Url,
    weigh: SegmentWeighting,
) -> Result<Vec<RequestTarget>, ManifestError> {
    let mut found = SegmentLister {
        client: HttpClient::new(dialer),
        fetches: 0,
        weigh,
        targets: Vec::new(),
        targets_max: TARGETS_MAX,
    };
    found.collect_title_targets(url).await?;
    if found
        .targets
        .iter()
        .all(|target| target.kind == RequestKind::Manifest)
    {
        return Err(ManifestError::NoSegments(Box::new(url.clone())));
    }
    Ok(found.targets)
}

struct SegmentLister {
    client: HttpClient,
    fetches: usize,
    weigh: SegmentWeighting,
    targets: Vec<RequestTarget>,
    targets_max: usize,
}

impl SegmentLister {
    async fn collect_title_targets(&mut self, url: &Url) -> Result<(), ManifestError> {
        let (at, bytes) = self.fetch_document(url, None).await?;
        self.add_target(RequestTarget {
            kind: RequestKind::Manifest,
            ..RequestTarget::from_url(url.clone())
        })?;
        let wrong = |error| ManifestError::Parse(Box::new(url.clone()), error);
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let title = if text.trim_ascii_start().starts_with(b"#EXTM3U") {
            match hls::parse_playlist(&at, &bytes).map_err(wrong)? {
                ParsedPlaylist::Multivariant(title) => title,
                ParsedPlaylist::Media(media) => return self.collect_segments(&media.segments),
            }
        } else {
            mpd::parse_mpd(&at, &bytes).map_err(wrong)?
        };
        self.collect_rendition_targets(title).await
    }

    async fn collect_rendition_targets(
        &mut self,
        title: ParsedManifest,
    ) -> Result<(), ManifestError> {
        let mut playlists: Vec<Url> = Vec::new();
        let pieces = title
            .renditions
            .into_iter()
            .flat_map(|r: ManifestRendition| r.segment_sources);
        for piece in pieces {
            match piece {
                SegmentListSource::Segments(segments) => self.collect_segments(&segments)?,
                SegmentListSource::Sidx(index) => {
                    let (_, bytes) = self
                        .fetch_document(&index.index_resource.url, Some(&index.index_resource))
                        .await?;
                    let wrong = |error| {
                        ManifestError::Parse(Box::new(index.index_resource.url.clone()), error)
                    };
                    let segments = index.parse_segments(&bytes).map_err(wrong)?;
                    self.collect_segments(&segments)?;
                }
                SegmentListSource::Playlist(url) if playlists.contains(&url) => {}
                SegmentListSource::Playlist(url) => {
                    let (at, bytes) = self.fetch_document(&url, None).await?;
                    let read = hls::parse_playlist(&at, &bytes)
                        .map_err(|error| ManifestError::Parse(Box::new(url.clone()), error))?;
                    self.add_target(RequestTarget {
                        kind: RequestKind::Manifest,
                        ..RequestTarget::from_url(url.clone())
                    })?;
                    if let ParsedPlaylist::Media(media) = read {
                        self.collect_segments(&media.segments)?;
                    }
                    playlists.push(url);
                }
            }
        }
        Ok(())
    }

    fn collect_segments(&mut self, segments: &SegmentList) -> Result<(), ManifestError> {
        let wrong = ManifestError::Address;
        let mut inits = Vec::new();
        for n in 0..segments.len() {
            if let Some(init) = segments.init_index(n).filter(|init| !inits.contains(init)) {
                inits.push(init);
                if let Some(part) = segments.init_resource(init).map_err(wrong)? {
                    self.add_target(target_from_resource(part, RequestKind::Init, 1.0))?;
                }
            }
            let weight = match self.weigh {
                SegmentWeighting::Even => 1.0,
                SegmentWeighting::Start => 1.0 / (n + 1) as f64,
            };
            match segments.segment_resource(n).map_err(wrong)? {
                Some(part) if !segments.is_gap(n) => {
                    self.add_target(target_from_resource(part, RequestKind::Segment, weight))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_target(&mut self, target: RequestTarget) -> Result<(), ManifestError> {
        if self.targets.len() >= self.targets_max {
            return Err(ManifestError::TooManyTargets);
        }
        self.targets.push(target);
        Ok(())
    }

    async fn fetch_document(
        &mut self,
        url: &Url,
        part: Option<&ResourceRange>,
    ) -> Result<(Url, Vec<u8>), ManifestError> {
        self.fetches += 1;
        if self.fetches > FETCHES_MAX {
            return Err(ManifestError::TooManyPlaylists);
        }
        let mut request = ClientRequest::new(url.clone()).keep_body(MANIFEST_BYTES_MAX);
        if let Some(range) = part.and_then(|part| part.range.clone()) {
            request = request.with_range(range);
        }
        let outcome = self.client.execute_request(&request).await;
        match (outcome.fault, outcome.is_success()) {
            (Some(fault), _) => {
                let detail = outcome.detail.unwrap_or_default();
                Err(ManifestError::Fetch(Box::new(url.clone()), fault, detail))
            }
            (None, false) => Err(ManifestError::Status(Box::new(url.clone()), outcome.status)),
            (None, true) => Ok((outcome.url, outcome.body)),
        }
    }
}

fn target_from_resource(part: ResourceRange, kind: RequestKind, weight: f64) -> RequestTarget {
    let mut target = RequestTarget {
        kind,
        weight,
        ..RequestTarget::from_url(part.url)
    };
    if let Some(range) = part.range
        && let Some(value) = range_value(&range)
    {
        target.headers.insert(http::header::RANGE, value);
        target.check = Some(ExpectedBody::check_length(&range));
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientSettings;

    fn lister(targets_max: usize) -> SegmentLister {
        SegmentLister {
            client: HttpClient::new(&Dialer::new(ClientSettings::default()).unwrap()),
            fetches: 0,
            weigh: SegmentWeighting::Even,
            targets: Vec::new(),
            targets_max,
        }
    }

    fn test_segments() -> SegmentList {
        let text = "#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n\
            #EXT-X-BYTERANGE:100@50\nfilm.ts\n#EXTINF:2,\nnext.ts\n#EXT-X-ENDLIST\n";
        let url = Url::parse("http://o.test/m.m3u8").unwrap();
        match hls::parse_playlist(&url, text.as_bytes()).unwrap() {
            ParsedPlaylist::Media(media) => media.segments,
            ParsedPlaylist::Multivariant(_) => panic!("{text}"),
        }
    }

    #[test]
    fn the_length_of_byte_ranges_is_checked() {
        let mut lister = lister(2);
        lister.collect_segments(&test_segments()).unwrap();
        let [range, whole] = &lister.targets[..] else {
            panic!()
        };
        assert_eq!(range.headers["range"], "bytes=50-149");
        assert_eq!(range.check, Some(ExpectedBody::check_length(&(50..150))));
        assert_eq!((whole.headers.len(), whole.check), (0, None));
    }

    #[test]
    fn manifests_with_too_many_segments_are_refused() {
        let refused = lister(1).collect_segments(&test_segments());
        assert!(matches!(refused, Err(ManifestError::TooManyTargets)));
    }
}
