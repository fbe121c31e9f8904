//! When segments start: `SegmentTimeline`, or one duration for all (5.3.9.6).

use super::super::SEGMENTS_MAX;
use super::super::decimal::NANOS;
use super::super::segments::too_many;
use super::Span;
use super::base::Scope;
use crate::error::{Error, Result};
use crate::time::Time;
use crate::xml::Element;

/// How many more segments may be listed: a bound on the whole MPD.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Default for Budget {
    fn default() -> Budget {
        Budget(SEGMENTS_MAX as u64)
    }
}

impl Budget {
    /// # Errors
    /// `TooLarge` when all of them together are too many.
    pub(super) fn take(&mut self, count: u64) -> Result<()> {
        let left = self.0.checked_sub(count);
        self.0 =
            left.ok_or_else(|| too_many((SEGMENTS_MAX as u64 - self.0).saturating_add(count)))?;
        Ok(())
    }
}

/// One segment on the representation's own timeline, in its ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tick {
    pub(super) time: u64,
    pub(super) duration: u64,
}

/// The segments that `scope` describes.
pub(super) fn ticks(
    scope: &Scope<'_>,
    timescale: u32,
    span: Span,
    budget: &mut Budget,
) -> Result<Vec<Tick>> {
    let offset = scope.number("presentationTimeOffset")?.unwrap_or(0);
    let length = span
        .duration
        .map(|nanos| Time::new(nanos, NANOS).ceil_to(timescale).max(0) as u64);
    if let Some(timeline) = scope.child("SegmentTimeline") {
        let until = length.map(|length| offset.saturating_add(length));
        return listed(timeline, until, budget);
    }
    let Some(duration) = scope.number("duration")? else {
        // One segment, as long as the period.
        budget.take(1)?;
        return Ok(vec![Tick {
            time: offset,
            duration: length.unwrap_or(0),
        }]);
    };
    if duration == 0 {
        return Err(Error::malformed("a segment duration of 0"));
    }
    let first = scope.number("startNumber")?.unwrap_or(1);
    let by_end = scope
        .number("endNumber")?
        .map(|end| end.saturating_sub(first).saturating_add(1));
    let count = by_end.or(length.map(|length| length.div_ceil(duration)));
    let count = count.ok_or_else(|| {
        Error::malformed("segments of one duration, and nothing says how many (a period's duration, or endNumber)")
    })?;
    budget.take(count)?;
    let tick = |n: u64| {
        let past = n.checked_mul(duration)?;
        let left = length.map_or(duration, |length| length.saturating_sub(past));
        Some(Tick {
            time: offset.checked_add(past)?,
            duration: duration.min(left),
        })
    };
    (0..count).map(|n| tick(n).ok_or_else(overflow)).collect()
}

/// `S` elements, with repetitions unrolled.
fn listed(timeline: &Element, until: Option<u64>, budget: &mut Budget) -> Result<Vec<Tick>> {
    let entries: Vec<&Element> = timeline.all("S").collect();
    let mut ticks = Vec::new();
    let mut time = 0_u64;
    for (n, entry) in entries.iter().enumerate() {
        time = entry.number("t")?.unwrap_or(time);
        let duration = entry
            .number("d")?
            .ok_or_else(|| Error::malformed("S without d"))?;
        let next = match entries.get(n + 1) {
            Some(next) => next.number("t")?,
            None => until,
        };
        let count = repeats(entry, time, duration, next)?;
        budget.take(count)?;
        for _ in 0..count {
            ticks.push(Tick { time, duration });
            time = time.checked_add(duration).ok_or_else(overflow)?;
        }
    }
    Ok(ticks)
}

/// How many segments an `S` stands for; a negative `r` means until the next one.
fn repeats(entry: &Element, time: u64, duration: u64, next: Option<u64>) -> Result<u64> {
    let repeat = entry.get("r").map_or(Ok(0), str::parse::<i64>);
    let repeat = repeat.map_err(|_| Error::malformed("S@r is no number"))?;
    if let Ok(repeat) = u64::try_from(repeat) {
        return Ok(repeat.saturating_add(1));
    }
    let next =
        next.ok_or_else(|| Error::malformed("S@r is negative, and nothing says until when"))?;
    if duration == 0 {
        return Err(Error::malformed("S@d is 0 and repeats"));
    }
    Ok(next.saturating_sub(time).div_ceil(duration))
}

fn overflow() -> Error {
    Error::malformed("times run past 64 bits")
}
