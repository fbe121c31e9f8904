//! Parsing of DASH MPDs (ISO/IEC 23009-1).

mod inherited_values;
mod period;
mod period_span;
mod representation;
mod segment_timings;

use self::period_span::PeriodSpan;
use self::segment_timings::SegmentBudget;
use super::decimal;
use super::{MANIFEST_BYTES_MAX, ManifestRendition, ParsedManifest, SegmentListSource};
use crate::error::{Error, ErrorKind, Result};
use crate::xml::{self, XmlElement};
use url::Url;

/// Maximum number of representations in one MPD, counted over all periods.
const REPRESENTATIONS_MAX: usize = 4096;

/// Parses an MPD that was fetched from `url`, after redirects.
///
/// Joins the periods, so that each representation continues in the next period with a
/// representation of the same kind. If several representations are of this kind, prefers the same
/// language, then the same id, then the nearest bandwidth.
///
/// # Errors
/// `Malformed` or `Truncated` if the bytes are not a valid MPD; `TooLarge` if the MPD exceeds a
/// limit; `Unsupported` for a URL that is neither `http` nor `https`; `Empty` if the MPD has no
/// representation that can be played.
pub fn parse_mpd(url: &Url, bytes: &[u8]) -> Result<ParsedManifest> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        let message = format!("an MPD of more than {MANIFEST_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Error::malformed("an MPD not in UTF-8"))?;
    let mpd = xml::parse_xml_document(text)?;
    if mpd.name != "MPD" {
        let message = format!(
            "an MPD is expected, but this is <{}>",
            super::resource_range::shorten_for_message(&mpd.name)
        );
        return Err(Error::malformed(message));
    }
    let mut title = ParsedManifest {
        is_live: mpd.attribute("type") == Some("dynamic"),
        ..ParsedManifest::default()
    };
    let scope = inherited_values::ElementScope::new(url).enter_element(&mpd)?;
    let mut budget = SegmentBudget::default();
    for (period, span) in period_spans(&mpd)? {
        if period.attribute("href").is_some() {
            title.add_note("periods elsewhere (xlink) are ignored");
            continue;
        }
        let found = period::parse_period(&mut title, &scope, period, span, &mut budget)?;
        join_period(&mut title, found, &mut budget)?;
    }
    if title.renditions.is_empty() {
        return Err(Error::new(
            ErrorKind::Empty,
            "an MPD without a representation that plays",
        ));
    }
    Ok(title)
}

/// Returns the periods with their start times and durations (5.3.2.1). Missing values are derived
/// from the adjacent periods or from the duration of the presentation.
fn period_spans(mpd: &XmlElement) -> Result<Vec<(&XmlElement, PeriodSpan)>> {
    let total = mpd
        .attribute("mediaPresentationDuration")
        .and_then(decimal::parse_duration);
    let periods: Vec<&XmlElement> = mpd.children_named("Period").collect();
    let mut spans = Vec::with_capacity(periods.len());
    let mut next_start = 0;
    for (n, period) in periods.iter().enumerate() {
        let start = period
            .attribute("start")
            .and_then(decimal::parse_duration)
            .unwrap_or(next_start);
        let following = periods.get(n + 1).and_then(|next| next.attribute("start"));
        let until = match following.and_then(decimal::parse_duration) {
            None if n + 1 == periods.len() => total,
            until => until,
        };
        let duration = period
            .attribute("duration")
            .and_then(decimal::parse_duration);
        let duration = duration.or(until.map(|until| until.saturating_sub(start).max(0)));
        next_start = start.saturating_add(duration.unwrap_or(0));
        spans.push((
            *period,
            PeriodSpan {
                start_ns: start,
                duration_ns: duration,
            },
        ));
    }
    if spans.is_empty() {
        return Err(Error::new(ErrorKind::Empty, "an MPD without a Period"));
    }
    Ok(spans)
}

/// Checks the number of renditions of the earlier periods plus the representations of this period.
///
/// # Errors
/// `TooLarge` if the number exceeds [`REPRESENTATIONS_MAX`].
fn check_representation_count(count: usize) -> Result<()> {
    if count <= REPRESENTATIONS_MAX {
        return Ok(());
    }
    let message = format!("more than {REPRESENTATIONS_MAX} representations");
    Err(Error::new(ErrorKind::TooLarge, message))
}

/// Appends the segment sources of the next period to each rendition. If several renditions continue
/// with the same representation, each further copy of its segments is taken from the budget.
fn join_period(
    title: &mut ParsedManifest,
    found: Vec<ManifestRendition>,
    budget: &mut SegmentBudget,
) -> Result<()> {
    if title.renditions.is_empty() {
        title.renditions = found;
        return Ok(());
    }
    let mut pieces = 0;
    let mut is_joined = vec![false; found.len()];
    for known in &mut title.renditions {
        let next = found
            .iter()
            .zip(&mut is_joined)
            .filter(|(next, _)| next.kind == known.kind)
            .min_by_key(|(next, _)| {
                let same = (next.language != known.language, next.id != known.id);
                (same, next.bandwidth.abs_diff(known.bandwidth))
            });
        if let Some((next, is_joined)) = next {
            if std::mem::replace(is_joined, true) {
                budget.take_segments(count_segments(next))?;
            }
            known
                .segment_sources
                .extend(next.segment_sources.iter().cloned());
        }
        pieces += known.segment_sources.len();
    }
    if pieces > REPRESENTATIONS_MAX * 4 {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "too many representations in too many periods",
        ));
    }
    Ok(())
}

/// Counts the segments of a representation. A source that must be fetched first counts as one
/// segment.
fn count_segments(rendition: &ManifestRendition) -> u64 {
    let counts = rendition.segment_sources.iter().map(|source| match source {
        SegmentListSource::Segments(list) => list.len() as u64,
        SegmentListSource::Playlist(_) | SegmentListSource::Sidx(_) => 1,
    });
    counts.sum()
}
