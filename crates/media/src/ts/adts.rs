//! ADTS headers (ISO/IEC 14496-3, 1.A.3.2), which precede each AAC frame.

use crate::codec::AudioSpecificConfig;
use crate::error::{Error, Result};

/// Length of a header without CRC, in bytes.
pub const ADTS_HEADER_BYTES: usize = 7;
/// Maximum length of a frame with its header, in bytes. The length field has 13 bits.
const FRAME_BYTES_MAX: usize = (1 << 13) - 1;

/// The ADTS headers of a track. The fields that all headers share are stored.
#[derive(Debug, Clone, Copy)]
pub struct AdtsHeader {
    head: [u8; 4],
}

impl AdtsHeader {
    /// Prepares the headers of a track. Returns `None` if ADTS cannot express the configuration.
    ///
    /// ADTS cannot express object types over 4 (such as xHE-AAC), sampling rates without an index,
    /// channels of a program config element and layouts beyond 7.1. SBR and PS are not signaled,
    /// because decoders expect a header that describes only the core codec.
    pub fn new(config: &[u8]) -> Option<AdtsHeader> {
        let asc = AudioSpecificConfig::parse(config).ok()?;
        let (object_type, channels) = (asc.object_type, asc.channel_configuration);
        if !(1..=4).contains(&object_type) || !(1..=7).contains(&channels) {
            return None;
        }
        let index = asc.core_sample_rate_index()?;
        let profile = object_type as u8 - 1;
        let head = [
            0xff,
            0xf1, // MPEG-4, no CRC
            profile << 6 | index << 2 | channels >> 2,
            channels << 6,
        ];
        Some(AdtsHeader { head })
    }

    /// Writes the header of a frame of `size` bytes.
    ///
    /// # Errors
    /// `Malformed` if the frame is longer than ADTS allows.
    pub fn write_frame_header(&self, out: &mut Vec<u8>, size: usize) -> Result<()> {
        let len = size.saturating_add(ADTS_HEADER_BYTES);
        if len > FRAME_BYTES_MAX {
            let message =
                format!("an AAC frame of {size} bytes; ADTS has room for {FRAME_BYTES_MAX}");
            return Err(Error::malformed(message));
        }
        let [a, b, c, d] = self.head;
        let d = d | (len >> 11) as u8;
        // Buffer fullness is 0x7ff (unspecified). The frame has one raw data block.
        out.extend_from_slice(&[a, b, c, d, (len >> 3) as u8, (len << 5) as u8 | 0x1f, 0xfc]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_written_for_common_configurations() {
        // The first configuration is AAC-LC in stereo with 44.1 kHz. The second adds SBR with
        // hierarchical signaling, and its core has 22.05 kHz.
        let cases: [(&[u8], [u8; 7]); 2] = [
            (&[0x12, 0x10], [0xff, 0xf1, 0x50, 0x80, 0x21, 0x7f, 0xfc]),
            (
                &[0x2b, 0x92, 0x08, 0x00],
                [0xff, 0xf1, 0x5c, 0x80, 0x21, 0x7f, 0xfc],
            ),
        ];
        for (config, header) in cases {
            let mut out = Vec::new();
            AdtsHeader::new(config)
                .unwrap()
                .write_frame_header(&mut out, 260)
                .unwrap();
            assert_eq!(out, header);
        }
    }

    #[test]
    fn configurations_beyond_adts_are_refused() {
        assert!(
            AdtsHeader::new(&[0x12, 0x00, 0]).is_none(),
            "channels by a PCE"
        );
        assert!(
            AdtsHeader::new(&[0xf9, 0x46, 0x40, 0, 0]).is_none(),
            "xHE-AAC"
        );
        assert!(AdtsHeader::new(&[]).is_none());
        let adts = AdtsHeader::new(&[0x12, 0x10]).unwrap();
        assert!(adts.write_frame_header(&mut Vec::new(), 8184).is_ok());
        assert!(adts.write_frame_header(&mut Vec::new(), 8185).is_err());
    }
}
