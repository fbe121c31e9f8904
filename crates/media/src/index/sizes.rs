//! Sizes of samples, and sums of them without adding up each.

use super::column::Column;
use super::packed::Packed;
use super::samples::BLOCK;
use std::ops::Range;

/// A size a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sizes {
    each: Packed,
    /// Bytes before the first sample of each [`BLOCK`], up to the one whose first sample is nearest
    /// to the end. Empty where all sizes are the same.
    before: Box<[u64]>,
}

impl Sizes {
    pub fn new(column: &Column) -> Sizes {
        let each = column.pack();
        Sizes {
            before: before(&each),
            each,
        }
    }

    /// Bytes of sample `n`; 0 past the end.
    pub fn get(&self, n: u32) -> u32 {
        self.each.get(n)
    }

    /// The size that all of `range` share, if they do.
    pub fn shared(&self, range: Range<u32>) -> Option<u32> {
        self.each.shared(range)
    }

    /// Bytes of samples `range` together, cut to those that exist: from the two nearest blocks.
    pub fn sum(&self, range: Range<u32>) -> u64 {
        let range = range.start.min(self.each.len())..range.end.min(self.each.len());
        if range.len() <= BLOCK as usize || self.before.is_empty() {
            return self.each.sum(range);
        }
        self.until(range.end) - self.until(range.start)
    }

    /// Bytes of the samples before `n`, which is no further than the end.
    fn until(&self, n: u32) -> u64 {
        let nearest = n / BLOCK + u32::from(n % BLOCK > BLOCK / 2);
        let first = nearest * BLOCK;
        let before = self.before.get(nearest as usize).copied().unwrap_or(0);
        if n >= first {
            before + self.each.sum(first..n)
        } else {
            before - self.each.sum(n..first)
        }
    }

    /// Bytes of heap.
    pub fn heap_bytes(&self) -> usize {
        self.each.heap_bytes() + size_of_val(&*self.before)
    }
}

fn before(sizes: &Packed) -> Box<[u64]> {
    if sizes.constant().is_some() {
        return Box::default();
    }
    let mut before = Vec::with_capacity((sizes.len() / BLOCK) as usize + 2);
    let mut sum = 0;
    before.push(sum);
    for first in (0..sizes.len()).step_by(BLOCK as usize) {
        sum += sizes.sum(first..first.saturating_add(BLOCK));
        before.push(sum);
    }
    before.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_those_of_the_sizes(
            sizes in (1u32..33).prop_flat_map(|bits| {
                proptest::collection::vec(0..=u32::MAX >> (32 - bits), 0..400)
            }),
            from in 0u32..420,
            len in 0u32..420,
        ) {
            let mut column = Column::default();
            column.append(sizes.iter().copied());
            let range = from as usize..(from + len) as usize;
            let within = sizes.get(range.start..range.end.min(sizes.len())).unwrap_or_default();
            let sum = within.iter().map(|size| u64::from(*size)).sum::<u64>();
            prop_assert_eq!(Sizes::new(&column).sum(from..from + len), sum);
        }
    }
}
