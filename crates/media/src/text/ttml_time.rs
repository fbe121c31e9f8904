//! Time expressions of TTML (TTML2, 12.3.1).

use super::timestamp::parse_timestamp;
use crate::xml::XmlElement;

/// Maximum time: 10 000 hours, in milliseconds.
const TIME_MS_MAX: f64 = 36e9;

/// Start and end of an element, in milliseconds. The end is [`i64::MAX`] if the element has no end.
pub(super) type TtmlInterval = (i64, i64);

/// The frame rate and the tick rate of a document.
pub(super) struct TtmlClock {
    /// Frames per second, with the multiplier applied.
    frame_rate: f64,
    /// Ticks per second.
    tick_rate: f64,
}

impl TtmlClock {
    /// Reads `ttp:frameRate`, `ttp:frameRateMultiplier` and `ttp:tickRate`.
    pub(super) fn from_document(root: &XmlElement) -> TtmlClock {
        let number = |name| root.attribute(name).and_then(parse_positive);
        let multiplier = root.attribute("frameRateMultiplier").and_then(|text| {
            let (a, b) = text.split_once([' ', ':'])?;
            Some(parse_positive(a)? / parse_positive(b)?)
        });
        let frame_rate = number("frameRate").unwrap_or(30.0) * multiplier.unwrap_or(1.0);
        TtmlClock {
            frame_rate,
            tick_rate: number("tickRate").unwrap_or(1.0),
        }
    }

    /// Returns whether an element has its own times.
    pub(super) fn is_timed(&self, element: &XmlElement) -> bool {
        ["begin", "end", "dur"]
            .iter()
            .any(|name| element.attribute(name).is_some())
    }

    /// Returns the start and end of an element, in milliseconds. Its times count from the start of
    /// `parent`, and it ends no later than `parent`.
    pub(super) fn resolve_interval(
        &self,
        element: &XmlElement,
        parent: TtmlInterval,
    ) -> TtmlInterval {
        let time = |name| {
            element
                .attribute(name)
                .and_then(|text| self.parse_time(text))
        };
        let start = parent.0.saturating_add(time("begin").unwrap_or(0));
        let start = start.min(TIME_MS_MAX as i64);
        let until = time("end").map(|end| parent.0.saturating_add(end));
        let lasting = time("dur").map(|duration| start.saturating_add(duration));
        let own = until.into_iter().chain(lasting).min();
        let own = own.map(|end| end.min(TIME_MS_MAX as i64));
        (start, own.unwrap_or(parent.1).min(parent.1))
    }

    /// Parses `00:00:01.5`, `00:00:01:12` (12 frames) or `12.5s` and returns milliseconds.
    fn parse_time(&self, text: &str) -> Option<i64> {
        if let Some((clock, frames)) = text
            .rsplit_once(':')
            .filter(|(clock, _)| clock.matches(':').count() == 2)
        {
            let frames = parse_positive(frames).unwrap_or(0.0) / self.frame_rate * 1000.0;
            return Some(parse_timestamp(clock)? + round_ms(frames)?);
        }
        if text.contains(':') {
            return parse_timestamp(text);
        }
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let ms_per_unit = match &text[digits.len()..] {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1000.0,
            "ms" => 1.0,
            "f" => 1000.0 / self.frame_rate,
            "t" => 1000.0 / self.tick_rate,
            _ => return None,
        };
        round_ms(digits.parse::<f64>().ok()? * ms_per_unit)
    }
}

fn round_ms(ms: f64) -> Option<i64> {
    (0.0..=TIME_MS_MAX).contains(&ms).then(|| ms.round() as i64)
}

fn parse_positive(text: &str) -> Option<f64> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number > 0.0)
}
