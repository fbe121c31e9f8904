//! Playlists and MPDs: written once per state of a title, kept in every coding asked for.

use crate::catalog::Catalog;
use crate::describe;
use crate::error;
use crate::respond::{Ask, Facts};
use crate::route::{Addressing, Manifest, Packing};
use crate::seal::{self, Seal};
use crate::title::Title;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use media::manifest::dash::{self, Template};
use media::manifest::{Format, hls};
use media::presentation::{Presentation, Rendition};
use net::conditional::{Modified, Validators};
use net::encoding::{self, Coding};
use net::headers::Fields;
use net::{Body, Error, Mapped, headers};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use store::{Arena, Key};

/// A manifest names the present state of a title: caches must soon ask again.
const SOON: HeaderValue =
    HeaderValue::from_static("public, max-age=2, stale-while-revalidate=30, stale-if-error=300");

/// Texts up to this are compressed where they are asked for; longer ones by another thread.
const COMPRESS_NOW_BYTES_MAX: usize = 4 << 10;
/// Shorter texts are not worth compressing: they fit into the same packet.
const COMPRESS_BYTES_MIN: usize = 512;
/// Texts from this on are sent without a copy; for shorter ones asking for that costs more.
const UNCOPIED_BYTES_MIN: usize = 64 << 10;

/// The texts of a title made so far. Their number is bounded by the title's renditions.
#[derive(Default)]
pub(crate) struct Texts {
    made: RwLock<HashMap<Manifest, Arc<Text>>>,
}

/// A text in memory, in all codings that were asked for.
pub(crate) struct Text {
    plain: Coded,
    others: [OnceLock<Option<Coded>>; 3],
}

/// A text in one coding, and all that is said of it.
struct Coded {
    facts: Facts,
    /// The head of an answer with all of it.
    head: Fields,
    bytes: Bytes,
    /// What the bytes are, where the kernel can send them by itself.
    mapped: Option<Mapped>,
}

/// What a manifest's URL leads to.
pub(crate) enum Found {
    /// A text, and the title as it is now.
    Here(Arc<Title>, Arc<Text>),
    /// The film or the way it is cut has changed: the playlist is now beside other segments. Who
    /// has read only the multivariant playlist of then can go on as if it were that of now.
    Moved(HeaderValue),
}

/// Finds a manifest of a title, or writes it.
pub(crate) async fn find(
    catalog: &Arc<Catalog>,
    title: &Key,
    manifest: &Manifest,
) -> Result<Found, Error> {
    let title = catalog.title(title).await?;
    if manifest.set().is_some_and(|set| set != title.hls_set()) {
        let now = manifest.clone().of_set(title.hls_set());
        // From the folder of a rendition.
        let place = HeaderValue::try_from(format!("../../{now}"));
        return place.map(Found::Moved).map_err(Error::internal);
    }
    let text = match title.texts.find(manifest) {
        Some(text) => text,
        None => {
            let text = write(&title, manifest)?.placed(catalog.arena());
            title.texts.make(manifest, Arc::new(text))
        }
    };
    Ok(Found::Here(title, text))
}

/// Leads to the playlist that is there now.
pub(crate) fn moved(place: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::full("the playlist is elsewhere now\n"));
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, place);
    headers.insert(header::CACHE_CONTROL, SOON);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers::allow_any_origin(headers);
    response
}

fn write(title: &Title, manifest: &Manifest) -> Result<Text, Error> {
    const HLS: &str = "application/vnd.apple.mpegurl";
    let (content_type, text) = match manifest {
        Manifest::Multivariant(packing) => {
            let text = hls::multivariant(&title.hls, format(*packing), title.seal.is_some());
            (HLS, text.ok_or_else(not_in_ts)?)
        }
        Manifest::Media(_, packing, name) => {
            let rendition = rendition(&title.hls, name)?;
            let key_url = title.seal.as_ref().map(Seal::key_url);
            let text = hls::media(&title.hls, rendition, format(*packing), key_url);
            (HLS, text.ok_or_else(not_in_ts)?)
        }
        Manifest::KeyFrames(..) | Manifest::Dash(_) if title.seal.is_some() => {
            return Err(seal::refused("there is no such manifest"));
        }
        Manifest::KeyFrames(_, name) => {
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
        // Where keys are may change while the film does not.
        title.modified.clone().filter(|_| title.seal.is_none()),
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
        modified: Option<Modified>,
        bytes: Bytes,
    ) -> Text {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let validators = Validators {
            modified,
            ..Validators::strong(&format!("\"{:016x}\"", hasher.finish()))
        };
        let facts = Facts {
            content_type,
            cache,
            validators,
            coding: Some(Coding::Identity),
        };
        Text {
            plain: Coded::new(facts, bytes),
            others: Default::default(),
        }
    }

    /// The same, where the kernel can send it without a copy if it is long.
    fn placed(mut self, arena: Option<&Arena>) -> Text {
        let long = self.plain.bytes.len() >= UNCOPIED_BYTES_MIN;
        let bytes = std::iter::once(&*self.plain.bytes);
        // Where there is no room, it is copied when it is sent.
        let kept = arena.filter(|_| long).map(|arena| arena.keep(bytes));
        if let Some(Ok(kept)) = kept {
            let (address, len) = kept.place();
            self.plain.bytes = kept.bytes().clone();
            self.plain.mapped = Some(Mapped::memory(Arc::new(kept), address, len));
        }
        self
    }

    /// Answers in the coding that the client likes best.
    pub(crate) async fn answer(self: &Arc<Text>, ask: &Ask<'_>) -> Response<Body> {
        let liked = self.liked(ask.headers).await;
        let response = ask.text(&liked.facts, &liked.head, &liked.bytes);
        match &liked.mapped {
            Some(mapped) if !ask.touched => response.map(|body| body.of_file(mapped.clone())),
            _ => response,
        }
    }

    /// The text as the client likes it best; plain where coding it failed or made it longer.
    async fn liked(self: &Arc<Text>, headers: &HeaderMap) -> &Coded {
        if self.plain.bytes.len() < COMPRESS_BYTES_MIN {
            return &self.plain;
        }
        let coding = encoding::choose(headers);
        let Some(slot) = place(coding).and_then(|place| self.others.get(place)) else {
            return &self.plain;
        };
        if slot.get().is_none() && self.plain.bytes.len() > COMPRESS_NOW_BYTES_MAX {
            let text = self.clone();
            let task = tokio::task::spawn_blocking(move || text.code(coding).is_some());
            if task.await.is_err() {
                return &self.plain;
            }
        }
        self.code(coding).unwrap_or(&self.plain)
    }

    /// The text in this coding, made now if it was not yet.
    fn code(&self, coding: Coding) -> Option<&Coded> {
        let slot = self.others.get(place(coding)?)?;
        slot.get_or_init(|| self.plain.coded(coding)).as_ref()
    }
}

/// Where a coding has its slot; plain text has none.
fn place(coding: Coding) -> Option<usize> {
    match coding {
        Coding::Identity => None,
        Coding::Gzip => Some(0),
        Coding::Brotli => Some(1),
        Coding::Zstd => Some(2),
    }
}

impl Coded {
    fn new(facts: Facts, bytes: Bytes) -> Coded {
        Coded {
            head: facts.whole(),
            facts,
            bytes,
            mapped: None,
        }
    }

    /// The same in another coding, with a tag of its own.
    fn coded(&self, coding: Coding) -> Option<Coded> {
        let bytes = encoding::compress(coding, &self.bytes).ok()?;
        let tag = self.facts.validators.etag.as_ref()?.to_str().ok()?;
        let tag = format!("\"{}-{}\"", tag.trim_matches('"'), coding.name());
        let validators = Validators {
            modified: self.facts.validators.modified.clone(),
            ..Validators::strong(&tag)
        };
        let facts = Facts {
            validators,
            coding: Some(coding),
            ..self.facts.clone()
        };
        let bytes = Bytes::from(bytes);
        (bytes.len() < self.bytes.len()).then(|| Coded::new(facts, bytes))
    }
}
