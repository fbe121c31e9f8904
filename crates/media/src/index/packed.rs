//! Unsigned numbers in as few whole bytes as the largest needs.

use std::ops::Range;

/// A list of `u32` in 0 to 4 bytes each; a list of one repeated value takes none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    len: u32,
    width: u8,
    /// The repeated value where `width` is 0.
    constant: u32,
    /// Little-endian values of `width` bytes, and padding so that four bytes can always be read.
    bytes: Box<[u8]>,
}

impl Packed {
    /// Packs `values`. At most `u32::MAX` of them are kept.
    pub fn new(values: &[u32]) -> Packed {
        Packed::of(values.iter().copied())
    }

    /// Packs `values`, which it looks at twice. At most `u32::MAX` of them are kept.
    pub fn of(values: impl ExactSizeIterator<Item = u32> + Clone) -> Packed {
        let len = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let constant = values.clone().next().unwrap_or(0);
        let (any, other) = values.clone().fold((0, 0), |(any, other), value| {
            (any | value, other | (value ^ constant))
        });
        if other == 0 {
            return Packed::same(constant, len);
        }
        let width = width(any);
        let mut bytes = vec![0; len as usize * width + padding(width)];
        write_all(width, values, &mut bytes);
        Packed {
            len,
            width: width as u8,
            constant,
            bytes: bytes.into(),
        }
    }

    /// `len` times `value`.
    pub fn same(value: u32, len: u32) -> Packed {
        Packed {
            len,
            width: 0,
            constant: value,
            bytes: Box::default(),
        }
    }

    /// How many bytes `len` values take of which `largest` is the largest, where not all are the same.
    pub(super) fn bytes_of(largest: u32, len: u32) -> usize {
        len as usize * width(largest) + padding(width(largest))
    }

    /// How many values.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The one value, where there are no two.
    pub fn constant(&self) -> Option<u32> {
        (self.width == 0).then_some(self.constant)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Value `n`; 0 past the end.
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

    /// The value that all of `range` have, if there are any and they agree.
    pub fn shared(&self, range: Range<u32>) -> Option<u32> {
        let range = range.start..range.end.min(self.len);
        if range.is_empty() {
            return None;
        }
        let first = self.get(range.start);
        let same = self.width == 0 || range.clone().all(|n| self.get(n) == first);
        same.then_some(first)
    }

    /// Sum of values `range`, cut to those that exist.
    pub fn sum(&self, range: Range<u32>) -> u64 {
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
            1 => sum::<1>(bytes),
            2 => sum::<2>(bytes),
            3 => sum::<3>(bytes),
            _ => sum::<4>(bytes),
        }
    }

    /// Bytes of heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Packs values as they come.
#[derive(Debug, Default)]
pub(super) struct PackedBuilder {
    len: u32,
    width: usize,
    first: u32,
    /// Bits in which a value differs from the first.
    other: u32,
    bytes: Vec<u8>,
    expected: usize,
}

impl PackedBuilder {
    /// Says that some `more` values are coming.
    pub fn expect(&mut self, more: usize) {
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
        self.other |= other;
        if width(any) > self.width {
            self.widen(width(any));
        }
        let from = self.bytes.len();
        self.bytes.resize(from + values.len() * self.width, 0);
        write_all(self.width, values.iter().copied(), &mut self.bytes[from..]);
        self.len += values.len() as u32;
    }

    /// Packs all values so far anew, `width` bytes each.
    fn widen(&mut self, width: usize) {
        let narrow = PackedBuilder {
            bytes: std::mem::take(&mut self.bytes),
            ..*self
        };
        let narrow = narrow.into_packed();
        let room = self.expected.max(self.len as usize) * width + padding(width);
        self.bytes.reserve_exact(room);
        self.bytes.resize(self.len as usize * width, 0);
        let values = (0..narrow.len).map(|n| narrow.get(n));
        write_all(width, values, &mut self.bytes);
        self.width = width;
    }

    /// All of them.
    pub fn finish(self) -> Packed {
        match self.other {
            0 => Packed::same(self.first, self.len),
            _ => self.into_packed(),
        }
    }

    fn into_packed(mut self) -> Packed {
        self.bytes.resize(self.bytes.len() + padding(self.width), 0);
        Packed {
            len: self.len,
            width: self.width as u8,
            constant: self.first,
            bytes: self.bytes.into(),
        }
    }
}

/// How many bytes hold a number that has these bits.
fn width(bits: u32) -> usize {
    4 - bits.leading_zeros() as usize / 8
}

/// What follows on the last value, so that four bytes can always be read.
fn padding(width: usize) -> usize {
    4 - width
}

/// Writes values in `width` little-endian bytes each.
fn write_all(width: usize, values: impl Iterator<Item = u32>, bytes: &mut [u8]) {
    match width {
        0 => {}
        1 => write::<1>(values, bytes),
        2 => write::<2>(values, bytes),
        3 => write::<3>(values, bytes),
        _ => write::<4>(values, bytes),
    }
}

/// Writes values in `WIDTH` little-endian bytes each; a width the compiler knows makes it fast.
fn write<const WIDTH: usize>(values: impl Iterator<Item = u32>, bytes: &mut [u8]) {
    for (to, value) in bytes.chunks_exact_mut(WIDTH).zip(values) {
        to.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
    }
}

/// Adds up little-endian values of `WIDTH` bytes; a width the compiler knows makes it fast.
fn sum<const WIDTH: usize>(bytes: &[u8]) -> u64 {
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
        fn gives_back_what_it_was_given(
            values in (0u32..33).prop_flat_map(|bits| {
                proptest::collection::vec(0..=u32::MAX.checked_shr(bits).unwrap_or(0), 0..300)
            })
        ) {
            let packed = Packed::new(&values);
            let back: Vec<u32> = (0..packed.len()).map(|n| packed.get(n)).collect();
            prop_assert_eq!(&back, &values);
        }

        #[test]
        fn packed_bit_by_bit_is_the_same(
            parts in proptest::collection::vec((0u32..33).prop_flat_map(|bits| {
                proptest::collection::vec(0..=u32::MAX.checked_shr(bits).unwrap_or(0), 0..9)
            }), 0..9)
        ) {
            let mut builder = PackedBuilder::default();
            parts.iter().for_each(|part| builder.extend(part));
            prop_assert_eq!(builder.finish(), Packed::new(&parts.concat()));
        }
    }

    #[test]
    fn a_constant_costs_nothing() {
        assert_eq!(Packed::new(&[7; 1000]).heap_bytes(), 0);
        assert_eq!(Packed::new(&[7; 1000]).get(999), 7);
    }
}
