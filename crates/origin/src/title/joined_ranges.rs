//! Joins ranges of a file that are close to each other, so that they are read together.

use std::ops::Range;

/// A range to read, and the requested ranges in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinedRange {
    /// The bytes to read.
    pub(crate) span: Range<u64>,
    /// The requested ranges within `span`, in the order of the request.
    pub(crate) members: Vec<Range<u64>>,
}

/// Joins consecutive ranges if the gap between them is at most `gap_bytes_max` and the joined range
/// has at most `span_bytes_max` bytes. The order of the ranges does not change.
pub(crate) fn join_close_ranges(
    ranges: impl IntoIterator<Item = Range<u64>>,
    gap_bytes_max: u64,
    span_bytes_max: u64,
) -> Vec<JoinedRange> {
    let mut joined: Vec<JoinedRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(JoinedRange { span, members })
                if range.start >= span.start
                    && range.start <= span.end.saturating_add(gap_bytes_max)
                    && range.end.saturating_sub(span.start) <= span_bytes_max =>
            {
                span.end = span.end.max(range.end);
                members.push(range);
            }
            _ => joined.push(JoinedRange {
                span: range.clone(),
                members: vec![range],
            }),
        }
    }
    joined
}

impl JoinedRange {
    /// Returns the bytes of each member. `bytes` contains the bytes of the span. The result is
    /// empty for a member that is not completely within `bytes`.
    pub(crate) fn split_members<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let slice = |member: &Range<u64>| {
            let from = usize::try_from(member.start - self.span.start).ok()?;
            let until = usize::try_from(member.end - self.span.start).ok()?;
            bytes.get(from..until)
        };
        self.members
            .iter()
            .map(move |member| slice(member).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_ranges_are_read_together_and_cut_again() {
        let joined = join_close_ranges([2..4, 6..7, 5..9, 20..21, 3..4], 2, 100);
        let spans: Vec<_> = joined.iter().map(|joined| joined.span.clone()).collect();
        assert_eq!(spans, [2..9, 20..21, 3..4]);
        let bytes: Vec<u8> = (2..9).collect();
        let cut: Vec<&[u8]> = joined[0].split_members(&bytes).collect();
        assert_eq!(cut, [&[2, 3][..], &[6], &[5, 6, 7, 8]]);
        assert_eq!(
            joined[1].split_members(&[]).collect::<Vec<_>>(),
            [&[] as &[u8]]
        );
    }

    #[test]
    fn many_close_ranges_are_not_joined_to_one_of_any_length() {
        let ranges = (0..100).map(|n| n * 10..n * 10 + 5);
        let joined = join_close_ranges(ranges, 5, 40);
        let longest = joined
            .iter()
            .map(|joined| joined.span.end - joined.span.start);
        assert_eq!(longest.max(), Some(35));
        assert_eq!(
            joined
                .iter()
                .map(|joined| joined.members.len())
                .sum::<usize>(),
            100
        );
    }
}
