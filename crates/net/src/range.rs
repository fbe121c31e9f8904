//! Range requests (RFC 9110 section 14): what is asked, and how the answer says it.
//!
//! Where the standard leaves a choice: a malformed header, another unit, more than [`RANGES_MAX`]
//! ranges, or ranges that together are longer than the whole (they overlap) are ignored, and the
//! whole is served. Ranges are not merged or reordered.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::conditional::{self, Validators};

// Said so that the fuzz target finds it too, which takes this file alone.
#[path = "range/multipart.rs"]
mod multipart;

pub use multipart::Multipart;

/// The most ranges served in one answer; a request for more gets the whole.
pub const RANGES_MAX: usize = 16;

/// What a Range header asks of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// None of the ranges lies within it: 416.
    Unsatisfiable,
    /// These bytes, in the order asked for: at least one range, none empty, all within the length.
    Ranges(Vec<Range<u64>>),
}

/// What a request wants of a representation of `len` bytes. Only `GET` has ranges (section 14.2),
/// and only while If-Range, if given, names the representation we have.
pub fn wanted(method: &Method, headers: &HeaderMap, ours: &Validators, len: u64) -> Wanted {
    let mut lines = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (lines.next(), lines.next()) else {
        return Wanted::Whole;
    };
    if method != Method::GET || !conditional::range_holds(headers, ours) {
        return Wanted::Whole;
    }
    value
        .to_str()
        .map_or(Wanted::Whole, |text| parse(text, len))
}

/// Reads a Range header's value for a representation of `len` bytes.
pub fn parse(value: &str, len: u64) -> Wanted {
    let Some((unit, set)) = value.split_once('=') else {
        return Wanted::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::Whole;
    }
    let mut ranges = Vec::new();
    let mut count = 0;
    for spec in set.split(',').map(|spec| spec.trim_matches([' ', '\t'])) {
        if spec.is_empty() {
            continue;
        }
        count += 1;
        match parse_one(spec, len) {
            _ if count > RANGES_MAX => return Wanted::Whole,
            One::Malformed => return Wanted::Whole,
            One::Outside => {}
            One::Within(range) => ranges.push(range),
        }
    }
    judge(ranges, count, len)
}

/// What all of a header's ranges amount to.
fn judge(ranges: Vec<Range<u64>>, count: usize, len: u64) -> Wanted {
    let total = ranges
        .iter()
        .try_fold(0u64, |sum, range| sum.checked_add(range.end - range.start));
    let longer = total.is_none_or(|total| total > len);
    // Total 0 with a range left: a suffix of nothing, which no Content-Range can express.
    if count == 0 || longer || (total == Some(0) && !ranges.is_empty()) {
        Wanted::Whole
    } else if ranges.is_empty() {
        Wanted::Unsatisfiable
    } else {
        Wanted::Ranges(ranges)
    }
}

enum One {
    Malformed,
    Outside,
    Within(Range<u64>),
}

/// One `first-last`, `first-` or `-suffix` (section 14.1.1).
fn parse_one(spec: &str, len: u64) -> One {
    let Some((first, last)) = spec.split_once('-') else {
        return One::Malformed;
    };
    match (number(first), number(last)) {
        (None, Some(0)) if first.is_empty() => One::Outside,
        (None, Some(suffix)) if first.is_empty() => One::Within(len.saturating_sub(suffix)..len),
        (Some(first), None) if last.is_empty() => within(first, u64::MAX, len),
        (Some(first), Some(last)) if first <= last => within(first, last, len),
        _ => One::Malformed,
    }
}

fn within(first: u64, last: u64, len: u64) -> One {
    if first >= len {
        One::Outside
    } else {
        One::Within(first..last.saturating_add(1).min(len))
    }
}

/// Decimal digits only; what exceeds 64 bits is as good as endless.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// `bytes first-last/len`, for a 206 with one range.
pub fn content_range(range: &Range<u64>, len: u64) -> HeaderValue {
    let last = range.end.saturating_sub(1);
    text_value(format!("bytes {}-{last}/{len}", range.start))
}

/// `bytes */len`, for a 416.
pub fn content_range_unsatisfied(len: u64) -> HeaderValue {
    text_value(format!("bytes */{len}"))
}

/// Text of our own making, visible ASCII by construction.
fn text_value(text: String) -> HeaderValue {
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// The bytes of `range` out of pieces that lie one after the other, uncopied.
pub fn slice(pieces: &[Bytes], range: &Range<u64>) -> Vec<Bytes> {
    let mut start = 0u64;
    let mut out = Vec::new();
    for piece in pieces {
        let end = start + piece.len() as u64;
        let (from, to) = (range.start.clamp(start, end), range.end.clamp(start, end));
        if from < to {
            // Both lie within the piece, whose length is a usize.
            out.push(piece.slice((from - start) as usize..(to - start) as usize));
        }
        start = end;
    }
    out
}

#[cfg(test)]
mod tests;
