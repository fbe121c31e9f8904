//! HDR histograms that sinks report. A histogram is encoded in the V2 format of HdrHistogram, as
//! base64 text. It is stored alone or in an interval log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::serialization::{
    DeserializeError, Deserializer, Serializer, V2DeflateSerializer,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Size limit of an encoded histogram, in bytes.
const HISTOGRAM_MAX: usize = 8 << 20;
/// Size limit of a decompressed histogram, in bytes. A histogram with the largest range and
/// precision has about six million counts of up to nine bytes.
const INFLATED_MAX: usize = 64 << 20;
/// The first four bytes of a compressed histogram.
const COMPRESSED_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
/// Size limit of an interval log, in bytes.
const LOG_MAX: u64 = 64 << 20;

/// The reason why a histogram cannot be read, written or added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistogramError {
    #[error("invalid histogram: longer than {HISTOGRAM_MAX} bytes")]
    TooLong,
    #[error("invalid histogram: longer than {INFLATED_MAX} bytes when decompressed")]
    InflatedTooLong,
    #[error("invalid histogram: it states {stated} bytes and has {present}")]
    Truncated { stated: usize, present: usize },
    #[error("invalid histogram: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("invalid histogram: {0}")]
    Decode(#[from] DeserializeError),
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
    let mut bytes = STANDARD.decode(text)?;
    if bytes.starts_with(&COMPRESSED_COOKIE) {
        bytes = inflate_histogram(&bytes)?;
    }
    check_stated_length(&bytes)?;
    Ok(Deserializer::new().deserialize(&mut bytes.as_slice())?)
}

/// Decompresses a histogram. Its header has a cookie and a length of four bytes each.
fn inflate_histogram(bytes: &[u8]) -> Result<Vec<u8>, HistogramError> {
    let compressed = bytes.get(8..).unwrap_or_default();
    let mut inflated = Vec::new();
    ZlibDecoder::new(compressed)
        .take(INFLATED_MAX as u64 + 1)
        .read_to_end(&mut inflated)
        .map_err(DeserializeError::IoError)?;
    if inflated.len() > INFLATED_MAX {
        return Err(HistogramError::InflatedTooLong);
    }
    // The decoder would decompress a compressed histogram within this histogram.
    match inflated.starts_with(&COMPRESSED_COOKIE) {
        true => Err(DeserializeError::InvalidCookie.into()),
        false => Ok(inflated),
    }
}

/// Checks the length in the header of a decompressed histogram. The decoder allocates this length
/// before it reads the counts.
fn check_stated_length(bytes: &[u8]) -> Result<(), HistogramError> {
    let field = bytes.get(4..8).and_then(|field| field.try_into().ok());
    let stated = field.map_or(0, u32::from_be_bytes) as usize;
    match stated > bytes.len() {
        true => Err(HistogramError::Truncated {
            stated,
            present: bytes.len(),
        }),
        false => Ok(()),
    }
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
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::V2Serializer;
    use std::io::Write as _;

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

    /// Encodes a compressed histogram from its decompressed bytes.
    fn compress_histogram(bytes: &[u8]) -> Vec<u8> {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(bytes).unwrap();
        let zlib = zlib.finish().unwrap();
        let len = u32::try_from(zlib.len()).unwrap().to_be_bytes();
        [&COMPRESSED_COOKIE[..], &len, &zlib].concat()
    }

    #[test]
    fn a_histogram_that_states_more_bytes_than_it_has_is_refused() {
        let mut plain = Vec::new();
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record(7).unwrap();
        V2Serializer::new()
            .serialize(&histogram, &mut plain)
            .unwrap();
        for bytes in [plain.clone(), compress_histogram(&plain)] {
            assert_eq!(decode_histogram(&STANDARD.encode(bytes)).unwrap().len(), 1);
        }
        plain[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        for bytes in [plain.clone(), compress_histogram(&plain)] {
            let error = decode_histogram(&STANDARD.encode(bytes)).unwrap_err();
            assert!(matches!(error, HistogramError::Truncated { .. }), "{error}");
        }
        let nested = compress_histogram(&compress_histogram(&plain));
        let error = decode_histogram(&STANDARD.encode(nested)).unwrap_err();
        assert!(matches!(error, HistogramError::Decode(_)), "{error}");
    }

    #[test]
    fn a_histogram_cannot_inflate_without_limit() {
        let bytes = compress_histogram(&vec![0; INFLATED_MAX + 1]);
        let error = decode_histogram(&STANDARD.encode(bytes)).unwrap_err();
        assert!(matches!(error, HistogramError::InflatedTooLong), "{error}");
    }
}
