//! Media: a plan, run.

use crate::catalog::Catalog;
use crate::error;
use crate::packing::Packing;
use crate::pieces::{Piece, Source};
use crate::plain::content_type;
use crate::ready::{Place, Ready, Segments};
use crate::respond::{Ask, Facts};
use crate::route::{self, Form, Part, Segment};
use crate::seal;
use crate::title::Title;
use bytes::Bytes;
use http::Response;
use http::header::HeaderValue;
use media::manifest::{Format, hls};
use media::plan::Plan;
use media::presentation::{Presentation, Rendition};
use net::conditional::Validators;
use net::{Body, Error};
use std::ops::Range;
use std::sync::Arc;
use store::Object;

/// Segments are named by their content: what has that name never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// What the URL names, found.
struct Found<'a> {
    presentation: &'a Arc<Presentation>,
    place: usize,
    rendition: &'a Rendition,
}

/// Answers with a piece of media, and keeps what that took under the URL's `path`.
pub(crate) async fn answer(
    catalog: &Arc<Catalog>,
    segments: &Segments,
    (path, segment): (&str, &Segment),
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
    let ready = match segment.part {
        Part::At(time, form) if form != Form::Cmaf || title.seal.is_some() => {
            let packed = match form {
                Form::Cmaf => found.ready(&title, segment)?,
                _ => found.packed(&title, segment, time, form)?,
            };
            if let Some(response) = ask.condition(packed.facts()) {
                return Ok(response);
            }
            let source = packed.source(&title, ask).ok_or_else(error::gone)?;
            let work = found.packing(&title, packed.pieces(), (time, form), source)?;
            packed.holding(work.run(segments.arena()).await?)
        }
        Part::Number(_) | Part::KeyFrame(_) if title.seal.is_some() => {
            return Err(seal::refused("there is no such segment"));
        }
        _ => found.ready(&title, segment)?,
    };
    let ready = Arc::new(ready);
    // Spelled otherwise it is the same segment, and kept once.
    if route::Request::Segment(segment.clone()).to_string() == path {
        segments.keep(path, ready.clone());
    }
    let source = ready.source(&title, ask).ok_or_else(error::gone)?;
    let response = ready.send(source, ask).await?;
    if catalog.reads_ahead() {
        found.read_ahead(&title, segment.part);
    }
    Ok(response)
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
    /// What is made of samples as they lie in the file.
    fn ready(&self, title: &Arc<Title>, segment: &Segment) -> Result<Ready, Error> {
        let p = self.presentation;
        let content_type = self.content_type();
        let mut place = self.place(segment);
        let (facts, pieces, link) = match segment.part {
            Part::Init => {
                let init = Piece::Made(Bytes::from(p.init(self.rendition)));
                (self.facts(title, content_type, "i", 0), vec![init], None)
            }
            Part::KeyFrame(time) => {
                let key = p.key_at(self.rendition, time).ok_or_else(no_segment)?;
                let plan = p.key_segment(self.rendition, key);
                let facts = self.facts(title, content_type, "k", u64::from(key));
                (facts, pieces(plan), None)
            }
            Part::At(time, form) => {
                let n = self.number_at(time)?;
                place.along = self.along(title, n);
                let plan = p.segment(self.rendition, n);
                let link = self.link_next(segment, n, |time, _| Part::At(time, form));
                let facts = self.facts(title, content_type, "c", n as u64);
                (facts, pieces(plan), link)
            }
            Part::Number(number) => {
                let n = number as usize - 1;
                if n >= self.rendition.segments() {
                    return Err(no_segment());
                }
                place.along = self.along(title, n);
                let plan = p.segment(self.rendition, n);
                let link = self.link_next(segment, n, |_, next| Part::Number(next as u32 + 1));
                let facts = self.facts(title, content_type, "c", n as u64);
                (facts, pieces(plan), link)
            }
        };
        Ok(Ready::new(title, place, facts, pieces, link))
    }

    /// Transport streams and packed audio: every byte is looked at. Still without its bytes.
    fn packed(
        &self,
        title: &Arc<Title>,
        segment: &Segment,
        time: u64,
        form: Form,
    ) -> Result<Ready, Error> {
        let n = self.number_at(time)?;
        let codec = &self.presentation.track(self.rendition).codec;
        let extension = hls::extension(Format::Ts, codec).unwrap_or_default();
        if form.suffix().strip_prefix('.') != Some(extension) {
            return Err(error::not_found("the rendition is not packed so"));
        }
        let content_type = HeaderValue::from_static(content_type(form.suffix()));
        let facts = self.facts(title, content_type, "t", n as u64);
        let link = self.link_next(segment, n, |time, _| Part::At(time, form));
        let place = Place {
            along: self.along(title, n),
            ..self.place(segment)
        };
        Ok(Ready::new(title, place, facts, Vec::new(), link))
    }

    /// What is to be done to make the bytes of a segment at this time.
    fn packing(
        &self,
        title: &Title,
        pieces: &Arc<[Piece]>,
        (time, form): (u64, Form),
        source: Source,
    ) -> Result<Packing, Error> {
        let n = self.number_at(time)?;
        let number = hls::FIRST_NUMBER + n as u64;
        let sealed = title.seal.as_ref().map(|seal| seal.of(number));
        match form {
            Form::Cmaf => Ok(Packing::as_is(source, pieces, sealed)),
            _ => Packing::new(source, self.presentation, self.place, n, sealed),
        }
    }

    fn place<'s>(&self, segment: &'s Segment) -> Place<'s> {
        Place {
            segment,
            file: self.rendition.file,
            along: None,
        }
    }

    /// Where the other renditions of the same remote file lie at that time: who plays one of them
    /// is likely to ask for another.
    fn along(&self, title: &Title, n: usize) -> Option<Arc<[Range<u64>]>> {
        let p = self.presentation;
        let object = title.object(self.rendition.file).ok()?;
        if !object.is_remote() {
            return None;
        }
        let beside =
            |r: &&Rendition| r.file == self.rendition.file && r.track != self.rendition.track;
        let beside = p.renditions.iter().filter(beside);
        let beside = beside.filter(|r| n < r.segments());
        Some(beside.flat_map(|r| p.ranges(r, n)).collect())
    }

    /// Begins to fetch the segment after this one, with what lies along it.
    fn read_ahead(&self, title: &Title, part: Part) {
        let n = match part {
            Part::At(time, _) => self.number_at(time).ok(),
            Part::Number(number) => (number as usize).checked_sub(1),
            Part::Init | Part::KeyFrame(_) => None,
        };
        let Some(next) = n.map(|n| n + 1) else { return };
        if next >= self.rendition.segments() {
            return;
        }
        if let Ok(Object::Remote(object)) = title.object(self.rendition.file).map(|o| &**o) {
            let ranges = self.presentation.ranges(self.rendition, next);
            let along = self.along(title, next).unwrap_or_default();
            object.read_ahead(&ranges, &along);
        }
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
        segment: &Segment,
        n: usize,
        name: impl Fn(u64, usize) -> Part,
    ) -> Option<HeaderValue> {
        let next = n + 1;
        if next >= self.rendition.segments() {
            return None;
        }
        let part = name(self.presentation.segment_start(self.rendition, next), next);
        let next = Segment {
            part,
            ..segment.clone()
        };
        let link = format!("<{}>; rel=\"next\"", route::Request::Segment(next));
        HeaderValue::from_str(&link).ok()
    }
}

fn pieces(plan: Plan) -> Vec<Piece> {
    let head = Piece::Made(Bytes::from(plan.head));
    std::iter::once(head)
        .chain(plan.ranges.into_iter().map(Piece::Of))
        .collect()
}

pub(crate) fn no_segment() -> Error {
    error::not_found("the rendition has no such segment")
}
