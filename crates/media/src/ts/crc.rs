//! The CRC of programme tables (ISO/IEC 13818-1, annex A): CRC-32/MPEG-2.

/// Returns the CRC of the first `len` bytes. The function runs at compile time, so it may be slow.
pub const fn crc32(bytes: &[u8], len: usize) -> u32 {
    let mut crc = u32::MAX;
    let mut n = 0;
    while n < len {
        crc ^= (bytes[n] as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            let carry = crc >> 31;
            crc = (crc << 1) ^ (carry * 0x04c1_1db7);
            bit += 1;
        }
        n += 1;
    }
    crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_crc_has_its_catalogued_check_value() {
        assert_eq!(super::crc32(b"123456789", 9), 0x0376_e6e7);
    }
}
