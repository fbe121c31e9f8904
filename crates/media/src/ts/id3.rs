//! The ID3 tag that opens a packed audio segment (RFC 8216, 3.4; ID3v2.4.0, 3.1 and 4.27).

const OWNER: &[u8] = b"com.apple.streaming.transportStreamTimestamp\0";
/// Bytes of the PRIV frame after its header.
const BODY: usize = OWNER.len() + 8;
/// Bytes of the whole tag.
pub const TAG: usize = 10 + 10 + BODY;

/// Writes the tag with the presentation time of the first frame, in 90 kHz, wrapped at 2^33.
pub fn write_timestamp(out: &mut Vec<u8>, pts: u64) {
    // Sizes below 128 are the same with and without ID3's seven bits a byte.
    out.extend_from_slice(b"ID3\x04\0\0\0\0\0");
    out.push((10 + BODY) as u8);
    out.extend_from_slice(b"PRIV\0\0\0");
    out.extend_from_slice(&[BODY as u8, 0, 0]);
    out.extend_from_slice(OWNER);
    out.extend_from_slice(&(pts % (1 << 33)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_as_long_as_it_says() {
        let mut out = Vec::new();
        write_timestamp(&mut out, (1 << 33) + 0x1234);
        assert_eq!(out.len(), TAG);
        assert_eq!(usize::from(out[9]) + 10, TAG);
        assert_eq!(usize::from(out[17]) + 20, TAG);
        assert_eq!(out[TAG - 9..], *b"\0\0\0\0\0\0\0\x12\x34");
    }
}
