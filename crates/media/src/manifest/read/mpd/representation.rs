//! Parsing of a representation's segments, for every addressing scheme (5.3.9).

use super::super::decimal::NANOS_PER_SECOND;
use super::super::resource_range::{ResourceRange, parse_range};
use super::super::segment_list::{
    InitSegment, RepresentationTemplateValues, SegmentAddress, SegmentList, SegmentRow,
};
use super::super::{ManifestRendition, SegmentListSource, SidxSource, resolve_url};
use super::inherited_values::ElementScope;
use super::period_span::PeriodSpan;
use super::segment_timings::{self, SegmentBudget, SegmentTiming};
use crate::error::{Error, Result};
use crate::time::Time;
use crate::xml::XmlElement;
use std::sync::Arc;

/// Returns the segment sources of a representation in this period.
pub(super) fn parse_segment_sources(
    scope: &ElementScope<'_>,
    rendition: &ManifestRendition,
    span: PeriodSpan,
    budget: &mut SegmentBudget,
) -> Result<Vec<SegmentListSource>> {
    let add_location = |error: Error| Error {
        location: format!(
            "Representation {}",
            super::super::resource_range::shorten_for_message(&rendition.id)
        ),
        ..error
    };
    match scope.addressing_element_name() {
        Some("SegmentTemplate") => parse_segment_template(scope, rendition, span, budget),
        Some("SegmentList") => parse_segment_list(scope, span, budget),
        _ => parse_segment_base(scope, span, budget),
    }
    .map(|piece| vec![piece])
    .map_err(add_location)
}

/// Returns the timescale in ticks per second, and the shift in ticks. The sum of a media time and
/// the shift is the presentation time.
fn parse_timescale_and_shift(scope: &ElementScope<'_>, span: PeriodSpan) -> Result<(u32, i64)> {
    let timescale = scope.parse_u64_attribute("timescale")?.unwrap_or(1);
    let timescale = u32::try_from(timescale)
        .ok()
        .filter(|timescale| *timescale > 0);
    let timescale =
        timescale.ok_or_else(|| Error::malformed("a timescale of 0, or of more than 32 bits"))?;
    let offset = scope
        .parse_u64_attribute("presentationTimeOffset")?
        .unwrap_or(0);
    let offset = i64::try_from(offset).map_err(|_| Error::malformed("times exceed 63 bits"))?;
    let start = Time::new(span.start_ns, NANOS_PER_SECOND).round_to(timescale);
    Ok((timescale, start.saturating_sub(offset)))
}

fn parse_segment_template(
    scope: &ElementScope<'_>,
    rendition: &ManifestRendition,
    span: PeriodSpan,
    budget: &mut SegmentBudget,
) -> Result<SegmentListSource> {
    let (timescale, shift) = parse_timescale_and_shift(scope, span)?;
    let identity = Arc::new(RepresentationTemplateValues {
        id: rendition.id.clone(),
        bandwidth: rendition.bandwidth,
    });
    let address = |text: &str| SegmentAddress {
        base: Arc::clone(&scope.base),
        text: text.into(),
        template: Some(Arc::clone(&identity)),
    };
    let media = scope
        .inherited_attribute("media")
        .ok_or_else(|| Error::malformed("SegmentTemplate without media"))?;
    let mut segments = SegmentList::default();
    let init = match scope.inherited_attribute("initialization") {
        Some(text) => Some(segments.push_init(InitSegment {
            address: address(text),
            range: None,
        })?),
        None => parse_initialization(scope, &mut segments)?,
    };
    let media = address(media);
    media.resolve_segment_url(0, 0)?;
    let media = segments.push_address(media);
    let first = scope.parse_u64_attribute("startNumber")?.unwrap_or(1);
    for (n, tick) in segment_timings::list_segment_timings(scope, timescale, span, budget)?
        .into_iter()
        .enumerate()
    {
        let number = first.saturating_add(n as u64);
        segments.push(build_segment_row(
            tick, timescale, shift, media, init, number,
        )?)?;
    }
    Ok(SegmentListSource::Segments(segments))
}

fn parse_segment_list(
    scope: &ElementScope<'_>,
    span: PeriodSpan,
    budget: &mut SegmentBudget,
) -> Result<SegmentListSource> {
    let (timescale, shift) = parse_timescale_and_shift(scope, span)?;
    let mut segments = SegmentList::default();
    let init = parse_initialization(scope, &mut segments)?;
    let urls: Vec<&XmlElement> = scope
        .innermost_addressing_element()
        .into_iter()
        .flat_map(|list| list.children_named("SegmentURL"))
        .collect();
    let ticks = segment_timings::list_segment_timings(scope, timescale, span, budget)?;
    let one_by_one =
        ticks.len() == 1 && urls.len() > 1 && scope.parse_u64_attribute("duration")?.is_none();
    if one_by_one {
        return Err(Error::malformed("SegmentList without durations"));
    }
    // The shorter of the two lists, URLs or start times, determines the number of segments.
    for (n, (url, tick)) in urls.iter().zip(ticks).enumerate() {
        let address = segments.push_address(SegmentAddress {
            base: Arc::clone(&scope.base),
            text: url.attribute("media").unwrap_or_default().into(),
            template: None,
        });
        let range = url.attribute("mediaRange").map(|text| {
            parse_range(text)
                .ok_or_else(|| Error::malformed("SegmentURL@mediaRange is not a range"))
        });
        let range = range.transpose()?.map(|range| (range.start, range.end));
        let row = build_segment_row(tick, timescale, shift, address, init, n as u64)?;
        segments.push(SegmentRow {
            byte_range: range,
            ..row
        })?;
    }
    Ok(SegmentListSource::Segments(segments))
}

/// Parses a representation that is one file, with or without `SegmentBase`. Either the file has a
/// segment index, or the whole file is one segment.
fn parse_segment_base(
    scope: &ElementScope<'_>,
    span: PeriodSpan,
    budget: &mut SegmentBudget,
) -> Result<SegmentListSource> {
    let (timescale, shift) = parse_timescale_and_shift(scope, span)?;
    let first = scope.child_element("Initialization");
    let init_url = first.and_then(|init| init.attribute("sourceURL"));
    if let Some(index) = scope
        .inherited_attribute("indexRange")
        .and_then(parse_range)
    {
        let url = (*scope.base).clone();
        let init = first
            .and_then(|init| init.attribute("range"))
            .and_then(parse_range);
        // If the MPD does not declare the range of the init segment, the range is all bytes before
        // the index, because these bytes contain the `moov`.
        let init =
            init.or_else(|| (index.start > 0 && init_url.is_none()).then_some(0..index.start));
        let offset = scope
            .parse_u64_attribute("presentationTimeOffset")?
            .unwrap_or(0);
        let offset = i64::try_from(offset).map_err(|_| Error::malformed("times exceed 63 bits"))?;
        budget.take_segments(1)?;
        return Ok(SegmentListSource::Sidx(Box::new(SidxSource {
            index_resource: ResourceRange {
                url,
                range: Some(index),
            },
            init_range: init,
            period_start_ns: span.start_ns,
            presentation_time_offset: Time::new(offset, timescale),
        })));
    }
    budget.take_segments(1)?;
    let mut segments = SegmentList::default();
    let address = segments.push_address(SegmentAddress {
        base: Arc::clone(&scope.base),
        text: "".into(),
        template: None,
    });
    let duration = span.duration_ns.map_or(0, |nanos| {
        Time::new(nanos, NANOS_PER_SECOND).round_to(timescale)
    });
    let tick = SegmentTiming {
        time: 0,
        duration: u64::try_from(duration).unwrap_or(0),
    };
    segments.push(build_segment_row(tick, timescale, shift, address, None, 1)?)?;
    Ok(SegmentListSource::Segments(segments))
}

/// Parses the `Initialization` element.
fn parse_initialization(
    scope: &ElementScope<'_>,
    segments: &mut SegmentList,
) -> Result<Option<u16>> {
    let Some(init) = scope.child_element("Initialization") else {
        return Ok(None);
    };
    let source = init.attribute("sourceURL").unwrap_or_default();
    resolve_url(&scope.base, source)?;
    let address = SegmentAddress {
        base: Arc::clone(&scope.base),
        text: source.into(),
        template: None,
    };
    let range = init.attribute("range").and_then(parse_range);
    segments.push_init(InitSegment { address, range }).map(Some)
}

fn build_segment_row(
    tick: SegmentTiming,
    timescale: u32,
    shift: i64,
    address: u32,
    init: Option<u16>,
    number: u64,
) -> Result<SegmentRow> {
    let overflow = || Error::malformed("times exceed 63 bits");
    let time = i64::try_from(tick.time).map_err(|_| overflow())?;
    let duration = i64::try_from(tick.duration).map_err(|_| overflow())?;
    let start = time.checked_add(shift).ok_or_else(overflow)?;
    start.checked_add(duration).ok_or_else(overflow)?;
    Ok(SegmentRow {
        start_ticks: start,
        duration_ticks: duration,
        timescale,
        address_index: address,
        init_index: init,
        is_gap: false,
        number,
        time: tick.time,
        byte_range: None,
    })
}
