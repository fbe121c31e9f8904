//! Playlists and MPDs: written once per state of a title, kept in every coding asked for.

use crate::catalog::Catalog;
use crate::describe;
use crate::error;
use crate::respond::{Ask, Facts};
use crate::route::{Addressing, Manifest, Packing};
use crate::title::Title;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Response};
use media::manifest::dash::{self, Template};
use media::manifest::{Format, hls};
use media::presentation::{Presentation, Rendition};
use net::conditional::Validators;
use net::encoding::{self, Coding};
use net::{Body, Error};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;
use store::Key;

/// A manifest names the present state of a title: caches must soon ask again.
const SOON: HeaderValue =
    HeaderValue::from_static("public, max-age=2, stale-while-revalidate=30, stale-if-error=300");

/// Texts up to this are compressed where they are asked for; longer ones by another thread.
const COMPRESS_NOW_BYTES_MAX: usize = 4 << 10;
/// Shorter texts are not worth compressing: they fit into the same packet.
const COMPRESS_BYTES_MIN: usize = 512;

/// The texts of a title made so far. Their number is bounded by the title's renditions.
#[derive(Default)]
pub(crate) struct Texts {
    made: RwLock<HashMap<Manifest, Arc<Text>>>,
}

/// A text in memory, in all codings that were asked for.
pub(crate) struct Text {
    content_type: HeaderValue,
    cache: HeaderValue,
    modified: Option<SystemTime>,
    hash: u64,
    plain: Bytes,
    coded: [OnceLock<Option<Bytes>>; 3],
}

/// Answers with a text about a title.
pub(crate) async fn answer(
    catalog: &Arc<Catalog>,
    title: &Key,
    manifest: &Manifest,
    ask: &Ask<'_>,
) -> Result<Response<Body>, Error> {
    let title = catalog.title(title).await?;
    let text = match title.texts.find(manifest) {
        Some(text) => text,
        None => title
            .texts
            .make(manifest, Arc::new(write(&title, manifest)?)),
    };
    Ok(text.answer(ask).await)
}

fn write(title: &Title, manifest: &Manifest) -> Result<Text, Error> {
    const HLS: &str = "application/vnd.apple.mpegurl";
    let (content_type, text) = match manifest {
        Manifest::Multivariant(packing) => {
            let text = hls::multivariant(&title.hls, format(*packing));
            (HLS, text.ok_or_else(not_in_ts)?)
        }
        Manifest::Media(packing, name) => {
            let rendition = rendition(&title.hls, name)?;
            let text = hls::media(&title.hls, rendition, format(*packing));
            (HLS, text.ok_or_else(not_in_ts)?)
        }
        Manifest::KeyFrames(name) => {
            let rendition = rendition(&title.hls, name)?;
            let text = hls::iframes(&title.hls, rendition);
            (
                HLS,
                text.ok_or_else(|| error::not_found("the rendition has no pictures"))?,
            )
        }
        Manifest::Dash(addressing) => {
            let template = match addressing {
                Addressing::Time => Template::Time,
                Addressing::Number => Template::Number,
            };
            ("application/dash+xml", dash::mpd(&title.dash, template))
        }
        Manifest::Description => ("application/json", describe::title(title)?),
    };
    let content_type = HeaderValue::from_static(content_type);
    Ok(Text::new(
        content_type,
        SOON,
        Some(title.modified),
        text.into(),
    ))
}

fn format(packing: Packing) -> Format {
    match packing {
        Packing::Cmaf => Format::Cmaf,
        Packing::Ts => Format::Ts,
    }
}

fn rendition<'a>(presentation: &'a Presentation, name: &str) -> Result<&'a Rendition, Error> {
    let found = presentation.rendition(name).map(|(_, rendition)| rendition);
    found.ok_or_else(|| error::not_found("there is no such rendition"))
}

fn not_in_ts() -> Error {
    error::not_found("transport streams cannot carry this codec: ask for CMAF instead")
}

impl Texts {
    fn find(&self, manifest: &Manifest) -> Option<Arc<Text>> {
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        made.get(manifest).cloned()
    }

    fn make(&self, manifest: &Manifest, text: Arc<Text>) -> Arc<Text> {
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        made.entry(manifest.clone()).or_insert(text).clone()
    }
}

impl Text {
    pub(crate) fn new(
        content_type: HeaderValue,
        cache: HeaderValue,
        modified: Option<SystemTime>,
        plain: Bytes,
    ) -> Text {
        let mut hasher = DefaultHasher::new();
        plain.hash(&mut hasher);
        let (hash, coded) = (hasher.finish(), Default::default());
        Text {
            content_type,
            cache,
            modified,
            hash,
            plain,
            coded,
        }
    }

    /// Answers in the coding that the client likes best.
    pub(crate) async fn answer(self: &Arc<Text>, ask: &Ask<'_>) -> Response<Body> {
        let liked = self.liked(ask.headers);
        let coded = match Text::place(liked) {
            None => None,
            Some(place) => self.coded(liked, place).await,
        };
        let coding = if coded.is_some() {
            liked
        } else {
            Coding::Identity
        };
        let mut response = ask.text(
            &self.facts(coding),
            coded.unwrap_or_else(|| self.plain.clone()),
        );
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        if let Some(coding) = coding.header() {
            headers.insert(header::CONTENT_ENCODING, coding);
        }
        response
    }

    fn liked(&self, headers: &HeaderMap) -> Coding {
        if self.plain.len() < COMPRESS_BYTES_MIN {
            Coding::Identity
        } else {
            encoding::choose(headers)
        }
    }

    fn place(coding: Coding) -> Option<usize> {
        match coding {
            Coding::Identity => None,
            Coding::Gzip => Some(0),
            Coding::Brotli => Some(1),
            Coding::Zstd => Some(2),
        }
    }

    /// The text in this coding; none where that failed or made it longer.
    async fn coded(self: &Arc<Text>, coding: Coding, place: usize) -> Option<Bytes> {
        let slot = self.coded.get(place)?;
        if let Some(made) = slot.get() {
            return made.clone();
        }
        if self.plain.len() <= COMPRESS_NOW_BYTES_MAX {
            return slot.get_or_init(|| self.compress(coding)).clone();
        }
        let text = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            text.coded
                .get(place)?
                .get_or_init(|| text.compress(coding))
                .clone()
        });
        task.await.ok().flatten()
    }

    fn compress(&self, coding: Coding) -> Option<Bytes> {
        let coded = encoding::compress(coding, &self.plain).ok()?;
        (coded.len() < self.plain.len()).then(|| Bytes::from(coded))
    }

    fn facts(&self, coding: Coding) -> Facts {
        let etag = match coding {
            Coding::Identity => format!("\"{:016x}\"", self.hash),
            coding => format!("\"{:016x}-{}\"", self.hash, coding.name()),
        };
        let validators = Validators {
            modified: self.modified,
            ..Validators::strong(&etag)
        };
        Facts {
            content_type: self.content_type.clone(),
            cache: self.cache.clone(),
            validators,
        }
    }
}
