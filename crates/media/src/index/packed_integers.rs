//! Packs unsigned integers. Each integer takes as many whole bytes as the largest integer needs.

use std::ops::Range;

/// Number of values in a block. For each block, a table stores one absolute time, offset or sum.
pub(super) const SAMPLES_PER_BLOCK: u32 = 64;

/// A list of `u32` values that take 0 to 4 bytes each. If all values are equal, each takes 0 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedIntegers {
    len: u32,
    width: u8,
    /// The repeated value if `width` is 0.
    constant: u32,
    /// Little-endian values of `width` bytes each, followed by padding. With the padding, four
    /// bytes can be read at the position of any value.
    bytes: Box<[u8]>,
}

impl PackedIntegers {
    /// Packs `values`. There may be at most `u32::MAX` values.
    pub fn new(values: &[u32]) -> PackedIntegers {
        PackedIntegers::pack_iter(values.iter().copied())
    }

    /// Packs `values`. There may be at most `u32::MAX` values. Iterates over the values twice.
    pub fn pack_iter(values: impl ExactSizeIterator<Item = u32> + Clone) -> PackedIntegers {
        let len = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let constant = values.clone().next().unwrap_or(0);
        let (any, other) = values.clone().fold((0, 0), |(any, other), value| {
            (any | value, other | (value ^ constant))
        });
        if other == 0 {
            return PackedIntegers::repeat(constant, len);
        }
        let width = bytes_per_value(any);
        let mut bytes = vec![0; len as usize * width + overread_padding_bytes(width)];
        write_values(width, values, &mut bytes);
        PackedIntegers {
            len,
            width: width as u8,
            constant,
            bytes: bytes.into(),
        }
    }

    /// Packs a list that contains `value` `len` times.
    pub fn repeat(value: u32, len: u32) -> PackedIntegers {
        PackedIntegers {
            len,
            width: 0,
            constant: value,
            bytes: Box::default(),
        }
    }

    /// Returns the packed size, in bytes, of `len` values that are not all equal; `largest` is the
    /// largest value.
    pub(super) fn compute_packed_size(largest: u32, len: u32) -> usize {
        len as usize * bytes_per_value(largest) + overread_padding_bytes(bytes_per_value(largest))
    }

    /// Number of values.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns the common value, if all values are equal.
    pub fn constant_value(&self) -> Option<u32> {
        (self.width == 0).then_some(self.constant)
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns value `n`; 0 past the end.
    pub fn get(&self, n: u32) -> u32 {
        if n >= self.len {
            return 0;
        }
        if self.width == 0 {
            return self.constant;
        }
        let at = n as usize * self.width as usize;
        let word = u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap_or([0; 4]));
        word & (u32::MAX >> (32 - 8 * u32::from(self.width)))
    }

    /// Returns the common value of the entries in `range`. Returns `None` if the values differ or
    /// if `range` contains no value.
    pub fn shared_value(&self, range: Range<u32>) -> Option<u32> {
        let range = range.start..range.end.min(self.len);
        if range.is_empty() {
            return None;
        }
        let first = self.get(range.start);
        let same = self.width == 0 || range.clone().all(|n| self.get(n) == first);
        same.then_some(first)
    }

    /// Sum of the values in `range`. Ignores the part of `range` past the last value.
    pub fn sum_range(&self, range: Range<u32>) -> u64 {
        let range = range.start.min(self.len)..range.end.min(self.len);
        let width = self.width as usize;
        if width == 0 {
            return u64::from(range.end.saturating_sub(range.start)) * u64::from(self.constant);
        }
        let bytes = self
            .bytes
            .get(range.start as usize * width..range.end as usize * width)
            .unwrap_or_default();
        match width {
            1 => sum_values_of_width::<1>(bytes),
            2 => sum_values_of_width::<2>(bytes),
            3 => sum_values_of_width::<3>(bytes),
            _ => sum_values_of_width::<4>(bytes),
        }
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Packs values that are added in several steps.
#[derive(Debug, Default)]
pub(super) struct PackedIntegersBuilder {
    len: u32,
    width: usize,
    first: u32,
    /// Bits in which any value differs from the first value.
    differing_bits: u32,
    bytes: Vec<u8>,
    expected: usize,
}

impl PackedIntegersBuilder {
    /// Reserves room for `more` values.
    pub fn reserve(&mut self, more: usize) {
        self.expected = self.len as usize + more;
    }

    /// Adds values.
    pub fn extend(&mut self, values: &[u32]) {
        if self.len == 0 {
            self.first = values.first().copied().unwrap_or(0);
        }
        let (any, other) = values.iter().fold((0, 0), |(any, other), value| {
            (any | value, other | (value ^ self.first))
        });
        self.differing_bits |= other;
        if bytes_per_value(any) > self.width {
            self.repack_to_width(bytes_per_value(any));
        }
        let from = self.bytes.len();
        self.bytes.resize(from + values.len() * self.width, 0);
        write_values(self.width, values.iter().copied(), &mut self.bytes[from..]);
        self.len += values.len() as u32;
    }

    /// Repacks all values that were added so far, with `width` bytes each.
    fn repack_to_width(&mut self, width: usize) {
        let narrow = PackedIntegersBuilder {
            bytes: std::mem::take(&mut self.bytes),
            ..*self
        };
        let narrow = narrow.into_packed();
        let room = self.expected.max(self.len as usize) * width + overread_padding_bytes(width);
        self.bytes.reserve_exact(room);
        self.bytes.resize(self.len as usize * width, 0);
        let values = (0..narrow.len).map(|n| narrow.get(n));
        write_values(width, values, &mut self.bytes);
        self.width = width;
    }

    /// Returns the packed list.
    pub fn finish(self) -> PackedIntegers {
        match self.differing_bits {
            0 => PackedIntegers::repeat(self.first, self.len),
            _ => self.into_packed(),
        }
    }

    fn into_packed(mut self) -> PackedIntegers {
        self.bytes
            .resize(self.bytes.len() + overread_padding_bytes(self.width), 0);
        PackedIntegers {
            len: self.len,
            width: self.width as u8,
            constant: self.first,
            bytes: self.bytes.into(),
        }
    }
}

/// Returns the number of bytes needed to store every set bit of `bits`.
fn bytes_per_value(bits: u32) -> usize {
    4 - bits.leading_zeros() as usize / 8
}

/// Returns the number of padding bytes after the last value. With the padding, four bytes can be
/// read at the position of any value.
fn overread_padding_bytes(width: usize) -> usize {
    4 - width
}

/// Writes values as `width` little-endian bytes each.
fn write_values(width: usize, values: impl Iterator<Item = u32>, bytes: &mut [u8]) {
    match width {
        0 => {}
        1 => write_values_of_width::<1>(values, bytes),
        2 => write_values_of_width::<2>(values, bytes),
        3 => write_values_of_width::<3>(values, bytes),
        _ => write_values_of_width::<4>(values, bytes),
    }
}

/// Writes values as `WIDTH` little-endian bytes each. The loop is fast because the width is a
/// constant.
fn write_values_of_width<const WIDTH: usize>(values: impl Iterator<Item = u32>, bytes: &mut [u8]) {
    for (to, value) in bytes.chunks_exact_mut(WIDTH).zip(values) {
        to.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
    }
}

/// Returns the sum of little-endian values of `WIDTH` bytes each. The loop is fast because the
/// width is a constant.
fn sum_values_of_width<const WIDTH: usize>(bytes: &[u8]) -> u64 {
    let value = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(&bytes[..WIDTH]);
        u64::from_le_bytes(word)
    };
    bytes.chunks_exact(WIDTH).map(value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_returns_the_given_values(
            values in (0u32..33).prop_flat_map(|bits| {
                proptest::collection::vec(0..=u32::MAX.checked_shr(bits).unwrap_or(0), 0..300)
            })
        ) {
            let packed = PackedIntegers::new(&values);
            let back: Vec<u32> = (0..packed.len()).map(|n| packed.get(n)).collect();
            prop_assert_eq!(&back, &values);
        }

        #[test]
        fn packing_in_parts_gives_the_same_bytes(
            parts in proptest::collection::vec((0u32..33).prop_flat_map(|bits| {
                proptest::collection::vec(0..=u32::MAX.checked_shr(bits).unwrap_or(0), 0..9)
            }), 0..9)
        ) {
            let mut builder = PackedIntegersBuilder::default();
            parts.iter().for_each(|part| builder.extend(part));
            prop_assert_eq!(builder.finish(), PackedIntegers::new(&parts.concat()));
        }
    }

    #[test]
    fn a_constant_takes_no_heap_bytes() {
        assert_eq!(PackedIntegers::new(&[7; 1000]).heap_bytes(), 0);
        assert_eq!(PackedIntegers::new(&[7; 1000]).get(999), 7);
    }
}
