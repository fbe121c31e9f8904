//! ADTS headers (ISO/IEC 14496-3, 1.A.3.2), which say before each AAC frame what an
//! `AudioSpecificConfig` says once.

use crate::codec::AudioSpecificConfig;
use crate::error::{Error, Result};

/// Bytes of a header without CRC.
pub const HEADER: usize = 7;
/// The longest frame with its header: the field has 13 bits.
const FRAME_MAX: usize = (1 << 13) - 1;

/// What every header of a track has in common.
#[derive(Debug, Clone, Copy)]
pub struct Adts {
    head: [u8; 4],
}

impl Adts {
    /// Prepares headers; none where ADTS cannot say it: object types over 4 (such as xHE-AAC),
    /// odd sampling rates, channels told by a program config element or beyond 7.1.
    ///
    /// SBR and PS stay implicit: the header tells of the core, as decoders expect.
    pub fn new(config: &[u8]) -> Option<Adts> {
        let asc = AudioSpecificConfig::read(config).ok()?;
        let (object_type, channels) = (asc.object_type, asc.channel_config);
        if !(1..=4).contains(&object_type) || !(1..=7).contains(&channels) {
            return None;
        }
        let index = asc.rate_index()?;
        let profile = object_type as u8 - 1;
        let head = [
            0xff,
            0xf1, // MPEG-4, no CRC
            profile << 6 | index << 2 | channels >> 2,
            channels << 6,
        ];
        Some(Adts { head })
    }

    /// Writes the header of a frame of `size` bytes.
    ///
    /// # Errors
    /// `Malformed` if the frame is longer than ADTS can say.
    pub fn write(&self, out: &mut Vec<u8>, size: usize) -> Result<()> {
        let len = size.saturating_add(HEADER);
        if len > FRAME_MAX {
            let what = format!("an AAC frame of {size} bytes; ADTS has room for {FRAME_MAX}");
            return Err(Error::malformed(what));
        }
        let [a, b, c, d] = self.head;
        let d = d | (len >> 11) as u8;
        // Buffer fullness 0x7ff: not told; one raw data block.
        out.extend_from_slice(&[a, b, c, d, (len >> 3) as u8, (len << 5) as u8 | 0x1f, 0xfc]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_common_configurations() {
        // AAC-LC, 44.1 kHz, stereo; the same with SBR before it (hierarchical, 22.05 kHz core).
        let cases: [(&[u8], [u8; 7]); 2] = [
            (&[0x12, 0x10], [0xff, 0xf1, 0x50, 0x80, 0x21, 0x7f, 0xfc]),
            (
                &[0x2b, 0x92, 0x08, 0x00],
                [0xff, 0xf1, 0x5c, 0x80, 0x21, 0x7f, 0xfc],
            ),
        ];
        for (config, header) in cases {
            let mut out = Vec::new();
            Adts::new(config).unwrap().write(&mut out, 260).unwrap();
            assert_eq!(out, header);
        }
    }

    #[test]
    fn what_adts_cannot_say() {
        assert!(Adts::new(&[0x12, 0x00, 0]).is_none(), "channels by a PCE");
        assert!(Adts::new(&[0xf9, 0x46, 0x40, 0, 0]).is_none(), "xHE-AAC");
        assert!(Adts::new(&[]).is_none());
        let adts = Adts::new(&[0x12, 0x10]).unwrap();
        assert!(adts.write(&mut Vec::new(), 8184).is_ok());
        assert!(adts.write(&mut Vec::new(), 8185).is_err());
    }
}
