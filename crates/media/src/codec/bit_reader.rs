//! A bit reader for codec headers, which reads the most significant bit first (ISO/IEC 14496-10,
//! 7.2).

/// Reads bits from a slice. Past the end, every bit is zero and [`BitReader::is_past_end`] returns
/// true.
#[derive(Debug, Clone)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Number of bits read so far.
    position_bits: usize,
}

impl<'a> BitReader<'a> {
    /// Creates a reader at the first bit of `bytes`.
    pub fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader {
            bytes,
            position_bits: 0,
        }
    }

    /// Reads one bit.
    pub fn read_bit(&mut self) -> bool {
        let byte = self.bytes.get(self.position_bits / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.position_bits % 8) & 1;
        self.position_bits = self.position_bits.saturating_add(1);
        bit == 1
    }

    /// Reads `n` bits, at most 32, as a number.
    pub fn read_bits(&mut self, n: u32) -> u32 {
        debug_assert!(n <= 32);
        (0..n).fold(0, |value, _| value << 1 | u32::from(self.read_bit()))
    }

    /// Reads `n` bits, at most 8.
    pub fn read_bits_u8(&mut self, n: u32) -> u8 {
        self.read_bits(n.min(8)) as u8
    }

    /// Skips `n` bits.
    pub fn skip(&mut self, n: usize) {
        self.position_bits = self.position_bits.saturating_add(n);
    }

    /// Skips to the next byte boundary.
    pub fn align_to_byte(&mut self) {
        self.position_bits = self.position_bits.saturating_add(7) / 8 * 8;
    }

    /// Reads an unsigned Exp-Golomb number, `ue(v)`. Returns `u32::MAX` for a code with more than
    /// 31 leading zeros.
    pub fn read_ue(&mut self) -> u32 {
        let mut zeros = 0;
        while !self.read_bit() {
            zeros += 1;
            if zeros > 31 {
                self.position_bits = usize::MAX;
                return u32::MAX;
            }
        }
        (1u32 << zeros) - 1 + self.read_bits(zeros)
    }

    /// Reads a signed Exp-Golomb number, `se(v)`.
    pub fn read_se(&mut self) -> i32 {
        let code = i64::from(self.read_ue());
        let half = (code + 1) / 2;
        (if code % 2 == 1 { half } else { -half }) as i32
    }

    /// Returns the number of unread bits.
    pub fn bits_left(&self) -> usize {
        (self.bytes.len() * 8).saturating_sub(self.position_bits)
    }

    /// Returns whether a read went past the end.
    pub fn is_past_end(&self) -> bool {
        self.position_bits > self.bytes.len() * 8
    }
}

/// Removes the emulation prevention bytes of a NAL unit (`00 00 03` → `00 00`).
pub fn remove_emulation_prevention(nal: &[u8]) -> Vec<u8> {
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
    fn exp_golomb_codes_are_read_as_in_the_standard() {
        // The first five codes in Table 9-2 are 1, 010, 011, 00100 and 00101.
        let mut bits = BitReader::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!([0; 5].map(|_: u8| bits.read_ue()), [0, 1, 2, 3, 4]);
        let mut bits = BitReader::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!([0; 5].map(|_: u8| bits.read_se()), [0, 1, -1, 2, -2]);
    }

    #[test]
    fn reading_past_the_end_gives_zeros_and_is_noticed() {
        let mut bits = BitReader::new(&[0xff]);
        assert_eq!(bits.read_bits(12), 0xff0);
        assert!(bits.is_past_end());
        assert_eq!((bits.bits_left(), bits.read_ue()), (0, u32::MAX));
        bits.align_to_byte();
        assert!(!bits.read_bit() && bits.is_past_end());
    }

    #[test]
    fn emulation_prevention_bytes_are_removed() {
        assert_eq!(
            remove_emulation_prevention(&[0, 0, 3, 1, 0, 0, 3]),
            [0, 0, 1, 0, 0]
        );
        assert_eq!(
            remove_emulation_prevention(&[0, 0, 3, 0, 0, 3, 0]),
            [0, 0, 0, 0, 0]
        );
        assert_eq!(
            remove_emulation_prevention(&[0, 3, 0, 0, 4]),
            [0, 3, 0, 0, 4]
        );
    }

    proptest! {
        #[test]
        fn bits_read_back_as_the_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut bits = BitReader::new(&bytes);
            let back: Vec<u8> = bytes.iter().map(|_| bits.read_bits_u8(8)).collect();
            prop_assert_eq!(&back, &bytes);
            prop_assert!(!bits.is_past_end() && bits.bits_left() == 0);
        }
    }
}
