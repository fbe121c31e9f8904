//! The ID3 tag at the start of a packed audio segment (RFC 8216, 3.4; ID3v2.4.0, 3.1 and 4.27).

const OWNER: &[u8] = b"com.apple.streaming.transportStreamTimestamp\0";
/// Length of the PRIV frame without its header, in bytes.
const PRIV_BODY_BYTES: usize = OWNER.len() + 8;
/// Length of the whole tag, in bytes.
pub const ID3_TAG_BYTES: usize = 10 + 10 + PRIV_BODY_BYTES;

/// Writes the tag with the presentation time of the first frame, in 90 kHz ticks, modulo 2^33.
pub fn write_id3_timestamp(out: &mut Vec<u8>, pts: u64) {
    // ID3 sizes have seven bits per byte. Sizes below 128 are therefore written unchanged.
    out.extend_from_slice(b"ID3\x04\0\0\0\0\0");
    out.push((10 + PRIV_BODY_BYTES) as u8);
    out.extend_from_slice(b"PRIV\0\0\0");
    out.extend_from_slice(&[PRIV_BODY_BYTES as u8, 0, 0]);
    out.extend_from_slice(OWNER);
    out.extend_from_slice(&(pts % (1 << 33)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_has_its_declared_length() {
        let mut out = Vec::new();
        write_id3_timestamp(&mut out, (1 << 33) + 0x1234);
        assert_eq!(out.len(), ID3_TAG_BYTES);
        assert_eq!(usize::from(out[9]) + 10, ID3_TAG_BYTES);
        assert_eq!(usize::from(out[17]) + 20, ID3_TAG_BYTES);
        assert_eq!(out[ID3_TAG_BYTES - 9..], *b"\0\0\0\0\0\0\0\x12\x34");
    }
}
