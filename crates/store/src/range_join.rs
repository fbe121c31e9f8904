//! Joins byte ranges that are close together, so that one read fetches several ranges.
//!
//! A segment of an interleaved film consists of many short ranges, with bytes of other tracks
//! between the ranges. For a remote object, another request costs more than receiving many unneeded
//! bytes. For a local file, a system call costs about as much as copying a few kilobytes.

use std::ops::Range;

/// Returns extents that contain all non-empty `ranges`. The extents are sorted and do not overlap.
/// Gaps of up to `gap_bytes_max` bytes between two ranges are included.
pub(crate) fn join_ranges(mut ranges: Vec<Range<u64>>, gap_bytes_max: u64) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut extents: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match extents.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap_bytes_max) => {
                last.end = last.end.max(range.end);
            }
            _ => extents.push(range),
        }
    }
    extents
}

/// Returns the total length of `ranges` in bytes.
pub(crate) fn sum_range_lens(ranges: &[Range<u64>]) -> u64 {
    let lens = ranges.iter().map(|range| range.end - range.start);
    lens.fold(0, u64::saturating_add)
}
