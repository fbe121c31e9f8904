//! Media: a plan, run.

use crate::catalog::Catalog;
use crate::error;
use crate::pieces::{Piece, Source};
use crate::plain::content_type;
use crate::respond::{Ask, Facts};
use crate::route::{self, Form, Part, Segment, Set};
use crate::title::Title;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use media::manifest::{Format, hls};
use media::plan::Plan;
use media::presentation::{Presentation, Rendition};
use media::ts;
use net::conditional::Validators;
use net::{Body, Error};
use std::sync::Arc;
use store::Reason;

/// Segments are named by their content: what has that name never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// What the URL names, found.
struct Found<'a> {
    presentation: &'a Arc<Presentation>,
    place: usize,
    rendition: &'a Rendition,
}

/// Answers with a piece of media.
pub(crate) async fn answer(
    catalog: &Arc<Catalog>,
    segment: &Segment,
    ask: &Ask<'_>,
) -> Result<Response<Body>, Error> {
    let mut title = catalog.title(&segment.title).await?;
    let mut found = find(&title, segment)?;
    // The tables may be those of bytes that are no more: look before they are used. A cut of
    // the new bytes has another name, unless the change did not concern it.
    if title.object(found.rendition.file)?.changed() {
        title = catalog.again(&title).await?;
        found = find(&title, segment)?;
    }
    found.answer(&title, segment.part, ask).await
}

fn find<'a>(title: &'a Title, segment: &Segment) -> Result<Found<'a>, Error> {
    let presentation = title.presentation(segment.set).ok_or_else(error::gone)?;
    let found = presentation.rendition(&segment.rendition);
    let (place, rendition) = found.ok_or_else(|| error::not_found("there is no such rendition"))?;
    Ok(Found {
        presentation,
        place,
        rendition,
    })
}

impl Found<'_> {
    async fn answer(
        &self,
        title: &Title,
        part: Part,
        ask: &Ask<'_>,
    ) -> Result<Response<Body>, Error> {
        let p = self.presentation;
        match part {
            Part::Init => {
                let facts = self.facts(title, self.content_type(), "i", 0);
                let init = Piece::Made(Bytes::from(p.init(self.rendition)));
                self.send(title, &facts, vec![init], ask).await
            }
            Part::At(time, Form::Cmaf) => {
                self.cmaf(title, self.number_at(time)?, ask, |n, _| {
                    Part::At(n, Form::Cmaf)
                })
                .await
            }
            Part::Number(number) => {
                let n = number as usize - 1;
                if n >= self.rendition.segments() {
                    return Err(no_segment());
                }
                self.cmaf(title, n, ask, |_, next| Part::Number(next as u32 + 1))
                    .await
            }
            Part::KeyFrame(time) => {
                let key = p.key_at(self.rendition, time).ok_or_else(no_segment)?;
                let facts = self.facts(title, self.content_type(), "k", u64::from(key));
                let plan = p.key_segment(self.rendition, key);
                self.send(title, &facts, pieces(plan), ask).await
            }
            Part::At(time, form) => self.packed(title, time, form, ask).await,
        }
    }

    async fn cmaf(
        &self,
        title: &Title,
        n: usize,
        ask: &Ask<'_>,
        name: impl Fn(u64, usize) -> Part,
    ) -> Result<Response<Body>, Error> {
        let facts = self.facts(title, self.content_type(), "c", n as u64);
        let plan = self.presentation.segment(self.rendition, n);
        let mut response = self.send(title, &facts, pieces(plan), ask).await?;
        self.link_next(title, n, name, &mut response);
        Ok(response)
    }

    /// Transport streams and packed audio: every byte is looked at.
    async fn packed(
        &self,
        title: &Title,
        time: u64,
        form: Form,
        ask: &Ask<'_>,
    ) -> Result<Response<Body>, Error> {
        let n = self.number_at(time)?;
        let codec = &self.presentation.track(self.rendition).codec;
        let extension = hls::extension(Format::Ts, codec).unwrap_or_default();
        if form.suffix().strip_prefix('.') != Some(extension) {
            return Err(error::not_found("the rendition is not packed so"));
        }
        let content_type = HeaderValue::from_static(content_type(form.suffix()));
        let facts = self.facts(title, content_type, "t", n as u64);
        let mut response = match ask.condition(&facts) {
            Some(response) => response,
            None => {
                let source = self.source(title, ask)?;
                let packed = pack(source, self.presentation.clone(), self.place, n).await?;
                self.send(title, &facts, vec![Piece::Made(packed)], ask)
                    .await?
            }
        };
        self.link_next(title, n, |time, _| Part::At(time, form), &mut response);
        Ok(response)
    }

    async fn send(
        &self,
        title: &Title,
        facts: &Facts,
        pieces: Vec<Piece>,
        ask: &Ask<'_>,
    ) -> Result<Response<Body>, Error> {
        ask.pieces(facts, self.source(title, ask)?, pieces).await
    }

    fn source(&self, title: &Title, ask: &Ask<'_>) -> Result<Source, Error> {
        let object = title.object(self.rendition.file)?.clone();
        let (reason, touched) = (Reason::Segment, ask.touched);
        Ok(Source {
            object,
            reason,
            touched,
        })
    }

    fn number_at(&self, time: u64) -> Result<usize, Error> {
        self.presentation
            .segment_at(self.rendition, time)
            .ok_or_else(no_segment)
    }

    fn content_type(&self) -> HeaderValue {
        let video = self
            .presentation
            .track(self.rendition)
            .codec
            .video()
            .is_some();
        HeaderValue::from_static(if video { "video/mp4" } else { "audio/mp4" })
    }

    fn facts(&self, title: &Title, content_type: HeaderValue, kind: &str, n: u64) -> Facts {
        let version = self.presentation.version;
        let segment_ms = self.presentation.segment_ms;
        let etag = format!("\"{version:x}-{segment_ms}-{}-{kind}{n}\"", self.place);
        let validators = Validators {
            modified: title.modified.clone(),
            ..Validators::strong(&etag)
        };
        Facts {
            content_type,
            cache: FOR_EVER,
            validators,
            coding: None,
        }
    }

    /// Tells a cache in front what will be asked for next.
    fn link_next(
        &self,
        title: &Title,
        n: usize,
        name: impl Fn(u64, usize) -> Part,
        response: &mut Response<Body>,
    ) {
        let next = n + 1;
        if next >= self.rendition.segments() || response.status() == StatusCode::NOT_MODIFIED {
            return;
        }
        let part = name(self.presentation.segment_start(self.rendition, next), next);
        let next = Segment {
            title: title.key.clone(),
            set: Set {
                segment_ms: self.presentation.segment_ms,
                version: self.presentation.version,
            },
            rendition: self.rendition.name.clone(),
            part,
        };
        let link = format!("<{}>; rel=\"next\"", route::Request::Segment(next));
        if let Ok(link) = HeaderValue::from_str(&link) {
            response.headers_mut().insert(header::LINK, link);
        }
    }
}

fn pieces(plan: Plan) -> Vec<Piece> {
    let head = Piece::Made(Bytes::from(plan.head));
    std::iter::once(head)
        .chain(plan.ranges.into_iter().map(Piece::Of))
        .collect()
}

/// Reads a segment's samples and packs them.
async fn pack(
    source: Source,
    presentation: Arc<Presentation>,
    place: usize,
    n: usize,
) -> Result<Bytes, Error> {
    let rendition = presentation.renditions.get(place).ok_or_else(no_segment)?;
    let units = presentation.units(rendition, n);
    let pieces: Vec<_> = units.ranges.iter().cloned().map(Piece::Of).collect();
    let now = source.is_quick(&pieces);
    let work = move || {
        let parts = source.read_now(&pieces).map_err(|e| error::of_store(&e))?;
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let rendition = presentation.renditions.get(place).ok_or_else(no_segment)?;
        let codec = &presentation.track(rendition).codec;
        let packed = ts::wrap(codec, &units, &parts).map_err(|e| error::of_media("", &e))?;
        Ok(Bytes::from(packed))
    };
    if now {
        return work();
    }
    let task = tokio::task::spawn_blocking(work);
    task.await.unwrap_or_else(|e| Err(error::of_task(&e)))
}

fn no_segment() -> Error {
    error::not_found("the rendition has no such segment")
}
