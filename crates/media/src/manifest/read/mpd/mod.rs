//! DASH MPDs (ISO/IEC 23009-1), read.

mod base;
mod period;
mod representation;
mod timeline;

use super::decimal;
use super::{MANIFEST_BYTES_MAX, Rendition, Title};
use crate::error::{Error, Kind, Result};
use crate::xml::{self, Element};
use url::Url;

/// The most representations of one MPD, all periods together.
const REPRESENTATIONS_MAX: usize = 4096;

/// Reads an MPD that was fetched from `url` (after redirects). Periods are joined: a
/// representation goes on in the next period as the one of its kind, language and id, or else as
/// that of the nearest bandwidth.
///
/// # Errors
/// `Malformed` with the element where it is no MPD, `TooLarge` over a bound, `Empty` if it names
/// nothing that plays.
pub fn read(url: &Url, bytes: &[u8]) -> Result<Title> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        let what = format!("an MPD of more than {MANIFEST_BYTES_MAX} bytes");
        return Err(Error::new(Kind::TooLarge, what));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Error::malformed("an MPD not in UTF-8"))?;
    let mpd = xml::parse(text)?;
    if mpd.name != "MPD" {
        let what = format!(
            "an MPD is expected, this is <{}>",
            super::address::short(&mpd.name)
        );
        return Err(Error::malformed(what));
    }
    let mut title = Title {
        live: mpd.get("type") == Some("dynamic"),
        ..Title::default()
    };
    let scope = base::Scope::new(url).enter(&mpd)?;
    let mut budget = timeline::Budget::default();
    for (period, span) in spans(&mpd)? {
        if period.get("href").is_some() {
            title.note("periods elsewhere (xlink) are ignored");
            continue;
        }
        let found = period::read(&mut title, &scope, period, span, &mut budget)?;
        join(&mut title, found)?;
    }
    if title.renditions.is_empty() {
        return Err(Error::new(
            Kind::Empty,
            "an MPD without a representation that plays",
        ));
    }
    Ok(title)
}

/// When a period starts, and how long it is where that can be known, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: i64,
    duration: Option<i64>,
}

/// Periods with their times (5.3.2.1): what is not said follows from the neighbours.
fn spans(mpd: &Element) -> Result<Vec<(&Element, Span)>> {
    let total = mpd
        .get("mediaPresentationDuration")
        .and_then(decimal::duration);
    let periods: Vec<&Element> = mpd.all("Period").collect();
    let mut spans = Vec::with_capacity(periods.len());
    let mut next_start = 0;
    for (n, period) in periods.iter().enumerate() {
        let start = period
            .get("start")
            .and_then(decimal::duration)
            .unwrap_or(next_start);
        let following = periods.get(n + 1).and_then(|next| next.get("start"));
        let until = match following.and_then(decimal::duration) {
            None if n + 1 == periods.len() => total,
            until => until,
        };
        let duration = period.get("duration").and_then(decimal::duration);
        let duration = duration.or(until.map(|until| until.saturating_sub(start).max(0)));
        next_start = start.saturating_add(duration.unwrap_or(0));
        spans.push((*period, Span { start, duration }));
    }
    if spans.is_empty() {
        return Err(Error::new(Kind::Empty, "an MPD without a Period"));
    }
    Ok(spans)
}

/// Lets each rendition go on with what a further period has for it.
fn join(title: &mut Title, found: Vec<Rendition>) -> Result<()> {
    if title.renditions.len() + found.len() > REPRESENTATIONS_MAX {
        let what = format!("more than {REPRESENTATIONS_MAX} representations");
        return Err(Error::new(Kind::TooLarge, what));
    }
    if title.renditions.is_empty() {
        title.renditions = found;
        return Ok(());
    }
    let mut pieces = 0;
    for known in &mut title.renditions {
        let next = found
            .iter()
            .filter(|next| next.kind == known.kind)
            .min_by_key(|next| {
                let same = (next.language != known.language, next.id != known.id);
                (same, next.bandwidth.abs_diff(known.bandwidth))
            });
        if let Some(next) = next {
            known.pieces.extend(next.pieces.iter().cloned());
        }
        pieces += known.pieces.len();
    }
    if pieces > REPRESENTATIONS_MAX * 4 {
        return Err(Error::new(
            Kind::TooLarge,
            "too many representations in too many periods",
        ));
    }
    Ok(())
}
