//! Bits, most significant first, as codec headers are written (ISO/IEC 14496-10, 7.2).

/// Reads bits from a slice. Past the end every bit is zero, and [`Bits::short`] says so.
#[derive(Debug, Clone)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// Bits read so far.
    at: usize,
}

impl<'a> Bits<'a> {
    /// Reads from the first bit of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0 }
    }

    /// The next bit.
    pub fn bit(&mut self) -> bool {
        let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at = self.at.saturating_add(1);
        bit == 1
    }

    /// The next `n` bits, at most 32, as a number.
    pub fn u(&mut self, n: u32) -> u32 {
        debug_assert!(n <= 32);
        (0..n).fold(0, |value, _| value << 1 | u32::from(self.bit()))
    }

    /// The next `n` bits, at most 8.
    pub fn u8(&mut self, n: u32) -> u8 {
        self.u(n.min(8)) as u8
    }

    /// Passes over `n` bits.
    pub fn skip(&mut self, n: usize) {
        self.at = self.at.saturating_add(n);
    }

    /// Passes over the rest of a byte that was begun.
    pub fn align(&mut self) {
        self.at = self.at.saturating_add(7) / 8 * 8;
    }

    /// An unsigned Exp-Golomb number, `ue(v)`; codes over 32 bits read as the largest number.
    pub fn ue(&mut self) -> u32 {
        let mut zeros = 0;
        while !self.bit() {
            zeros += 1;
            if zeros > 31 {
                self.at = usize::MAX;
                return u32::MAX;
            }
        }
        (1u32 << zeros) - 1 + self.u(zeros)
    }

    /// A signed Exp-Golomb number, `se(v)`.
    pub fn se(&mut self) -> i32 {
        let code = i64::from(self.ue());
        let half = (code + 1) / 2;
        (if code % 2 == 1 { half } else { -half }) as i32
    }

    /// Bits that are left.
    pub fn left(&self) -> usize {
        (self.bytes.len() * 8).saturating_sub(self.at)
    }

    /// Whether something was read past the end.
    pub fn short(&self) -> bool {
        self.at > self.bytes.len() * 8
    }
}

/// A NAL unit without its emulation prevention bytes (`00 00 03` → `00 00`).
pub fn unescape(nal: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(nal.len());
    let mut zeros = 0;
    for &byte in nal {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exp_golomb_codes_of_the_standard() {
        // Table 9-2: 1, 010, 011, 00100, 00101 …
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!([0; 5].map(|_: u8| bits.ue()), [0, 1, 2, 3, 4]);
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!([0; 5].map(|_: u8| bits.se()), [0, 1, -1, 2, -2]);
    }

    #[test]
    fn reading_past_the_end_gives_zeros_and_is_noticed() {
        let mut bits = Bits::new(&[0xff]);
        assert_eq!(bits.u(12), 0xff0);
        assert!(bits.short());
        assert_eq!((bits.left(), bits.ue()), (0, u32::MAX));
        bits.align();
        assert!(!bits.bit() && bits.short());
    }

    #[test]
    fn emulation_prevention_is_taken_out() {
        assert_eq!(unescape(&[0, 0, 3, 1, 0, 0, 3]), [0, 0, 1, 0, 0]);
        assert_eq!(unescape(&[0, 0, 3, 0, 0, 3, 0]), [0, 0, 0, 0, 0]);
        assert_eq!(unescape(&[0, 3, 0, 0, 4]), [0, 3, 0, 0, 4]);
    }

    proptest! {
        #[test]
        fn bits_are_those_of_the_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut bits = Bits::new(&bytes);
            let back: Vec<u8> = bytes.iter().map(|_| bits.u8(8)).collect();
            prop_assert_eq!(&back, &bytes);
            prop_assert!(!bits.short() && bits.left() == 0);
        }
    }
}
