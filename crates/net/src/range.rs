//! Range requests (RFC 9110 section 14).
//!
//! The standard lets the server decide some cases. This module serves the whole representation in
//! these cases:
//!
//! - a malformed header
//! - a unit other than bytes
//! - more than [`RANGES_MAX`] ranges
//! - overlapping ranges that together are longer than the representation
//!
//! Ranges are neither merged nor reordered.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::conditional::{self, Validators};

// The fuzz target compiles this file as a module of another crate, so the path of the submodule
// must be explicit.
#[path = "range/multipart.rs"]
mod multipart;

pub use multipart::Multipart;

/// Limit on the ranges in one response. A request for more ranges gets the whole representation.
pub const RANGES_MAX: usize = 16;

/// The ranges that a request selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedRanges {
    /// The whole representation.
    Whole,
    /// No range overlaps the representation, so the response is 416.
    Unsatisfiable,
    /// The byte ranges in the requested order. The list contains at least one range, and each range
    /// is within the representation and not empty.
    Ranges(Vec<Range<u64>>),
}

/// Returns the ranges that a request selects from a representation of `len` bytes.
///
/// Ranges apply only to `GET` (section 14.2), and only if If-Range is absent or matches the
/// representation.
pub fn requested_ranges(
    method: &Method,
    headers: &HeaderMap,
    ours: &Validators,
    len: u64,
) -> RequestedRanges {
    // Comparing all header names costs less than a look-up in the map, and most requests have no
    // range.
    if !headers.keys().any(|name| *name == header::RANGE) {
        return RequestedRanges::Whole;
    }
    let mut lines = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (lines.next(), lines.next()) else {
        return RequestedRanges::Whole;
    };
    if method != Method::GET || !conditional::matches_if_range(headers, ours) {
        return RequestedRanges::Whole;
    }
    value
        .to_str()
        .map_or(RequestedRanges::Whole, |text| parse_ranges(text, len))
}

/// Parses the value of a Range header for a representation of `len` bytes.
pub fn parse_ranges(value: &str, len: u64) -> RequestedRanges {
    let Some((unit, set)) = value.split_once('=') else {
        return RequestedRanges::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRanges::Whole;
    }
    let mut ranges = Vec::new();
    let mut count = 0;
    for spec in set.split(',').map(|spec| spec.trim_matches([' ', '\t'])) {
        if spec.is_empty() {
            continue;
        }
        count += 1;
        match parse_range_spec(spec, len) {
            _ if count > RANGES_MAX => return RequestedRanges::Whole,
            ResolvedRangeSpec::Malformed => return RequestedRanges::Whole,
            ResolvedRangeSpec::Outside => {}
            ResolvedRangeSpec::Within(range) => ranges.push(range),
        }
    }
    check_ranges(ranges, count, len)
}

/// Applies the rules that concern all ranges of a header together.
fn check_ranges(ranges: Vec<Range<u64>>, count: usize, len: u64) -> RequestedRanges {
    let total = ranges
        .iter()
        .try_fold(0u64, |sum, range| sum.checked_add(range.end - range.start));
    let longer = total.is_none_or(|total| total > len);
    // Only suffix ranges of an empty representation contain no bytes. Content-Range cannot express
    // an empty range.
    if count == 0 || longer || (total == Some(0) && !ranges.is_empty()) {
        RequestedRanges::Whole
    } else if ranges.is_empty() {
        RequestedRanges::Unsatisfiable
    } else {
        RequestedRanges::Ranges(ranges)
    }
}

enum ResolvedRangeSpec {
    Malformed,
    Outside,
    Within(Range<u64>),
}

/// Parses one range of the form `first-last`, `first-` or `-suffix` (section 14.1.1).
fn parse_range_spec(spec: &str, len: u64) -> ResolvedRangeSpec {
    let Some((first, last)) = spec.split_once('-') else {
        return ResolvedRangeSpec::Malformed;
    };
    match (parse_number(first), parse_number(last)) {
        (None, Some(0)) if first.is_empty() => ResolvedRangeSpec::Outside,
        (None, Some(suffix)) if first.is_empty() => {
            ResolvedRangeSpec::Within(len.saturating_sub(suffix)..len)
        }
        (Some(first), None) if last.is_empty() => clip_range(first, u64::MAX, len),
        (Some(first), Some(last)) if first <= last => clip_range(first, last, len),
        _ => ResolvedRangeSpec::Malformed,
    }
}

fn clip_range(first: u64, last: u64, len: u64) -> ResolvedRangeSpec {
    if first >= len {
        ResolvedRangeSpec::Outside
    } else {
        ResolvedRangeSpec::Within(first..last.saturating_add(1).min(len))
    }
}

/// Parses decimal digits. A number that exceeds 64 bits becomes the largest 64-bit number.
fn parse_number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Returns `bytes first-last/len`, the Content-Range of a 206 response with one range.
pub fn content_range(range: &Range<u64>, len: u64) -> HeaderValue {
    into_header_value(format_content_range(range, len))
}

fn format_content_range(range: &Range<u64>, len: u64) -> String {
    let last = range.end.saturating_sub(1);
    format!("bytes {}-{last}/{len}", range.start)
}

/// Returns `bytes */len`, the Content-Range of a 416 response.
pub fn content_range_unsatisfied(len: u64) -> HeaderValue {
    into_header_value(format!("bytes */{len}"))
}

/// Converts text to a header value. All callers pass printable ASCII, so the conversion cannot
/// fail.
fn into_header_value(text: String) -> HeaderValue {
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// Returns the bytes of `range` from consecutive pieces, without copying them.
pub fn slice_pieces(pieces: &[Bytes], range: &Range<u64>) -> Vec<Bytes> {
    let mut start = 0u64;
    let mut out = Vec::new();
    for piece in pieces {
        let end = start + piece.len() as u64;
        let (from, to) = (range.start.clamp(start, end), range.end.clamp(start, end));
        if from < to {
            // Both differences are at most the length of the piece, so they fit into a usize.
            out.push(piece.slice((from - start) as usize..(to - start) as usize));
        }
        start = end;
    }
    out
}

#[cfg(test)]
mod tests;
