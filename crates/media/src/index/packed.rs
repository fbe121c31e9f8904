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
        let len = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let constant = values.first().copied().unwrap_or(0);
        if values.iter().all(|value| *value == constant) {
            return Packed::same(constant, len);
        }
        let largest = values.iter().copied().max().unwrap_or(0);
        let width = 4 - (largest.leading_zeros() / 8) as u8;
        let mut bytes = vec![0; values.len() * width as usize + (4 - width as usize)];
        match width {
            1 => write::<1>(values, &mut bytes),
            2 => write::<2>(values, &mut bytes),
            3 => write::<3>(values, &mut bytes),
            _ => write::<4>(values, &mut bytes),
        }
        Packed {
            len,
            width,
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

    /// How many values.
    pub fn len(&self) -> u32 {
        self.len
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

/// Writes values in `WIDTH` little-endian bytes each; a width the compiler knows makes it fast.
fn write<const WIDTH: usize>(values: &[u32], bytes: &mut [u8]) {
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
            prop_assert_eq!(back, values);
        }
    }

    #[test]
    fn a_constant_costs_nothing() {
        assert_eq!(Packed::new(&[7; 1000]).heap_bytes(), 0);
        assert_eq!(Packed::new(&[7; 1000]).get(999), 7);
    }
}
