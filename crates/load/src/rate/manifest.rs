//! All segments that a manifest lists, as targets.

use super::target::{Kind, Target};
use crate::client::{Client, Dialer, Request};
use media::manifest::read::hls::{self, Playlist};
use media::manifest::read::{MANIFEST_BYTES_MAX, Part, Piece, Rendition, Segments, Title, mpd};
use url::Url;

/// Most requests made to learn the segments: playlists and indexes.
const FETCHES_MAX: usize = 1000;

/// How often each segment is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weigh {
    /// As often as every other.
    #[default]
    Even,
    /// As viewers do who leave: segment n of a rendition 1/(n+1) as often as its first.
    Start,
}

/// The targets of a manifest: its playlists, init segments and segments.
///
/// # Errors
/// What could not be fetched or read.
pub async fn targets(dialer: &Dialer, url: &Url, weigh: Weigh) -> Result<Vec<Target>, String> {
    let mut found = Found {
        client: Client::new(dialer),
        fetches: 0,
        weigh,
        targets: Vec::new(),
    };
    found.title(url).await?;
    if found
        .targets
        .iter()
        .all(|target| target.kind == Kind::Manifest)
    {
        return Err(format!("{url}: it lists no segment"));
    }
    Ok(found.targets)
}

struct Found {
    client: Client,
    fetches: usize,
    weigh: Weigh,
    targets: Vec<Target>,
}

impl Found {
    async fn title(&mut self, url: &Url) -> Result<(), String> {
        let (at, bytes) = self.fetch(url, None).await?;
        self.targets.push(Target {
            kind: Kind::Manifest,
            ..Target::get(url.clone())
        });
        let wrong = |error: media::Error| format!("{url}: {error}");
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let title = if text.trim_ascii_start().starts_with(b"#EXTM3U") {
            match hls::read(&at, &bytes).map_err(wrong)? {
                Playlist::Multivariant(title) => title,
                Playlist::Media(media) => return self.segments(&media.segments),
            }
        } else {
            mpd::read(&at, &bytes).map_err(wrong)?
        };
        self.renditions(title).await
    }

    async fn renditions(&mut self, title: Title) -> Result<(), String> {
        let mut playlists: Vec<Url> = Vec::new();
        let pieces = title
            .renditions
            .into_iter()
            .flat_map(|r: Rendition| r.pieces);
        for piece in pieces {
            match piece {
                Piece::Segments(segments) => self.segments(&segments)?,
                Piece::Index(index) => {
                    let (_, bytes) = self.fetch(&index.part.url, Some(&index.part)).await?;
                    let segments = index.read(&bytes).map_err(|error| error.to_string())?;
                    self.segments(&segments)?;
                }
                Piece::Playlist(url) if playlists.contains(&url) => {}
                Piece::Playlist(url) => {
                    let (at, bytes) = self.fetch(&url, None).await?;
                    let read = hls::read(&at, &bytes).map_err(|error| format!("{url}: {error}"))?;
                    self.targets.push(Target {
                        kind: Kind::Manifest,
                        ..Target::get(url.clone())
                    });
                    if let Playlist::Media(media) = read {
                        self.segments(&media.segments)?;
                    }
                    playlists.push(url);
                }
            }
        }
        Ok(())
    }

    fn segments(&mut self, segments: &Segments) -> Result<(), String> {
        let wrong = |error: media::Error| error.to_string();
        let mut inits = Vec::new();
        for n in 0..segments.len() {
            if let Some(init) = segments.init(n).filter(|init| !inits.contains(init)) {
                inits.push(init);
                if let Some(part) = segments.init_part(init).map_err(wrong)? {
                    self.targets.push(target(part, Kind::Init, 1.0));
                }
            }
            let weight = match self.weigh {
                Weigh::Even => 1.0,
                Weigh::Start => 1.0 / (n + 1) as f64,
            };
            match segments.part(n).map_err(wrong)? {
                Some(part) if !segments.is_gap(n) => {
                    self.targets.push(target(part, Kind::Segment, weight));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn fetch(&mut self, url: &Url, part: Option<&Part>) -> Result<(Url, Vec<u8>), String> {
        self.fetches += 1;
        if self.fetches > FETCHES_MAX {
            return Err(format!("the manifest names over {FETCHES_MAX} playlists"));
        }
        let mut request = Request::new(url.clone()).keep(MANIFEST_BYTES_MAX);
        if let Some(range) = part.and_then(|part| part.range.clone()) {
            request = request.range(range);
        }
        let outcome = self.client.get(&request).await;
        match (outcome.fault, outcome.ok()) {
            (Some(fault), _) => {
                let detail = outcome.detail.unwrap_or_default();
                Err(format!("{url}: {fault} {detail}"))
            }
            (None, false) => Err(format!("{url}: the server answers {}", outcome.status)),
            (None, true) => Ok((outcome.url, outcome.body)),
        }
    }
}

fn target(part: Part, kind: Kind, weight: f64) -> Target {
    let mut target = Target {
        kind,
        weight,
        ..Target::get(part.url)
    };
    if let Some(range) = part.range
        && let Ok(value) = format!("bytes={}-{}", range.start, range.end.saturating_sub(1)).parse()
    {
        target.headers.insert(http::header::RANGE, value);
    }
    target
}
