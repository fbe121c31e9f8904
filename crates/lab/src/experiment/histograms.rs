//! HDR histograms as sinks write them: V2 in base64, alone or in interval logs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most bytes of a histogram as it is written.
const HISTOGRAM_MAX: usize = 8 << 20;
/// Most bytes of a log of them.
const LOG_MAX: u64 = 64 << 20;

/// Adds a histogram's counts.
pub(crate) fn add(sum: &mut Option<Histogram<u64>>, one: Histogram<u64>) -> Result<(), String> {
    match sum {
        None => *sum = Some(one),
        Some(sum) => {
            sum.auto(true);
            sum.add(&one)
                .map_err(|error| format!("histograms do not add up: {error}"))?;
        }
    }
    Ok(())
}

/// As it is sent to whoever adds parts up.
pub(super) fn encode(histogram: &Histogram<u64>) -> Result<String, String> {
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    written.map_err(|error| format!("no histogram: {error}"))?;
    Ok(STANDARD.encode(bytes))
}

/// The inverse of [`encode`]; those of other programs too.
pub(crate) fn decode(text: &str) -> Result<Histogram<u64>, String> {
    let wrong = |what: &dyn std::fmt::Display| format!("no histogram: {what}");
    if text.len() > HISTOGRAM_MAX {
        return Err(wrong(&format!("longer than {HISTOGRAM_MAX} bytes")));
    }
    let bytes = STANDARD.decode(text).map_err(|error| wrong(&error))?;
    let read = Deserializer::new().deserialize(&mut bytes.as_slice());
    read.map_err(|error| wrong(&error))
}

/// All of a log's histograms with such a tag.
pub(super) fn read_log(path: &Path, tags: &str) -> Result<Histogram<u64>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(LOG_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LOG_MAX {
        return Err(format!("longer than {LOG_MAX} bytes"));
    }
    let mut sum = None;
    for entry in IntervalLogIterator::new(&bytes) {
        let entry = entry.map_err(|error| format!("no HDR interval log: {error:?}"))?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        if matches(tags, interval.tag().map_or("", |tag| tag.as_str())) {
            add(&mut sum, decode(interval.encoded_histogram())?)?;
        }
    }
    sum.ok_or_else(|| format!("it has no histogram with the tag {tags}"))
}

/// Whether a text is as a pattern says; `*` stands for anything.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces: Vec<&str> = pattern.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    let Some((first, middle)) = pieces.split_first() else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    for piece in middle {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("*", "step1/segment/due", true),
            ("*/due", "step1/segment/due", true),
            ("*/due", "step1/segment/due2", false),
            ("step*/seg*/due", "step1/segment/due", true),
            ("step*/init/*", "step1/segment/due", false),
            ("a*a", "a", false),
            ("due", "due", true),
            ("due", "dues", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn hostile_histograms_are_refused() {
        for text in ["", "AAAA", "{", "HISTFAAAAA=="] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
