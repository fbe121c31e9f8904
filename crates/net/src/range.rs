//! Range requests (RFC 9110 section 14).

use std::ops::Range;

/// The most ranges served in one answer; a request for more gets the whole.
pub const RANGES_MAX: usize = 16;

/// What a Range header asks of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: no header, another unit, a malformed header, or an abusive one.
    Whole,
    /// None of the ranges lies within it: 416.
    Unsatisfiable,
    /// These bytes, in the order asked for; never empty, each non-empty and within the length.
    Ranges(Vec<Range<u64>>),
}

/// Reads a Range header's value for a representation of `len` bytes.
pub fn parse(_value: &str, _len: u64) -> Wanted {
    Wanted::Whole
}
