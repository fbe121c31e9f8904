//! Start times and durations of segments, from a `SegmentTimeline` or from one duration for all
//! segments (5.3.9.6).

use super::super::SEGMENTS_MAX;
use super::super::decimal::NANOS_PER_SECOND;
use super::super::segment_list::too_many_segments_error;
use super::inherited_values::ElementScope;
use super::period_span::PeriodSpan;
use crate::error::{Error, Result};
use crate::time::Time;
use crate::xml::XmlElement;

/// Number of segments that the rest of the MPD may still list. The limit applies to the whole MPD.
#[derive(Debug)]
pub(super) struct SegmentBudget(u64);

impl Default for SegmentBudget {
    fn default() -> SegmentBudget {
        SegmentBudget(SEGMENTS_MAX as u64)
    }
}

impl SegmentBudget {
    /// Takes `count` segments from the budget.
    ///
    /// # Errors
    /// `TooLarge` if the segments of the whole MPD exceed [`SEGMENTS_MAX`].
    pub(super) fn take_segments(&mut self, count: u64) -> Result<()> {
        let left = self.0.checked_sub(count);
        self.0 = left.ok_or_else(|| {
            too_many_segments_error((SEGMENTS_MAX as u64 - self.0).saturating_add(count))
        })?;
        Ok(())
    }
}

/// A segment on the representation's own timeline, in ticks of the representation.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentTiming {
    pub(super) time: u64,
    pub(super) duration: u64,
}

/// Returns the segments that `scope` describes.
pub(super) fn list_segment_timings(
    scope: &ElementScope<'_>,
    timescale: u32,
    span: PeriodSpan,
    budget: &mut SegmentBudget,
) -> Result<Vec<SegmentTiming>> {
    let offset = scope
        .parse_u64_attribute("presentationTimeOffset")?
        .unwrap_or(0);
    let length = span
        .duration_ns
        .map(|nanos| Time::new(nanos, NANOS_PER_SECOND).ceil_to(timescale).max(0) as u64);
    if let Some(timeline) = scope.child_element("SegmentTimeline") {
        let until = length.map(|length| offset.saturating_add(length));
        return expand_entries(timeline, until, budget);
    }
    let Some(duration) = scope.parse_u64_attribute("duration")? else {
        // Without a duration, one segment covers the whole period.
        budget.take_segments(1)?;
        return Ok(vec![SegmentTiming {
            time: offset,
            duration: length.unwrap_or(0),
        }]);
    };
    if duration == 0 {
        return Err(Error::malformed("a segment duration of 0"));
    }
    let first = scope.parse_u64_attribute("startNumber")?.unwrap_or(1);
    let by_end = scope
        .parse_u64_attribute("endNumber")?
        .map(|end| end.saturating_sub(first).saturating_add(1));
    let count = by_end.or(length.map(|length| length.div_ceil(duration)));
    let count = count.ok_or_else(|| {
        Error::malformed("segments of one duration, but their number is unknown; add a period duration or endNumber")
    })?;
    budget.take_segments(count)?;
    let tick = |n: u64| {
        let past = n.checked_mul(duration)?;
        let left = length.map_or(duration, |length| length.saturating_sub(past));
        Some(SegmentTiming {
            time: offset.checked_add(past)?,
            duration: duration.min(left),
        })
    };
    (0..count)
        .map(|n| tick(n).ok_or_else(overflow_error))
        .collect()
}

/// Expands `S` elements to segments, including the repetitions of `S@r`.
fn expand_entries(
    timeline: &XmlElement,
    until: Option<u64>,
    budget: &mut SegmentBudget,
) -> Result<Vec<SegmentTiming>> {
    let entries: Vec<&XmlElement> = timeline.children_named("S").collect();
    let mut ticks = Vec::new();
    let mut time = 0_u64;
    for (n, entry) in entries.iter().enumerate() {
        time = entry.parse_u64_attribute("t")?.unwrap_or(time);
        let duration = entry
            .parse_u64_attribute("d")?
            .ok_or_else(|| Error::malformed("S without d"))?;
        let next = match entries.get(n + 1) {
            Some(next) => next.parse_u64_attribute("t")?,
            None => until,
        };
        let count = count_entry_segments(entry, time, duration, next)?;
        budget.take_segments(count)?;
        for _ in 0..count {
            ticks.push(SegmentTiming { time, duration });
            time = time.checked_add(duration).ok_or_else(overflow_error)?;
        }
    }
    Ok(ticks)
}

/// Returns the number of segments of an `S` element. If `S@r` is negative, the segment repeats
/// until the next `S` element or the end of the period.
fn count_entry_segments(
    entry: &XmlElement,
    time: u64,
    duration: u64,
    next: Option<u64>,
) -> Result<u64> {
    let repeat = entry.attribute("r").map_or(Ok(0), str::parse::<i64>);
    let repeat = repeat.map_err(|_| Error::malformed("S@r is not a number"))?;
    if let Ok(repeat) = u64::try_from(repeat) {
        return Ok(repeat.saturating_add(1));
    }
    let next = next.ok_or_else(|| {
        Error::malformed(
            "S@r is negative, but the next start time and the period's end are unknown",
        )
    })?;
    if duration == 0 {
        return Err(Error::malformed("S@d is 0 and repeats"));
    }
    Ok(next.saturating_sub(time).div_ceil(duration))
}

fn overflow_error() -> Error {
    Error::malformed("times exceed 64 bits")
}
