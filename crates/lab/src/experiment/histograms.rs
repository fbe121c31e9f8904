//! HDR histograms that sinks report. A histogram is encoded in the V2 format of HdrHistogram, as
//! base64 text. It is stored alone or in an interval log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Size limit of an encoded histogram, in bytes.
const HISTOGRAM_MAX: usize = 8 << 20;
/// Size limit of an interval log, in bytes.
const LOG_MAX: u64 = 64 << 20;

/// The reason why a histogram cannot be read, written or added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistogramError {
    #[error("invalid histogram: longer than {HISTOGRAM_MAX} bytes")]
    TooLong,
    #[error("invalid histogram: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("invalid histogram: {0}")]
    Decode(#[from] hdrhistogram::serialization::DeserializeError),
    #[error("cannot encode the histogram: {0}")]
    Encode(#[from] hdrhistogram::serialization::V2DeflateSerializeError),
    #[error("cannot add the histograms: {0}")]
    Add(#[from] hdrhistogram::errors::AdditionError),
    #[error("invalid HDR interval log: {0}")]
    Log(String),
    #[error("the log has no histogram with the tag {wanted}; its tags are {known:?}")]
    NoTag {
        wanted: String,
        known: BTreeSet<String>,
    },
    #[error("the log has several tags: {0:?}; write tag = one of them, or a pattern")]
    SeveralTags(BTreeSet<String>),
    #[error("log longer than {LOG_MAX} bytes")]
    LogTooLong,
    #[error("{0}")]
    File(#[from] std::io::Error),
}

/// Adds the counts of a histogram to a sum.
pub(crate) fn add_histogram(
    sum: &mut Option<Histogram<u64>>,
    one: Histogram<u64>,
) -> Result<(), HistogramError> {
    match sum {
        None => *sum = Some(one),
        Some(sum) => {
            sum.auto(true);
            sum.add(&one)?;
        }
    }
    Ok(())
}

/// Encodes a histogram, so that another process can merge it with others.
pub(super) fn encode_histogram(histogram: &Histogram<u64>) -> Result<String, HistogramError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

/// Decodes a histogram, which another program may have encoded.
pub(crate) fn decode_histogram(text: &str) -> Result<Histogram<u64>, HistogramError> {
    if text.len() > HISTOGRAM_MAX {
        return Err(HistogramError::TooLong);
    }
    let bytes = STANDARD.decode(text)?;
    Ok(Deserializer::new().deserialize(&mut bytes.as_slice())?)
}

/// Reads an interval log from a file. Adds up the histograms whose tag matches the pattern `tags`.
///
/// # Errors
/// The file cannot be read, is not an interval log, or has no matching tag.
pub(super) fn read_log_histogram(
    path: &Path,
    tags: &str,
) -> Result<Histogram<u64>, HistogramError> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LOG_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LOG_MAX {
        return Err(HistogramError::LogTooLong);
    }
    sum_log_histograms(&bytes, Some(tags))
}

/// From an interval log, adds up the histograms with a tag that matches `pattern`. Without a
/// pattern, all histograms of the log must have the same tag.
///
/// # Errors
/// The text is not an interval log, no tag matches, or there are several tags but no pattern.
pub(super) fn sum_log_histograms(
    text: &[u8],
    pattern: Option<&str>,
) -> Result<Histogram<u64>, HistogramError> {
    let mut sum = None;
    let mut known = BTreeSet::new();
    for entry in IntervalLogIterator::new(text) {
        let entry = entry.map_err(|error| HistogramError::Log(format!("{error:?}")))?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        let tag = interval.tag().map_or("", |tag| tag.as_str());
        known.insert(tag.to_owned());
        if pattern.is_none_or(|pattern| matches_pattern(pattern, tag)) {
            add_histogram(&mut sum, decode_histogram(interval.encoded_histogram())?)?;
        }
    }
    match (sum, pattern) {
        (Some(_), None) if known.len() > 1 => Err(HistogramError::SeveralTags(known)),
        (Some(sum), _) => Ok(sum),
        (None, _) => Err(HistogramError::NoTag {
            wanted: pattern.unwrap_or("*").to_owned(),
            known,
        }),
    }
}

/// Returns whether a text matches a pattern, in which `*` matches any text.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
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
    fn stars_match_anything() {
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
            assert_eq!(matches_pattern(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn malformed_histograms_are_refused() {
        for text in ["", "AAAA", "{", "HISTFAAAAA=="] {
            assert!(decode_histogram(text).is_err(), "{text}");
        }
    }
}
