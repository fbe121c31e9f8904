//! A segment as it will be sent: head bytes that we make, source ranges, and the exact length.

use std::ops::Range;

/// How to make one response. Known before any media byte is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Which of the presentation's files the ranges are of.
    pub file: usize,
    /// Bytes that go first: styp, moof and the header of mdat.
    pub head: Vec<u8>,
    /// Byte ranges of the file that follow, in order; touching ones are merged.
    pub ranges: Vec<Range<u64>>,
    /// Length of the whole, in bytes.
    pub len: u64,
}
