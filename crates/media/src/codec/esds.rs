//! The `esds` box: elementary stream descriptors (ISO/IEC 14496-1, 7.2.6; ISO/IEC 14496-14, 6.7).

use crate::bytes::{ByteReader, write_full_box};
use crate::error::{Error, Result};

/// Tags of descriptors (ISO/IEC 14496-1, 7.2.2.1).
const ES: u8 = 3;
const DECODER_CONFIG: u8 = 4;
const DECODER_SPECIFIC: u8 = 5;

/// Decoder configuration in an `esds` box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Esds<'a> {
    /// `objectTypeIndication`, such as 0x40 for MPEG-4 audio.
    pub object_type: u8,
    /// `DecoderSpecificInfo`, which is the `AudioSpecificConfig` of AAC; may be empty.
    pub decoder_specific_info: &'a [u8],
}

impl<'a> Esds<'a> {
    /// Parses the body of an `esds` box.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short, and `Malformed` for an unexpected descriptor.
    pub fn parse(body: &'a [u8]) -> Result<Esds<'a>> {
        let mut reader = ByteReader::new(body);
        reader.skip(4); // version and flags
        let mut es = ByteReader::new(read_descriptor(&mut reader, ES)?);
        es.skip(2); // ES_ID
        let flags = es.u8();
        es.skip(if flags & 0x80 != 0 { 2 } else { 0 }); // dependsOn_ES_ID
        let url = if flags & 0x40 != 0 { es.u8() } else { 0 };
        es.skip(usize::from(url));
        es.skip(if flags & 0x20 != 0 { 2 } else { 0 }); // OCR_ES_Id
        let mut decoder = ByteReader::new(read_descriptor(&mut es, DECODER_CONFIG)?);
        let object_type = decoder.u8();
        decoder.skip(12); // stream type, buffer size, bit rates
        decoder.check_no_short_read()?;
        let config = match decoder.remaining_slice() {
            [DECODER_SPECIFIC, ..] => read_descriptor(&mut decoder, DECODER_SPECIFIC)?,
            _ => &[],
        };
        Ok(Esds {
            object_type,
            decoder_specific_info: config,
        })
    }
}

/// Reads the next descriptor, which must have the tag `tag`. If the declared size is larger than
/// the number of remaining bytes, returns the remaining bytes.
fn read_descriptor<'a>(reader: &mut ByteReader<'a>, tag: u8) -> Result<&'a [u8]> {
    let found = reader.u8();
    let mut size = 0usize;
    for _ in 0..4 {
        let byte = reader.u8();
        size = size << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    reader.check_no_short_read()?;
    if found != tag {
        let message = format!("descriptor {found} in esds; expected {tag}");
        return Err(Error::malformed(message));
    }
    Ok(reader.take(size.min(reader.remaining_slice().len())))
}

/// Writes the body of an `esds` box for a stream without `DecoderSpecificInfo`, such as MP3.
pub fn write_esds_body(object_type: u8) -> Vec<u8> {
    let mut out = Vec::new();
    write_full_box(&mut out, b"esds", 0, 0, |out| {
        out.extend_from_slice(&[ES, 21, 0, 0, 0, DECODER_CONFIG, 13, object_type, 0x15]);
        out.extend_from_slice(&[0; 11]); // unknown buffer size and bit rates
        out.extend_from_slice(&[6, 1, 2]); // SLConfigDescriptor, predefined for MP4
    });
    out.split_off(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_body_is_parsed_back() {
        let body = write_esds_body(0x6b);
        assert_eq!(body.len(), 4 + 2 + 21);
        let esds = Esds::parse(&body).unwrap();
        assert_eq!(
            (esds.object_type, esds.decoder_specific_info),
            (0x6b, &[][..])
        );
    }

    #[test]
    fn unexpected_and_truncated_descriptors_are_refused() {
        assert!(Esds::parse(&[0, 0, 0, 0, 4, 1, 0]).is_err());
        assert!(Esds::parse(&[0, 0, 0, 0, 3, 0x80, 0x80]).is_err());
    }

    #[test]
    fn optional_fields_are_skipped() {
        let mut body = vec![0, 0, 0, 0, 3, 40, 0, 1, 0xe0, 9, 9, 2, b'u', b'r', 8, 8];
        body.extend_from_slice(&[4, 17, 0x40, 0x15]);
        body.extend_from_slice(&[0; 11]);
        body.extend_from_slice(&[5, 2, 0x12, 0x10]);
        let esds = Esds::parse(&body).unwrap();
        assert_eq!(
            (esds.object_type, esds.decoder_specific_info),
            (0x40, &[0x12, 0x10][..])
        );
    }
}
