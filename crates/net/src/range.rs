//! Range requests (RFC 9110 section 14).
//!
//! The standard leaves some choices. This module serves the whole representation for a malformed
//! header, for another unit, for more than [`RANGES_MAX`] ranges, and for overlapping ranges that
//! are together longer than the representation. It neither merges nor reorders ranges.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::conditional::{self, Validators};

// The path is explicit because the fuzz target includes this file alone.
#[path = "range/multipart.rs"]
mod multipart;

pub use multipart::Multipart;

/// The most ranges in one response; a request for more gets the whole representation.
pub const RANGES_MAX: usize = 16;

/// The ranges that a request selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedRanges {
    /// The whole representation.
    Whole,
    /// No range overlaps the representation: 416.
    Unsatisfiable,
    /// These byte ranges, in the requested order: at least one, none empty, all within the length.
    Ranges(Vec<Range<u64>>),
}

/// Returns the ranges that a request selects from a representation of `len` bytes.
///
/// Only `GET` has ranges (section 14.2), and only when If-Range is absent or matches the
/// representation.
pub fn requested_ranges(
    method: &Method,
    headers: &HeaderMap,
    ours: &Validators,
    len: u64,
) -> RequestedRanges {
    // A pass over the names costs less than the look-up, and most requests have no range.
    if !headers.keys().any(|name| *name == header::RANGE) {
        return RequestedRanges::Whole;
    }
    let mut lines = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (lines.next(), lines.next()) else {
        return RequestedRanges::Whole;
    };
    if method != Method::GET || !conditional::range_holds(headers, ours) {
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
        match parse_one(spec, len) {
            _ if count > RANGES_MAX => return RequestedRanges::Whole,
            ParsedRange::Malformed => return RequestedRanges::Whole,
            ParsedRange::Outside => {}
            ParsedRange::Within(range) => ranges.push(range),
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
    // If ranges remain but have a total of 0 bytes, they are suffixes of an empty representation,
    // which Content-Range cannot express.
    if count == 0 || longer || (total == Some(0) && !ranges.is_empty()) {
        RequestedRanges::Whole
    } else if ranges.is_empty() {
        RequestedRanges::Unsatisfiable
    } else {
        RequestedRanges::Ranges(ranges)
    }
}

enum ParsedRange {
    Malformed,
    Outside,
    Within(Range<u64>),
}

/// Parses one `first-last`, `first-` or `-suffix` (section 14.1.1).
fn parse_one(spec: &str, len: u64) -> ParsedRange {
    let Some((first, last)) = spec.split_once('-') else {
        return ParsedRange::Malformed;
    };
    match (parse_number(first), parse_number(last)) {
        (None, Some(0)) if first.is_empty() => ParsedRange::Outside,
        (None, Some(suffix)) if first.is_empty() => {
            ParsedRange::Within(len.saturating_sub(suffix)..len)
        }
        (Some(first), None) if last.is_empty() => clip_range(first, u64::MAX, len),
        (Some(first), Some(last)) if first <= last => clip_range(first, last, len),
        _ => ParsedRange::Malformed,
    }
}

fn clip_range(first: u64, last: u64, len: u64) -> ParsedRange {
    if first >= len {
        ParsedRange::Outside
    } else {
        ParsedRange::Within(first..last.saturating_add(1).min(len))
    }
}

/// Parses decimal digits. A number above 64 bits counts as the largest one.
fn parse_number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Returns `bytes first-last/len`, for a 206 with one range.
pub fn content_range(range: &Range<u64>, len: u64) -> HeaderValue {
    let last = range.end.saturating_sub(1);
    text_value(format!("bytes {}-{last}/{len}", range.start))
}

/// Returns `bytes */len`, for a 416.
pub fn content_range_unsatisfied(len: u64) -> HeaderValue {
    text_value(format!("bytes */{len}"))
}

/// Converts text that is visible ASCII by construction.
fn text_value(text: String) -> HeaderValue {
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
            // Both are within the piece, whose length is a usize.
            out.push(piece.slice((from - start) as usize..(to - start) as usize));
        }
        start = end;
    }
    out
}

#[cfg(test)]
mod tests;
