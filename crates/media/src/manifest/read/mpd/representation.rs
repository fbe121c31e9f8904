//! A representation's segments, however they are addressed (5.3.9).

use super::super::address::{Part, range};
use super::super::decimal::NANOS;
use super::super::segments::{Address, Identity, Init, Row, Segments};
use super::super::{IndexPiece, Piece, Rendition, resolve};
use super::Span;
use super::base::Scope;
use super::timeline::{self, Budget, Tick};
use crate::error::{Error, Result};
use crate::time::Time;
use crate::xml::Element;
use std::sync::Arc;

/// What makes up the representation in this period.
pub(super) fn pieces(
    scope: &Scope<'_>,
    rendition: &Rendition,
    span: Span,
    budget: &mut Budget,
) -> Result<Vec<Piece>> {
    let place = |error: Error| Error {
        place: format!(
            "Representation {}",
            super::super::address::short(&rendition.id)
        ),
        ..error
    };
    match scope.kind() {
        Some("SegmentTemplate") => template(scope, rendition, span, budget),
        Some("SegmentList") => list(scope, span, budget),
        _ => single(scope, span, budget),
    }
    .map(|piece| vec![piece])
    .map_err(place)
}

/// Ticks a second, and what takes the representation's timeline to the presentation's.
fn clock(scope: &Scope<'_>, span: Span) -> Result<(u32, i64)> {
    let timescale = scope.number("timescale")?.unwrap_or(1);
    let timescale = u32::try_from(timescale)
        .ok()
        .filter(|timescale| *timescale > 0);
    let timescale =
        timescale.ok_or_else(|| Error::malformed("a timescale of 0, or of more than 32 bits"))?;
    let offset = scope.number("presentationTimeOffset")?.unwrap_or(0);
    let offset = i64::try_from(offset).map_err(|_| Error::malformed("times run past 63 bits"))?;
    let start = Time::new(span.start, NANOS).round_to(timescale);
    Ok((timescale, start.saturating_sub(offset)))
}

fn template(
    scope: &Scope<'_>,
    rendition: &Rendition,
    span: Span,
    budget: &mut Budget,
) -> Result<Piece> {
    let (timescale, shift) = clock(scope, span)?;
    let identity = Arc::new(Identity {
        id: rendition.id.clone(),
        bandwidth: rendition.bandwidth,
    });
    let address = |text: &str| Address {
        base: Arc::clone(&scope.base),
        text: text.into(),
        template: Some(Arc::clone(&identity)),
    };
    let media = scope
        .get("media")
        .ok_or_else(|| Error::malformed("SegmentTemplate without media"))?;
    let mut segments = Segments::default();
    let init = match scope.get("initialization") {
        Some(text) => Some(segments.push_init(Init {
            address: address(text),
            range: None,
        })?),
        None => initialization(scope, &mut segments)?,
    };
    let media = address(media);
    media.resolve(0, 0)?;
    let media = segments.push_address(media);
    let first = scope.number("startNumber")?.unwrap_or(1);
    for (n, tick) in timeline::ticks(scope, timescale, span, budget)?
        .into_iter()
        .enumerate()
    {
        let number = first.saturating_add(n as u64);
        segments.push(row(tick, timescale, shift, media, init, number)?)?;
    }
    Ok(Piece::Segments(segments))
}

fn list(scope: &Scope<'_>, span: Span, budget: &mut Budget) -> Result<Piece> {
    let (timescale, shift) = clock(scope, span)?;
    let mut segments = Segments::default();
    let init = initialization(scope, &mut segments)?;
    let urls: Vec<&Element> = scope
        .innermost()
        .into_iter()
        .flat_map(|list| list.all("SegmentURL"))
        .collect();
    let ticks = timeline::ticks(scope, timescale, span, budget)?;
    let one_by_one = ticks.len() == 1 && urls.len() > 1 && scope.number("duration")?.is_none();
    if one_by_one {
        return Err(Error::malformed("SegmentList without durations"));
    }
    // Without a timeline the list itself says how many there are.
    for (n, (url, tick)) in urls.iter().zip(ticks).enumerate() {
        let address = segments.push_address(Address {
            base: Arc::clone(&scope.base),
            text: url.get("media").unwrap_or_default().into(),
            template: None,
        });
        let range = url.get("mediaRange").map(|text| {
            range(text).ok_or_else(|| Error::malformed("SegmentURL@mediaRange is no range"))
        });
        let range = range.transpose()?.map(|range| (range.start, range.end));
        let row = row(tick, timescale, shift, address, init, n as u64)?;
        segments.push(Row { range, ..row })?;
    }
    Ok(Piece::Segments(segments))
}

/// `SegmentBase`, or nothing at all: one file, with an index or whole.
fn single(scope: &Scope<'_>, span: Span, budget: &mut Budget) -> Result<Piece> {
    let (timescale, shift) = clock(scope, span)?;
    let first = scope.child("Initialization");
    let init_url = first.and_then(|init| init.get("sourceURL"));
    if let Some(index) = scope.get("indexRange").and_then(range) {
        let url = (*scope.base).clone();
        let init = first.and_then(|init| init.get("range")).and_then(range);
        // Without a range, all before the index: that is where the moov lies.
        let init =
            init.or_else(|| (index.start > 0 && init_url.is_none()).then_some(0..index.start));
        let offset = scope.number("presentationTimeOffset")?.unwrap_or(0);
        let offset =
            i64::try_from(offset).map_err(|_| Error::malformed("times run past 63 bits"))?;
        budget.take(1)?;
        return Ok(Piece::Index(Box::new(IndexPiece {
            part: Part {
                url,
                range: Some(index),
            },
            init,
            period_start: span.start,
            presentation_offset: Time::new(offset, timescale),
        })));
    }
    budget.take(1)?;
    let mut segments = Segments::default();
    let address = segments.push_address(Address {
        base: Arc::clone(&scope.base),
        text: "".into(),
        template: None,
    });
    let duration = span
        .duration
        .map_or(0, |nanos| Time::new(nanos, NANOS).round_to(timescale));
    let tick = Tick {
        time: 0,
        duration: u64::try_from(duration).unwrap_or(0),
    };
    segments.push(row(tick, timescale, shift, address, None, 1)?)?;
    Ok(Piece::Segments(segments))
}

/// The `Initialization` element.
fn initialization(scope: &Scope<'_>, segments: &mut Segments) -> Result<Option<u16>> {
    let Some(init) = scope.child("Initialization") else {
        return Ok(None);
    };
    let source = init.get("sourceURL").unwrap_or_default();
    resolve(&scope.base, source)?;
    let address = Address {
        base: Arc::clone(&scope.base),
        text: source.into(),
        template: None,
    };
    let range = init.get("range").and_then(range);
    segments.push_init(Init { address, range }).map(Some)
}

fn row(
    tick: Tick,
    timescale: u32,
    shift: i64,
    address: u32,
    init: Option<u16>,
    number: u64,
) -> Result<Row> {
    let past = || Error::malformed("times run past 63 bits");
    let time = i64::try_from(tick.time).map_err(|_| past())?;
    let duration = i64::try_from(tick.duration).map_err(|_| past())?;
    let start = time.checked_add(shift).ok_or_else(past)?;
    start.checked_add(duration).ok_or_else(past)?;
    Ok(Row {
        start,
        duration,
        timescale,
        address,
        init,
        gap: false,
        number,
        time: tick.time,
        range: None,
    })
}
