//! A table of sample sizes with fast range sums.

use super::column_builder::ColumnBuilder;
use super::packed_integers::{PackedIntegers, SAMPLES_PER_BLOCK};
use std::ops::Range;

/// The size of each sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SizeTable {
    sizes: PackedIntegers,
    /// For each block, the total size of all samples before the block. The last entry is the sum of
    /// all sizes. Empty if all sizes are equal.
    bytes_before_block: Box<[u64]>,
}

impl SizeTable {
    pub fn new(column: &ColumnBuilder) -> SizeTable {
        let each = column.to_packed();
        SizeTable {
            bytes_before_block: block_prefix_sums(&each),
            sizes: each,
        }
    }

    /// Returns the size of sample `n`, in bytes; 0 past the end.
    pub fn get(&self, n: u32) -> u32 {
        self.sizes.get(n)
    }

    /// Returns the size that all samples in `range` share, if they share one.
    pub fn shared_size(&self, range: Range<u32>) -> Option<u32> {
        self.sizes.shared_value(range)
    }

    /// Sum of the sizes in `range`, in bytes. Ignores the part of `range` past the last sample.
    ///
    /// For a long range, subtracts the total size before the start from the total size before the
    /// end. Each total is computed from the nearest block boundary.
    pub fn sum_range(&self, range: Range<u32>) -> u64 {
        let range = range.start.min(self.sizes.len())..range.end.min(self.sizes.len());
        if range.len() <= SAMPLES_PER_BLOCK as usize || self.bytes_before_block.is_empty() {
            return self.sizes.sum_range(range);
        }
        self.bytes_before(range.end) - self.bytes_before(range.start)
    }

    /// Total size of the samples before sample `n`, in bytes. `n` must not exceed the number of
    /// samples.
    fn bytes_before(&self, n: u32) -> u64 {
        let nearest =
            n / SAMPLES_PER_BLOCK + u32::from(n % SAMPLES_PER_BLOCK > SAMPLES_PER_BLOCK / 2);
        let first = nearest * SAMPLES_PER_BLOCK;
        let before = self
            .bytes_before_block
            .get(nearest as usize)
            .copied()
            .unwrap_or(0);
        if n >= first {
            before + self.sizes.sum_range(first..n)
        } else {
            before - self.sizes.sum_range(n..first)
        }
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.sizes.heap_bytes() + size_of_val(&*self.bytes_before_block)
    }
}

fn block_prefix_sums(sizes: &PackedIntegers) -> Box<[u64]> {
    if sizes.constant_value().is_some() {
        return Box::default();
    }
    let mut before = Vec::with_capacity((sizes.len() / SAMPLES_PER_BLOCK) as usize + 2);
    let mut sum = 0;
    before.push(sum);
    for first in (0..sizes.len()).step_by(SAMPLES_PER_BLOCK as usize) {
        sum += sizes.sum_range(first..first.saturating_add(SAMPLES_PER_BLOCK));
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
        fn range_sums_equal_the_sums_of_the_sizes(
            sizes in (1u32..33).prop_flat_map(|bits| {
                proptest::collection::vec(0..=u32::MAX >> (32 - bits), 0..400)
            }),
            from in 0u32..420,
            len in 0u32..420,
        ) {
            let mut column = ColumnBuilder::default();
            column.push_all(sizes.iter().copied());
            let range = from as usize..(from + len) as usize;
            let within = sizes.get(range.start..range.end.min(sizes.len())).unwrap_or_default();
            let sum = within.iter().map(|size| u64::from(*size)).sum::<u64>();
            prop_assert_eq!(SizeTable::new(&column).sum_range(from..from + len), sum);
        }
    }
}
